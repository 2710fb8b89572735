"""Rights on missing topics, derived from ACLs.

Brokers tell the client's rights on existing topics only.
"""

from __future__ import annotations

from collections.abc import Iterable

from sparkmirror.kafka.cluster.acls import ALL, ALLOW, ANYWHERE, DENY, EVERYBODY, Acl
from sparkmirror.kafka.cluster.permissions import OPERATIONS

EVERYTHING = frozenset(OPERATIONS.values())

_DESCRIBING = frozenset({"READ", "WRITE", "ALTER"})
"""Operations that imply DESCRIBE, as ALTER_CONFIGS implies DESCRIBE_CONFIGS."""


def allowed(acls: Iterable[Acl], who: str, topic: str, otherwise: frozenset[str] = frozenset()) -> frozenset[str]:
    """Return the operations that principal `who` may surely do on a topic.

    These are the operations of ACLs and of `otherwise`, without denied ones. For an unknown principal (empty `who`)
    only the rights of all principals count, and every denial to any principal.
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
