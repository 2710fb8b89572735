"""ACLs as `KafkaUser` resources, which are Strimzi's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import yaml

from sparkmirror.kafka.cluster.acls import ALLOW, LITERAL, Acl, AclResource
from sparkmirror.kafka.cluster.tool_commands import ACL_WORDS, grouped, pascal

_RESOURCE_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
"""Names that Kubernetes allows for resources (RFC 1123)."""


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
    """Return the principal's `KafkaUser` name and authentication, or `None`.

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
            "operations": [pascal(operation) for operation in operations],
            "host": host,
        }
        for (resource, name, pattern, _, host, permission), operations in grouped(acls).items()
    ]


def _resource(resource: AclResource, name: str, pattern: int) -> dict[str, str]:
    kind = ACL_WORDS[resource][1]
    if resource is AclResource.CLUSTER:  # only one cluster resource exists, without a name
        return {"type": kind}
    return {"type": kind, "name": name, "patternType": "literal" if pattern == LITERAL else "prefix"}
