"""What ACLs say of topics that are not there yet: brokers tell what we may do with those that are."""

from __future__ import annotations

from collections.abc import Iterable

from sparkmirror.cluster.acls import ALL, ALLOW, ANYWHERE, DENY, EVERYBODY, Acl
from sparkmirror.cluster.permissions import OPERATIONS
from sparkmirror.cluster.sign_in import sign_in
from sparkmirror.config import ClusterConfig
from sparkmirror.config.login import SCRAM

EVERYTHING = frozenset(OPERATIONS.values())

_NAMED = ("PLAIN", *SCRAM)
"""What signs in by a name that ACLs have, too; certificates and tokens may be mapped to any."""
_DESCRIBING = frozenset({"READ", "WRITE", "ALTER"})
"""Each brings DESCRIBE with it, as ALTER_CONFIGS brings DESCRIBE_CONFIGS."""


def principal(cluster: ClusterConfig) -> str:
    """Who we are in a cluster's ACLs; empty if it can't be told."""
    how = sign_in(cluster)
    if how is None:
        return "" if cluster.encrypted else "User:ANONYMOUS"
    name = how.principal if how.mechanism in _NAMED else ""
    return f"User:{name}" if name else ""


def allowed(acls: Iterable[Acl], who: str, topic: str, otherwise: frozenset[str] = frozenset()) -> frozenset[str]:
    """What `who` may surely do with a topic: by ACLs, or `otherwise`; what is denied is taken from both.

    Where it can't be told who we are, only what everybody may do counts, and whatever is denied to anybody.
    """
    ours = (who, EVERYBODY)
    given, denied = set(otherwise), set[str]()
    for acl in acls:
        if not acl.is_about(topic):
            continue
        if acl.permission == ALLOW and acl.host == ANYWHERE and acl.principal in ours:
            given |= _operations(acl)
        elif acl.permission == DENY and (not who or acl.principal in ours):
            denied |= _operations(acl)
    if given & _DESCRIBING:
        given.add("DESCRIBE")
    if "ALTER_CONFIGS" in given:
        given.add("DESCRIBE_CONFIGS")
    return frozenset(given - denied)


def _operations(acl: Acl) -> frozenset[str]:
    return EVERYTHING if acl.operation == ALL else frozenset({OPERATIONS.get(acl.operation, "")})
