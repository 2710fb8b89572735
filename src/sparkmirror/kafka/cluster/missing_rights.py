"""Missing rights on a topic, with the commands that give them.

Where an ACL denies a right, no further ACL can allow it: the denying one must be removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass

from sparkmirror.config import ClusterConfig
from sparkmirror.config.login import SCRAM
from sparkmirror.errors import SparkMirrorError
from sparkmirror.kafka.cluster.acls import (
    ALL,
    ALLOW,
    ANYWHERE,
    DENY,
    DESCRIBE,
    EVERYBODY,
    Acl,
    AclResource,
    SecurityDisabled,
    read_acls,
)
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.permissions import OPERATIONS
from sparkmirror.kafka.cluster.sign_in import sign_in
from sparkmirror.kafka.cluster.tool_commands import acl_lines

AT_SOURCE, AT_TARGET = frozenset({"READ"}), frozenset({"READ", "WRITE"})
"""Rights on topics without which no record is copied; both imply DESCRIBE."""
_CODES = {name: code for code, name in OPERATIONS.items()}
_NAMED = ("PLAIN", *SCRAM)
"""Mechanisms whose sign-in name is the name in ACLs.

Brokers may map certificates and tokens to any name.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingRights:
    """Rights that sparkmirror lacks on one topic; its text names all of them."""

    cluster: ClusterConfig
    principal: str
    """sparkmirror's principal; empty: unknown."""
    topic: str
    operations: tuple[str, ...]
    denied_by: tuple[Acl, ...]
    """ACLs that deny some of the operations, as far as sparkmirror may read them."""

    def __str__(self) -> str:
        who = self.principal or "sparkmirror's principal"
        why = f", which {'an ACL denies' if len(self.denied_by) == 1 else 'ACLs deny'}" if self.denied_by else ""
        return f"{who} lacks {', '.join(self.operations)} on topic {self.topic} of {self.cluster.alias}{why}"

    @property
    def commands(self) -> list[str]:
        """Commands for `kafka-acls.sh`, which remove what denies and allow the rest."""
        denied = {acl.operation for acl in self.denied_by}
        added = [operation for operation in self.operations if not denied & _denying(operation)]
        removed = acl_lines(self.denied_by, self.cluster, remove=True)
        if not added:
            return removed
        return [*removed, added_right(self.cluster, self.principal, AclResource.TOPIC, self.topic, *added)]


def principal(cluster: ClusterConfig) -> str:
    """Return sparkmirror's principal in a cluster's ACLs; empty if unknown."""
    login = sign_in(cluster)
    if login is None:
        return "" if cluster.encrypted else "User:ANONYMOUS"
    name = login.principal if login.mechanism in _NAMED else ""
    return f"User:{name}" if name else ""


def added_right(cluster: ClusterConfig, who: str, resource: AclResource, name: str, *operations: str) -> str:
    """Return the `kafka-acls.sh` command that allows a principal these operations.

    An empty principal is for the reader to fill in.
    """
    acls = [
        Acl(
            resource=resource,
            name=name,
            principal=who or "User:PRINCIPAL",
            host=ANYWHERE,
            operation=_CODES[each],
            permission=ALLOW,
        )
        for each in operations
    ]
    return acl_lines(acls, cluster)[0]


def missing_rights(
    cluster: ClusterConfig,
    topic: str,
    needed: Iterable[str],
    allowed: frozenset[str] | None,
    acls: Callable[[], Iterable[Acl]],
) -> MissingRights | None:
    """Return the rights on a topic that are needed and not allowed, or None.

    `allowed` is None if the brokers can't tell. `acls` reads the topics' ACLs, if they are wanted.
    """
    lacking = tuple(sorted(set(needed) - allowed)) if allowed is not None else ()
    if not lacking:
        return None
    who = principal(cluster)
    denying = frozenset[int]().union(*map(_denying, lacking))
    denials = tuple(
        sorted(
            acl
            for acl in acls()
            if acl.permission == DENY
            and acl.is_about(topic)
            and acl.operation in denying
            and acl.principal in (who, EVERYBODY)
        )
    )
    return MissingRights(cluster=cluster, principal=who, topic=topic, operations=lacking, denied_by=denials)


def _denying(operation: str) -> frozenset[int]:
    """Return the operations whose denial denies this one, too."""
    return frozenset({ALL, DESCRIBE, _CODES[operation]})


def topic_acls(client: ClusterClient) -> set[Acl]:
    """Read the ACLs on topics; nothing if the principal may not read them."""
    with suppress(ConnectionError, SparkMirrorError, SecurityDisabled):
        return read_acls(client, AclResource.TOPIC)
    return set()
