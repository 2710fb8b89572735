"""A cluster's ACLs: on topics, groups, transactional ids and the cluster itself."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from kafka.admin import ACLOperation, ACLPermissionType
from kafka.protocol.admin import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest

from sparkmirror.chunks import chunks
from sparkmirror.errors import ClusterUnreachable, HandledError
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.refusal_lines import refusal
from sparkmirror.kafka.wire.error_codes import ErrorCode

ALL, READ, WRITE = int(ACLOperation.ALL), int(ACLOperation.READ), int(ACLOperation.WRITE)
DESCRIBE, DESCRIBE_CONFIGS = int(ACLOperation.DESCRIBE), int(ACLOperation.DESCRIBE_CONFIGS)
DENY, ALLOW = int(ACLPermissionType.DENY), int(ACLPermissionType.ALLOW)
LITERAL, PREFIXED = 3, 4
WILDCARD = "*"
"""Literal resource name in an ACL for every resource of its kind."""
EVERYBODY, ANYWHERE = "User:*", "*"

ACLS_PER_REQUEST = 500
ADVICE: Mapping[int, str] = {
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: (
        "grant sparkmirror's principal DESCRIBE on the cluster at the source, and ALTER at the target"
    ),
}
_ANY = 1
_BRINGING = {
    DESCRIBE: frozenset(
        int(operation) for operation in (ACLOperation.READ, ACLOperation.WRITE, ACLOperation.DELETE, ACLOperation.ALTER)
    ),
    DESCRIBE_CONFIGS: frozenset({int(ACLOperation.ALTER_CONFIGS)}),
}
"""Operations whose ALLOW implies another operation, by the implied operation.

As in Kafka's `AclAuthorizer`.
"""


class AclResource(IntEnum):
    """Resource kinds with ACLs, by Kafka's codes (`ResourceType`)."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5

    @property
    def word(self) -> str:
        """Kind in words, such as `transactional id`."""
        return self.name.lower().replace("_", " ")


class SecurityDisabled(HandledError):
    """Error for a cluster without ACLs: its brokers have no authorizer."""


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class Acl:
    """One ACL on a topic, on topics by prefix, or on another resource.

    `operation` and `permission` are Kafka's codes.
    """

    name: str
    principal: str
    host: str
    operation: int
    permission: int
    pattern: int = LITERAL
    resource: AclResource = AclResource.TOPIC

    def __str__(self) -> str:
        what = self.resource.word if self.pattern == LITERAL else f"{self.resource.word}s with the prefix"
        granted = f"{self.permission_name} {self.operation_name}"
        return f"{granted} on {what} {self.name} to {self.principal} from {self.host}"

    @property
    def permission_name(self) -> str:
        """`ALLOW` or `DENY`."""
        return "ALLOW" if self.permission == ALLOW else "DENY"

    @property
    def pattern_name(self) -> str:
        """`LITERAL` or `PREFIXED`."""
        return "LITERAL" if self.pattern == LITERAL else "PREFIXED"

    @property
    def operation_name(self) -> str:
        """The operation's name in Kafka, such as DESCRIBE_CONFIGS."""
        name = next((str(known.name) for known in ACLOperation if known == self.operation), "")
        return name or f"operation {self.operation}"

    @property
    def is_pattern(self) -> bool:
        """True if the ACL covers several names: it has a prefix or is for `*`."""
        return self.pattern != LITERAL or self.name == WILDCARD

    def is_about(self, name: str) -> bool:
        if self.pattern == PREFIXED:
            return name.startswith(self.name)
        return self.pattern == LITERAL and self.name in (name, WILDCARD)

    def covers(self, other: Acl) -> bool:
        """Tell whether the ACL allows or denies at least as much as `other`."""
        same_name = (self.name, self.pattern) == (other.name, other.pattern)
        everything = (self.name, self.pattern) == (WILDCARD, LITERAL)
        names = everything or same_name or (self.pattern == PREFIXED and other.name.startswith(self.name))
        operations = {other.operation, ALL} | (
            _BRINGING.get(other.operation, frozenset()) if other.permission == ALLOW else frozenset()
        )
        return (
            names
            and (self.resource, self.permission) == (other.resource, other.permission)
            and self.principal in (other.principal, EVERYBODY)
            and self.host in (other.host, ANYWHERE)
            and self.operation in operations
        )


def read_acls(client: ClusterClient, *resources: AclResource, broker: int | None = None) -> set[Acl]:
    """Read all ACLs on these kinds of resources, as one broker knows them.

    `broker` is its node id; without it the first one that answers. Raises `SecurityDisabled`, `ClusterUnreachable` if
    the principal may not read ACLs, and with `broker` other `ConnectionError`s.
    """
    acls: set[Acl] = set()
    for resource in resources:
        if broker is None:
            answer = client.ask_any(functools.partial(_question, resource))
        else:
            answer = client.ask(broker, _question(resource))
        if answer.error_code == ErrorCode.SECURITY_DISABLED:
            raise SecurityDisabled
        if answer.error_code:
            reason = refusal(answer.error_code, answer.error_message, ADVICE)
            raise ClusterUnreachable(f"cluster {client.config.alias}: reading the ACLs failed: {reason}")
        acls |= {
            Acl(
                name=described.resource_name,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission=acl.permission_type,
                pattern=described.pattern_type,
                resource=resource,
            )
            for described in answer.resources
            for acl in described.acls
        }
    return acls


def create_acls(client: ClusterClient, acls: Sequence[Acl]) -> dict[Acl, str | None]:
    """Add ACLs; return for each None, or one line that says why it failed."""
    outcomes: dict[Acl, str | None] = {}
    for chunk in chunks(acls, ACLS_PER_REQUEST):
        answer = client.ask_any(functools.partial(_creation, chunk))
        outcomes |= _outcomes(chunk, answer.results)
    return outcomes


def delete_acls(client: ClusterClient, acls: Sequence[Acl]) -> dict[Acl, str | None]:
    """Remove exactly these ACLs; return for each None, or one line with the failure.

    None, too, for an ACL that the cluster does not have.
    """
    outcomes: dict[Acl, str | None] = {}
    for chunk in chunks(acls, ACLS_PER_REQUEST):
        answer = client.ask_any(functools.partial(_deletion, chunk))
        outcomes |= _outcomes(chunk, answer.filter_results)
    return outcomes


def _outcomes(acls: Sequence[Acl], results: Iterable[Any]) -> dict[Acl, str | None]:
    return {
        acl: refusal(result.error_code, result.error_message, ADVICE) if result.error_code else None
        for acl, result in zip(acls, results, strict=True)
    }


def _question(resource: AclResource) -> Any:
    return DescribeAclsRequest(
        resource_type_filter=int(resource),
        resource_name_filter=None,
        pattern_type_filter=_ANY,
        principal_filter=None,
        host_filter=None,
        operation=_ANY,
        permission_type=_ANY,
    )


def _creation(acls: Sequence[Acl]) -> Any:
    return CreateAclsRequest(
        creations=[
            CreateAclsRequest.AclCreation(
                resource_type=int(acl.resource),
                resource_name=acl.name,
                resource_pattern_type=acl.pattern,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission,
            )
            for acl in acls
        ]
    )


def _deletion(acls: Sequence[Acl]) -> Any:
    return DeleteAclsRequest(
        filters=[
            DeleteAclsRequest.DeleteAclsFilter(
                resource_type_filter=int(acl.resource),
                resource_name_filter=acl.name,
                pattern_type_filter=acl.pattern,
                principal_filter=acl.principal,
                host_filter=acl.host,
                operation=acl.operation,
                permission_type=acl.permission,
            )
            for acl in acls
        ]
    )
