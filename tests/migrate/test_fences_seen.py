"""Fences, from each broker's ACLs and the migration's words."""

from __future__ import annotations

import pytest

from sparkmirror.kafka.cluster.acls import ALLOW, ANYWHERE, DENY, LITERAL, WRITE, Acl, AclResource
from sparkmirror.migrate.fences_seen import fence_seen

SHOP, BATCH, OTHER = "User:shop", "User:batch", "User:other"


def acl(who: str, permission: int, host: str = ANYWHERE) -> Acl:
    return Acl(
        resource=AclResource.TOPIC,
        name="orders",
        principal=who,
        host=host,
        operation=WRITE,
        permission=permission,
        pattern=LITERAL,
    )


LETS = {acl(SHOP, ALLOW), acl(BATCH, ALLOW)}


@pytest.mark.parametrize(
    ("brokers", "denied", "somewhere"),
    [
        ([LETS], set(), set()),
        ([{*LETS, acl(SHOP, DENY)}], {SHOP}, {SHOP}),
        ([{*LETS, acl(SHOP, DENY)}, LETS], set(), {SHOP}),
        ([{*LETS, acl(SHOP, DENY, host="10.0.0.1")}], set(), set()),
        ([{*LETS, acl(OTHER, DENY)}], set(), {OTHER}),
        ([{*LETS, acl("User:*", DENY)}], {SHOP, BATCH}, {SHOP, BATCH}),
        ([{*LETS, acl("User:*", DENY)}, {*LETS, acl(OTHER, DENY)}], set(), {SHOP, BATCH, OTHER}),
    ],
)
def test_who_is_denied(brokers: list[set[Acl]], denied: set[str], somewhere: set[str]) -> None:
    """A denial of somebody without the right counts too: where a topic arrives, the right comes with the switch."""
    fence = fence_seen(brokers, "orders", "User:mirror", {})
    assert [set(fence.writers), set(fence.denied), set(fence.denied_somewhere)] == [{SHOP, BATCH}, denied, somewhere]
