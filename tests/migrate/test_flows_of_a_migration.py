"""The flows of a migration: which one it begins with, and why the flow back can't begin its turn."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tests.migrate.world import SOURCE, TARGET

from sparkmirror.config import ClusterConfig, FlowConfig, MirrorConfig
from sparkmirror.errors import ConfigError
from sparkmirror.migrate import writers
from sparkmirror.migrate.pair import begins
from sparkmirror.migrate.writers import ClusterWriters
from sparkmirror.mirror.sync.turns import Drained, NotTurned

A = ClusterConfig(alias="A", bootstrap_servers=("a:9092",))
B = ClusterConfig(alias="B", bootstrap_servers=("b:9092",))
FORTH, BACK = FlowConfig(source=A, target=B, turn="first"), FlowConfig(source=B, target=A, turn="second")
MIRROR = MirrorConfig(path="mm2.properties", flows=(FORTH, BACK))


def test_a_migration_begins_with_the_first_turn() -> None:
    assert begins(MIRROR, "", "move") is FORTH
    assert begins(MIRROR, "A->B", "move") is FORTH


def test_no_migration_begins_with_the_second_turn() -> None:
    with pytest.raises(ConfigError) as refused:
        begins(MIRROR, "B->A", "move")
    assert str(refused.value) == (
        "move: flow: B->A has sparkmirror.turn = second, and a migration begins with turn = first: name A->B"
    )


def test_what_is_missing_at_a_border_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ends are published, so this is no reason to say that they are not."""
    missing = {("orders", part): f"orders-{part}: copied up to offset 4 (its end is 7)" for part in range(5)}
    monkeypatch.setattr(writers, "drained", lambda *_: Drained({"orders": {}}, missing))
    monkeypatch.setattr(writers, "start_turn", lambda *_: pytest.fail("records are missing"))
    pair: Any = SimpleNamespace(flows={SOURCE: FORTH, TARGET: BACK})
    with pytest.raises(NotTurned) as refused:
        ClusterWriters(pair, None).begin_turn(TARGET, ["orders"])  # type: ignore[arg-type]
    assert str(refused.value) == (
        "flow A->B: orders-0: copied up to offset 4 (its end is 7); orders-1: copied up to offset 4 (its end is 7);"
        " orders-2: copied up to offset 4 (its end is 7) (and 2 more partitions)"
    )
