"""A fence leaves out the mirror's own principal, also where no setting names it."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from tests.migrate.planted import SOURCE, WORDS, file, group, seen, topic, turned

from sparkmirror.kafka.cluster.acls import Acl, AclResource
from sparkmirror.migrate import hands
from sparkmirror.migrate.actions import Action, Deny, DenyReturn
from sparkmirror.migrate.file import Fence
from sparkmirror.migrate.hands import RealHands
from sparkmirror.migrate.observation import Side

SHOP, BATCH, APP = "User:shop", "User:batch", "User:app"
ENDS = {0: 100, 1: 50}
SEEN = seen(here=topic(ENDS), there=topic(ENDS), forth=turned(WORDS["none"]), group_here=group(offset=7))
FENCE = Deny(leaving=SOURCE, names=("orders",), fence=Fence.ACL, still_s=5.0)
RETURN = DenyReturn(leaving=SOURCE, names=("billing",))


class Writes:
    """The writers' part that a fence needs: what was tried, and whom ACLs deny then."""

    def __init__(self, own: str) -> None:
        self.own = own
        self.tried: list[frozenset[str]] = []
        self.denied: set[str] = set()

    def find_own(self, side: Side, candidates: frozenset[str]) -> frozenset[str]:
        assert not self.denied & {self.own}
        self.tried.append(candidates)
        return candidates & {self.own}

    def note_fence(self, side: Side, resource: AclResource, name: str, acls: Sequence[Acl]) -> None:
        """Keep nothing."""

    def add_acls(self, side: Side, acls: Sequence[Acl]) -> None:
        self.denied |= {acl.principal for acl in acls}


def made(monkeypatch: pytest.MonkeyPatch, writes: Writes, named: str) -> RealHands:
    monkeypatch.setattr(hands, "PairObserver", lambda *_: None)
    monkeypatch.setattr(hands, "not_there", lambda _, acls: list(acls))
    pair: Any = SimpleNamespace(named={SOURCE: named}, clients={SOURCE: None}, denials=lambda _: {})
    return RealHands(file(), pair, writes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("own", "action", "denied"),
    [
        (BATCH, FENCE, {SHOP}),
        ("User:CN=mirror", FENCE, {SHOP, BATCH}),
        (APP, RETURN, set[str]()),
        (BATCH, RETURN, {APP}),
    ],
)
def test_a_principal_that_no_setting_names_is_tried_first(
    monkeypatch: pytest.MonkeyPatch, own: str, action: Action, denied: set[str]
) -> None:
    writes = Writes(own)
    some = made(monkeypatch, writes, "")
    some.act(action, SEEN)
    some.act(action, SEEN)
    assert writes.denied == denied
    assert writes.tried == [frozenset({APP} if action is RETURN else {SHOP, BATCH})]


def test_a_named_principal_needs_no_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    writes = Writes(BATCH)
    made(monkeypatch, writes, BATCH).act(FENCE, SEEN)
    assert writes.tried == []
    assert writes.denied == {SHOP}
