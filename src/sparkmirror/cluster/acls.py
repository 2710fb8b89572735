"""The ACLs of a cluster's topics: read and added, never removed."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kafka.admin import ACLOperation, ACLPermissionType
from kafka.protocol.admin import CreateAclsRequest, DescribeAclsRequest

from sparkmirror.cluster.admin import refusal
from sparkmirror.cluster.client import ClusterClient
from sparkmirror.errors import ClusterUnreachable

ALL, READ, WRITE = int(ACLOperation.ALL), int(ACLOperation.READ), int(ACLOperation.WRITE)
DENY, ALLOW = int(ACLPermissionType.DENY), int(ACLPermissionType.ALLOW)
LITERAL, PREFIXED = 3, 4

ACLS_PER_REQUEST = 500
ADVICE = {31: "grant our principal DESCRIBE on the cluster at the source, and ALTER at the target"}
_TOPIC, _ANY = 2, 1
_SECURITY_DISABLED = 54


class SecurityDisabled(Exception):
    """The cluster's brokers have no authorizer, so there are no ACLs."""


@dataclass(frozen=True, slots=True, order=True)
class TopicAcl:
    """One ACL of a topic, or of topics by prefix; codes are Kafka's."""

    topic: str
    principal: str
    host: str
    operation: int
    permission: int
    pattern: int = LITERAL

    def __str__(self) -> str:
        permission = "ALLOW" if self.permission == ALLOW else "DENY"
        return f"{permission} {_operation(self.operation)} on topic {self.topic} to {self.principal} from {self.host}"


def topic_acls(client: ClusterClient) -> set[TopicAcl]:
    """All ACLs of topics; raises `SecurityDisabled`, and `ClusterUnreachable` where we may not ask."""
    answer = client.ask_any(
        lambda: DescribeAclsRequest(
            resource_type_filter=_TOPIC,
            resource_name_filter=None,
            pattern_type_filter=_ANY,
            principal_filter=None,
            host_filter=None,
            operation=_ANY,
            permission_type=_ANY,
        )
    )
    if answer.error_code == _SECURITY_DISABLED:
        raise SecurityDisabled
    if answer.error_code:
        reason = refusal(answer.error_code, answer.error_message, ADVICE)
        raise ClusterUnreachable(f"cluster {client.config.alias}: reading the ACLs failed: {reason}")
    return {
        TopicAcl(
            resource.resource_name, acl.principal, acl.host, acl.operation, acl.permission_type, resource.pattern_type
        )
        for resource in answer.resources
        for acl in resource.acls
    }


def create_topic_acls(client: ClusterClient, acls: Sequence[TopicAcl]) -> dict[TopicAcl, str | None]:
    """Add ACLs; for each None or one line that says why not."""
    outcomes: dict[TopicAcl, str | None] = {}
    for start in range(0, len(acls), ACLS_PER_REQUEST):
        chunk = acls[start : start + ACLS_PER_REQUEST]
        answer = client.ask_any(functools.partial(_creation, chunk))
        for acl, result in zip(chunk, answer.results, strict=True):
            code = result.error_code
            outcomes[acl] = refusal(code, result.error_message, ADVICE) if code else None
    return outcomes


def _creation(acls: Sequence[TopicAcl]) -> Any:
    return CreateAclsRequest(
        creations=[
            CreateAclsRequest.AclCreation(
                resource_type=_TOPIC,
                resource_name=acl.topic,
                resource_pattern_type=acl.pattern,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission,
            )
            for acl in acls
        ]
    )


def _operation(code: int) -> str:
    return next((str(known.name) for known in ACLOperation if known == code), f"operation {code}")
