"""`sparkmirror migration` on real clusters: rows of status, exit codes, and that a dry run writes nothing."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from chaos.switches.arena import BILLING, SHOP, SOURCE, TARGET
from chaos.switches.tool import Hooks
from kafka import KafkaProducer
from tests.migrate.live import Live, LiveMigration, running
from tests.support import mirror_process as mp

from sparkmirror.demo.jars import BROKER_VERSION

pytestmark = [pytest.mark.broker, pytest.mark.full]


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """Return what runs for all tests of this module."""
    with running(tmp_path_factory.mktemp("live"), BROKER_VERSION) as one:
        yield one


def test_status_dry_run_switch_and_reverse(live: Live) -> None:
    """Status follows a set there and back, a dry run writes nothing, and a switch that is done has nothing to do."""
    migration = live.migration()
    migration.write_and_copy()
    mp.wait_for(lambda: migration.status()["canSwitch"] is True, 60, "both flows' status")
    row = migration.status()
    assert (row["phase"], row["producers"], row["blockers"]) == ("copying", SOURCE, [])

    before = _still(migration)
    told = migration.verb("switch", "all", "--dry-run")
    assert told.returncode == 0, told.stderr
    assert "would add the ACL" in told.stdout
    assert "would publish the ends" in told.stdout
    assert migration.state() == before

    there = migration.verb("switch", "all", "--yes")
    assert there.returncode == 0, there.stdout + there.stderr
    assert f"bootstrap.servers={live.arena.servers(TARGET)}" in there.stdout
    assert migration.status()["phase"] == "armed"
    assert migration.verb("switch", "all", "--yes").stdout.strip() == "shop: nothing is left to do"

    with migration.writing(TARGET), migration.reading(TARGET):
        mp.wait_for(lambda: migration.count(f"read {BILLING} at {TARGET}") > 5, 60, "records read at the target")
    row = migration.status()
    assert (row["phase"], row["producers"], row["consumers"]) == ("moved", TARGET, TARGET)

    back = migration.verb("reverse", "--yes")
    assert back.returncode == 0, back.stdout + back.stderr
    with migration.writing(SOURCE), migration.reading(SOURCE):
        read = migration.count(f"read {BILLING} at {SOURCE}")
        mp.wait_for(lambda: migration.count(f"read {BILLING} at {SOURCE}") > read + 5, 60, "records read at the source")
    assert migration.count(f"no {SHOP}") == 0
    assert migration.status()["producers"] == SOURCE


def test_each_phase_is_named_on_the_way(live: Live) -> None:
    """Another process looks between the steps, while a principal is let in and a straggler writes."""
    with Hooks() as hooks:
        asked = {step: [hooks.url] for step in ("publish", "drain", "arm", "open")}
        migration = live.migration(hooks={"before": asked, "after": {"fence": [hooks.url]}}, type="all-at-once")
        migration.write_and_copy()
        told = [migration.phase()]

        def look(when: str, step: str) -> None:
            told.append(migration.phase())
            if (when, step) == ("after", "fence") and "half-fenced" not in told:
                migration.let_write("User:somebody")
                mp.wait_for(lambda: migration.phase() == "half-fenced", 30, "a principal who is not denied")
                told.append("half-fenced")
            if (when, step) == ("before", "arm"):
                migration.straggle()
                told.append(migration.phase())

        hooks.asked = look
        there = migration.verb("switch", "producers", "--yes")
        assert there.returncode == 0, there.stdout + there.stderr
        told.append(migration.phase())
        with migration.writing(TARGET):
            mp.wait_for(lambda: migration.count(f"ack {SHOP} at {TARGET}") > 5, 60, "records at the target")
        told.append(migration.phase())
        early = migration.verb("complete", "--yes")
        assert (early.returncode, f"{migration.group} has not left {SOURCE}" in early.stdout) == (1, True)
        consumers = migration.verb("switch", "consumers", "--yes")
        assert consumers.returncode == 0, consumers.stdout + consumers.stderr
    done = migration.verb("complete", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    told.append(migration.phase())
    changes = [phase for number, phase in enumerate(told) if not number or told[number - 1] != phase]
    assert [phase for phase in changes if phase != "draining"] == [
        *("copying", "fenced", "half-fenced", "fenced", "drained", "leaking", "drained"),
        *("armed", "moved", "completed"),
    ], told


def test_who_goes_past_a_watched_switch_is_told(live: Live) -> None:
    """A straggler's record at the source, by the ledger of the flow back; exit code 1."""
    migration = live.migration(policies={"watch": "15 s"})
    migration.write_and_copy()
    with migration.begin("switch", "all", "--yes", "--watch", "-o", "json") as switch:
        mp.wait_for(lambda: migration.phase() == "armed", 60, "the target is live")
        with migration.writing(TARGET):
            mp.wait_for(lambda: migration.count(f"ack {SHOP} at {TARGET}") > 5, 60, "records at the target")
            migration.straggle()
            told, _ = switch.communicate(timeout=60)
    rows, end = json.JSONDecoder().raw_decode(told)
    assert (switch.returncode, [row["outcome"] for row in rows]) == (1, ["done"]), told
    (line,) = told[end:].split("\n")[1:-1]
    bypass = json.loads(line)["bypass"]
    assert bypass.startswith(f"{migration.topic}: a foreign producer wrote"), bypass


def test_a_hook_that_says_no_undoes_all(live: Live) -> None:
    """Exit code 4; the denials are gone, the published ends taken back, and producers write on."""
    migration = live.migration(hooks={"before": {"arm": ["echo the board says no; exit 3"]}})
    migration.write_and_copy()
    told = migration.verb("switch", "producers", "--yes")
    assert told.returncode == 4, told.stdout + told.stderr
    assert "the board says no" in told.stdout
    assert migration.denials() == []
    assert migration.status()["phase"] == "copying"
    with migration.writing():
        acks = migration.count(f"ack {SHOP} at {SOURCE}")
        mp.wait_for(lambda: migration.count(f"ack {SHOP} at {SOURCE}") > acks + 5, 60, "records after the undo")
    mp.wait_for(lambda: migration.status()["lagForth"] == 0, 120, "copies after the undo")


def test_time_that_is_up_undoes_all(live: Live) -> None:
    """An open transaction keeps the ends from settling: exit code 4, and no denial stays."""
    migration = live.migration(policies={"fence": "2 s"})
    migration.write_and_copy()
    servers = live.arena.cluster(SOURCE).direct_servers
    with closing(KafkaProducer(bootstrap_servers=servers, transactional_id=f"{migration.prefix}open")) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(migration.topic, b"in an open transaction", partition=0)
        producer.flush()
        told = migration.verb("switch", "producers", "--yes")
        assert told.returncode == 4, told.stdout + told.stderr
        assert f"{migration.prefix}open" in told.stdout
        assert migration.denials() == []
        producer.abort_transaction()
    assert migration.status()["phase"] == "copying"


def test_members_that_stay_undo_the_switch(live: Live) -> None:
    """Consumers that nobody stops: exit code 4, and they read on at the source."""
    migration = live.migration(policies={"empty": "1 s"})
    migration.write_and_copy()
    with migration.reading():
        mp.wait_for(lambda: migration.status()["consumers"] == SOURCE, 60, "a member")
        told = migration.verb("switch", "consumers", "--yes")
        assert told.returncode == 4, told.stdout + told.stderr
        assert f"{migration.group}-0@" in told.stdout
    assert migration.denials() == []


def _still(migration: LiveMigration) -> dict[str, Any]:
    """Wait until the group has committed all that there is, and the mirror's rounds have begun; return the state."""
    seen = [migration.state()]

    def is_still() -> bool:
        time.sleep(2.0)
        seen.append(migration.state())
        return seen[-1] == seen[-2]

    mp.wait_for(is_still, 60, "clusters that stand still")
    return seen[-1]


def test_a_blocker_changes_nothing(live: Live) -> None:
    """Exit code 1, the blocker by its name, and nothing was written."""
    migration = live.migration(type="consumers-first")
    migration.write_and_copy()
    with migration.reading():
        before = _still(migration)
        told = migration.verb("switch", "producers", "--yes")
        assert told.returncode == 1, told.stdout + told.stderr
        assert "consumers-first" in told.stdout
        assert migration.state() == before


def test_a_file_with_a_mistake(live: Live) -> None:
    """Exit code 2 and the key."""
    told = live.migration(policies={"lagg": 3}).verb("status")
    assert told.returncode == 2
    assert "lagg" in told.stderr
