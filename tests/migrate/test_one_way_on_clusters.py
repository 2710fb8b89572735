"""A switch of renamed copies between real clusters where nothing flows back: undone, taken back, and used."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from chaos.switches.arena import SHOP, SOURCE, TARGET
from chaos.switches.plan import Names
from tests.migrate.live import PARTITIONS, Live, running
from tests.support import mirror_process as mp

from sparkmirror.demo.jars import BROKER_VERSION

pytestmark = [pytest.mark.broker, pytest.mark.full]


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    with running(tmp_path, BROKER_VERSION, Names.RENAMED, back=False) as one:
        yield one


def test_a_switch_is_taken_back_until_the_target_was_used(live: Live) -> None:
    migration = live.migration(hooks={"before": {"open": ["exit 3"]}})
    live.arena.create_topics(TARGET, {migration.topic: {}}, PARTITIONS)
    migration.write_and_copy()
    mp.wait_for(lambda: migration.status()["canSwitch"] is True, 60, "the flow's status")
    told = migration.verb("reverse", "--dry-run")
    assert (told.returncode, "can't begin" in told.stdout) == (0, False), told.stdout + told.stderr

    refused = migration.verb("switch", "all", "--yes")
    assert refused.returncode == 4, refused.stdout + refused.stderr
    assert migration.denials() == []
    with migration.writing():
        seen = migration.count(f"ack {SHOP} at {SOURCE}")
        mp.wait_for(lambda: migration.count(f"ack {SHOP} at {SOURCE}") > seen + 5, 60, "producers write at A again")

    migration = live.migration()
    live.arena.create_topics(TARGET, {migration.topic: {}}, PARTITIONS)
    migration.write_and_copy()
    there = migration.verb("switch", "all", "--yes")
    assert there.returncode == 0, there.stdout + there.stderr
    told = migration.verb("reverse", "--dry-run")
    assert "B: would take the published ends" in told.stdout, told.stdout + told.stderr
    back = migration.verb("reverse", "--yes")
    assert back.returncode == 0, back.stdout + back.stderr
    assert {each.name for each in migration.denials()} == {migration.topic}, "B's producers are not held"

    migration.write_and_copy()
    there = migration.verb("switch", "all", "--yes")
    assert there.returncode == 0, there.stdout + there.stderr
    with migration.writing(TARGET):
        mp.wait_for(lambda: migration.count(f"ack {SHOP} at {TARGET}") > 5, 60, "records written at the target")
    back = migration.verb("reverse", "--yes")
    assert back.returncode == 1, back.stdout + back.stderr
    assert "no-flow: nothing copies from B to A, and producers may have written to" in back.stdout
