"""ACLs in operators' formats: `kafka-acls.sh` lines and `KafkaUser` resources.

`KafkaUser` is Strimzi's resource.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from typing import Any

import yaml

from sparkmirror.cluster.acls import ALLOW, ANYWHERE, LITERAL, Acl, AclResource
from sparkmirror.config import ClusterConfig
from sparkmirror.sync.kafka_tools import tool_arguments

_WORDS = {
    AclResource.TOPIC: ("--topic", "topic"),
    AclResource.GROUP: ("--group", "group"),
    AclResource.CLUSTER: ("--cluster", "cluster"),
    AclResource.TRANSACTIONAL_ID: ("--transactional-id", "transactionalId"),
}
"""Option of `kafka-acls.sh`, and resource type of Strimzi."""
_RESOURCE_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
"""Names that Kubernetes allows for resources (RFC 1123)."""

_Key = tuple[AclResource, str, int, str, str, int]


def kafka_acls_lines(acls: Iterable[Acl], cluster: ClusterConfig) -> list[str]:
    """Return commands that add the ACLs, one for each principal, host and resource."""
    lines = []
    for (resource, name, pattern, principal, host, permission), operations in _grouped(acls).items():
        word = "allow" if permission == ALLOW else "deny"
        words = [
            *("kafka-acls.sh", *tool_arguments(cluster)),
            *("--add", f"--{word}-principal", principal),
            *((f"--{word}-host", host) if host != ANYWHERE else ()),
            *(part for operation in operations for part in ("--operation", _pascal(operation))),
            *(_WORDS[resource][0], name, "--resource-pattern-type", "literal" if pattern == LITERAL else "prefixed"),
        ]
        lines.append(shlex.join(words))
    return lines


def kafka_users(acls: Sequence[Acl], there: Iterable[Acl]) -> tuple[str, list[str]]:
    """Return `KafkaUser` resources, and the principals that can have no resource.

    A principal is left out if its name fits no `KafkaUser`. Strimzi's User Operator removes each ACL that a resource
    doesn't list, so a resource also lists the ACLs that the principal already has (`there`).
    """
    resources, left_out = [], []
    present = list(there)
    for principal in sorted({acl.principal for acl in acls}):
        user = _user(principal)
        if user is None:
            left_out.append(principal)
            continue
        name, authentication = user
        own = {acl for acl in [*acls, *present] if acl.principal == principal}
        resources.append(
            {
                "apiVersion": "kafka.strimzi.io/v1",
                "kind": "KafkaUser",
                "metadata": {"name": name, "labels": {"strimzi.io/cluster": "CLUSTER"}},
                "spec": authentication | {"authorization": {"type": "simple", "acls": _rules(own)}},
            }
        )
    return yaml.safe_dump_all(resources, sort_keys=False, width=120) if resources else "", left_out


def _user(principal: str) -> tuple[str, dict[str, Any]] | None:
    """Return name and authentication of the principal's `KafkaUser`, or `None`.

    Strimzi's principal is `User:NAME` with SCRAM and `User:CN=NAME` with TLS.
    """
    kind, _, name = principal.partition(":")
    by_tls = name.startswith("CN=")
    name = name.removeprefix("CN=")
    if kind != "User" or not _RESOURCE_NAME.fullmatch(name):
        return None
    return name, {"authentication": {"type": "tls-external"}} if by_tls else {}


def _rules(acls: Iterable[Acl]) -> list[dict[str, Any]]:
    return [
        {
            "type": "allow" if permission == ALLOW else "deny",
            "resource": _resource(resource, name, pattern),
            "operations": [_pascal(operation) for operation in operations],
            "host": host,
        }
        for (resource, name, pattern, _, host, permission), operations in _grouped(acls).items()
    ]


def _resource(resource: AclResource, name: str, pattern: int) -> dict[str, str]:
    kind = _WORDS[resource][1]
    if resource is AclResource.CLUSTER:  # only one cluster resource exists, without a name
        return {"type": kind}
    return {"type": kind, "name": name, "patternType": "literal" if pattern == LITERAL else "prefix"}


def _grouped(acls: Iterable[Acl]) -> dict[_Key, list[str]]:
    """Group the names of operations by all other fields of the ACLs."""
    grouped: dict[_Key, list[str]] = {}
    for acl in sorted(acls, key=_order):
        key = (acl.resource, acl.name, acl.pattern, acl.principal, acl.host, acl.permission)
        grouped.setdefault(key, []).append(acl.operation_name)
    return grouped


def _order(acl: Acl) -> tuple[object, ...]:
    return acl.principal, acl.resource, acl.name, acl.pattern, acl.host, acl.permission, acl.operation


def _pascal(operation: str) -> str:
    """Return an operation in the spelling of Kafka's tools and of Strimzi.

    DESCRIBE_CONFIGS becomes DescribeConfigs.
    """
    return "".join(word.capitalize() for word in operation.split("_"))
