"""Fences made of ACLs: principals denied WRITE on topics, or READ on groups.

A DENY for all hosts beats every ALLOW. Principals are denied by name, never `User:*`: the mirror writes to the same
topics and commits for the same groups, and would be held, too. Nothing passes a fence; running producers get
TopicAuthorizationException for each record, and Java's idempotent producer continues afterwards. No ACL holds the
brokers' super users.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from sparkmirror.errors import ClusterUnreachable
from sparkmirror.kafka.cluster.acls import ALL, ALLOW, ANYWHERE, DENY, EVERYBODY, LITERAL, READ, WRITE, Acl, AclResource

Principals = Mapping[str, Iterable[str]]
"""Principals such as `User:shop`, by topic or group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holders:
    """Principals that ACLs allow an operation on topics or groups."""

    principals: Mapping[str, tuple[str, ...]]
    """Principals that a denial can hold, by topic or group; empty without any.

    An ALLOW that is only for some hosts counts: a denial for all hosts beats it.
    """
    everybody: Mapping[str, tuple[Acl, ...]]
    """ACLs that allow the operation to `User:*`.

    A denial that beats them would hold the mirror, too.
    """
    own: Mapping[str, tuple[Acl, ...]]
    """ACLs that allow the operation to the mirror's own principal.

    Other clients that sign in by the same name can't be held.
    """

    @property
    def open(self) -> tuple[str, ...]:
        """Topics or groups without an ACL that allows the operation, in order.

        Only super users may use them, or all clients if the brokers have `allow.everyone.if.no.acl.found`: then the
        first ACL on a topic shuts out all clients that it does not allow.
        """
        return tuple(
            sorted(name for name, who in self.principals.items() if not (who or self.everybody[name] or self.own[name]))
        )


def writers(acls: Iterable[Acl], topics: Iterable[str], own: str) -> Holders:
    """Return who may write to each topic, by its name, by a prefix or by `*`.

    `own` is the mirror's principal (`missing_rights.principal`); empty: unknown, and nobody is left out.
    """
    return _holders(acls, AclResource.TOPIC, WRITE, topics, own)


def readers(acls: Iterable[Acl], groups: Iterable[str], own: str) -> Holders:
    """Return who may join each group and commit for the group; as `writers` does."""
    return _holders(acls, AclResource.GROUP, READ, groups, own)


def write_denials(principals: Principals, own: str) -> tuple[Acl, ...]:
    """Return ACLs that deny the principals WRITE on the topics, for all hosts.

    Raises `ClusterUnreachable` for `User:*` and for `own`: the ACL would hold the mirror.
    """
    return _denials(AclResource.TOPIC, WRITE, principals, own)


def read_denials(principals: Principals, own: str) -> tuple[Acl, ...]:
    """Return ACLs that deny the principals READ on the groups; as `write_denials`.

    Only for groups without members. A running member dies with the last commit refused, so records are read again; and
    the group stays `Stable` until the session times out, because LeaveGroup is refused as well.
    """
    return _denials(AclResource.GROUP, READ, principals, own)


def write_grants(acls: Iterable[Acl], names: Mapping[str, str]) -> tuple[Acl, ...]:
    """Return the ACLs that let topics' writers write to the copies, too.

    `acls` are the source's, `names` the copies' by topic. Each ALLOW for WRITE or ALL becomes an ALLOW for WRITE on
    the copy, with the same principal and host.
    """
    allowed = [acl for acl in acls if _allows(acl, AclResource.TOPIC, WRITE)]
    return tuple(
        sorted(
            {
                replace(acl, name=copy, pattern=LITERAL, operation=WRITE)
                for topic, copy in names.items()
                for acl in allowed
                if acl.is_about(topic)
            }
        )
    )


def _holders(acls: Iterable[Acl], resource: AclResource, operation: int, names: Iterable[str], own: str) -> Holders:
    allowed = sorted(acl for acl in acls if _allows(acl, resource, operation))
    about = {name: [acl for acl in allowed if acl.is_about(name)] for name in names}
    return Holders(
        principals={
            name: tuple(sorted({acl.principal for acl in its} - {EVERYBODY, own})) for name, its in about.items()
        },
        everybody={name: tuple(acl for acl in its if acl.principal == EVERYBODY) for name, its in about.items()},
        own={name: tuple(acl for acl in its if acl.principal == own) for name, its in about.items()},
    )


def _allows(acl: Acl, resource: AclResource, operation: int) -> bool:
    return acl.permission == ALLOW and acl.resource is resource and acl.operation in (operation, ALL)


def _denials(resource: AclResource, operation: int, principals: Principals, own: str) -> tuple[Acl, ...]:
    denials = {
        Acl(resource=resource, name=name, principal=who, host=ANYWHERE, operation=operation, permission=DENY)
        for name, denied_here in principals.items()
        for who in denied_here
    }
    for denial in sorted(denials):
        if denial.principal in (EVERYBODY, own):
            whom = "everybody" if denial.principal == EVERYBODY else "its own principal"
            raise ClusterUnreachable(f"`{denial}` would hold the mirror, too, since it denies {whom}; name the others")
    return tuple(sorted(denials))
