"""`sparkmirror status`: its line, its JSON and its exit codes."""

from __future__ import annotations

import dataclasses
import json
import time
from pathlib import Path

import pytest
from tests.support.snapshot_samples import flow, partition, topic
from typer.testing import CliRunner

from sparkmirror.cli import status as verb
from sparkmirror.cli.app import app
from sparkmirror.errors import ClusterUnreachable, ConfigError
from sparkmirror.look.doctor import flow_status
from sparkmirror.mirror.engine import flow_health
from sparkmirror.snapshot.snapshot import Flow, FlowState, LossCount, PartitionState
from sparkmirror.snapshot.status_topic import Status

PARKED = topic("orders", partition(3, state=PartitionState.PARKED, reason="too large"))
FILE = "clusters = A, B\nA.bootstrap.servers = 127.0.0.1:1\nB.bootstrap.servers = 127.0.0.1:1\nA->B.enabled = true\n"


def test_the_line_tells_state_reason_progress_rate_lag_eta_and_age() -> None:
    now = flow(
        state=FlowState.HELD_UP,
        topics=(PARKED,),
        lag=3_000,
        lag_s=12.0,
        records_per_s=50.0,
        bytes_per_s=2e6,
        eta_s=60.0,
    )
    assert flow_status.line(now, 4.2) == (
        "A->B: held up (orders-3 is parked: too large); 1,000 records, 25.0% done; 50/s, 2.0 MB/s;"
        " lag 3,000 (12 s); ETA 60 s; 1 parked; 4 s ago"
    )


def test_progress_is_never_said_to_be_whole_before_it_is() -> None:
    nearly = topic("a", partition(position=10_000_000, end=10_000_001, lag=1, downstream=10_000_000))
    assert "99.9% done" in flow_status.line(flow(topics=(nearly,), lag=1), 0.0)
    assert flow_status.progress(flow(lag=None)) is None
    assert flow_status.progress(flow(topics=(), lag=0)) == 1.0


def test_progress_does_not_start_over_with_the_process() -> None:
    half = topic("a", partition(start=8_000, position=9_000, end=10_000, lag=1_000, downstream=5_000))
    assert flow_status.progress(flow(topics=(half,), lag=1_000, records=0)) == 0.5
    assert flow_status.progress(flow(topics=(half,), lag=1_000, records=1_000)) == 0.5
    unknown = partition(1, position=None, lag=None)
    expired = partition(2, start=500, position=0, end=900, lag=400)
    some = topic("a", *half.partitions, unknown, expired)
    assert flow_status.progress(flow(topics=(some,), lag=1_400)) == 1_000 / 2_400
    late = flow(topics=(topic("a", partition(), late_in={0: 1_000}),))
    assert flow_status.progress(late) == 0.5, "what came after the writers had moved is not copied"
    done = topic("b", partition(position=1_000_000, end=1_000_000, downstream=1_000))
    assert flow_status.progress(flow(topics=(half, done), lag=1_000)) == 2_000 / 3_000


def test_a_loss_is_unhealthy_until_it_is_acknowledged() -> None:
    lost = LossCount(kind="expired", entries=2, offsets=40, newest_ms=7, words="40 records expired")
    known = dataclasses.replace(lost, entries=1, acknowledged=True)
    assert not flow_health.is_healthy(flow(losses=(lost,)))
    assert flow_health.is_healthy(flow(losses=(known,)))
    line = flow_status.line(flow(losses=(lost, known)), 0.0)
    assert "caught up (lost: 40 records expired)" in line
    assert "; 2 losses; 1 loss acknowledged; 0 s ago" in line
    assert "lost" not in flow_status.line(flow(losses=(known,)), 0.0)
    row = flow_status.row(flow(losses=(known,)), 0.0)
    assert (row["losses"], row["acknowledged"]) == (0, 1)


@pytest.mark.parametrize("state", FlowState)
def test_the_help_names_the_unhealthy_states(state: FlowState) -> None:
    told = " ".join((verb.status.__doc__ or "").split()).partition("With --check")[2].partition("Exit codes")[0]
    assert (state.value in told) is (not flow_health.is_healthy(flow(state=state)))


def test_a_refused_topic_is_unhealthy_and_the_reason() -> None:
    refused = topic("bills", refused="no right to create primary.bills")
    now = flow(state=FlowState.COPYING, topics=(topic(), refused), lag=0)
    assert not flow_health.is_healthy(now)
    line = flow_status.line(now, 0.0)
    assert "copying (bills is refused: no right to create primary.bills)" in line
    assert flow_status.progress(now) is None, "how much of the topic is to be copied is not known"
    assert flow_health.is_healthy(flow(topics=())), "no topic matches"


def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, status: Status, *arguments: str) -> tuple[int, str]:
    (tmp_path / "mm2.properties").write_text(FILE)
    monkeypatch.setattr(verb, "read_status", lambda _: status)  # stands for a target that holds this
    done = CliRunner().invoke(app, ["status", str(tmp_path / "mm2.properties"), "--flow", "A->B", *arguments])
    if isinstance(done.exception, ClusterUnreachable):
        return done.exception.exit_code, str(done.exception)
    return done.exit_code, done.stdout


def fresh(**changes: object) -> Status:
    now: Flow = flow(at_ms=int(time.time() * 1000), **changes)
    return Status(now, 0)


def test_check_tells_by_its_exit_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert run(monkeypatch, tmp_path, fresh(), "--check")[0] == 0
    assert run(monkeypatch, tmp_path, fresh(state=FlowState.HELD_UP), "--check")[0] == 1
    assert run(monkeypatch, tmp_path, fresh(topics=(PARKED,)), "--check")[0] == 1
    assert run(monkeypatch, tmp_path, fresh(topics=(PARKED,)))[0] == 0


def test_a_file_without_a_flow_says_so(tmp_path: Path) -> None:
    """Only heartbeats are sent, and no status tells of them; an image's health check is not to end such a mirror."""
    file = tmp_path / "mm2.properties"
    file.write_text(FILE.replace("A->B.enabled = true", "A->B.emit.heartbeats.enabled = true"))
    told = CliRunner().invoke(app, ["status", str(file), "--check"])
    assert (told.exit_code, told.stdout) == (0, "no flow, only heartbeats\n")
    for arguments in (["losses"], ["doctor", "--wait", "0"], ["pause"]):
        done = CliRunner().invoke(app, [*arguments[:1], str(file), *arguments[1:]])
        assert isinstance(done.exception, ConfigError), done.output
        assert str(done.exception) == f"{file}: has no flow, only heartbeats"


def test_old_or_missing_status_is_exit_code_three(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code, words = run(monkeypatch, tmp_path, Status(flow(at_ms=int(time.time() * 1000) - 90_000), 0))
    assert (code, "last status is 90 s old" in words) == (3, True)
    code, words = run(monkeypatch, tmp_path, Status(None, 0))
    assert (code, "no mirror has published it; is the mirror running?" in words) == (3, True)
    code, words = run(monkeypatch, tmp_path, Status(None, 3))
    assert (code, "another version of sparkmirror published it; ask with the version that runs" in words) == (3, True)


def test_json(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code, text = run(monkeypatch, tmp_path, fresh(topics=(PARKED,)), "-o", "json")
    (row,) = json.loads(text)
    assert (code, row["flow"], row["state"], row["healthy"], row["parked"]) == (0, "A->B", "caught up", False, 1)


def test_groups_are_listed_by_partition_with_both_sides() -> None:
    from sparkmirror.cli.groups import COLUMNS, cells
    from sparkmirror.cli.tables import lines
    from sparkmirror.snapshot.group_rows import rows

    (row,) = rows(flow(), 3.0)
    assert cells(row) == ("shop", "orders", "0", "990", "10", "A.orders", "985", "15", "0", "5", "synced")
    assert len(lines([COLUMNS, cells(row)]).splitlines()) == 2


def test_a_topic_is_what_its_worst_partition_is() -> None:
    from sparkmirror.cli.topic_rows import rows

    (row,) = rows(flow(topics=(topic("orders", partition(lag=5), *PARKED.partitions),)), 3.0)
    assert (row["state"], row["reason"], row["parked"], row["lag"]) == ("parked", "too large", 1, 5)
    (row,) = rows(flow(topics=(topic("a", partition(lag=None), refused="cycle"),)), 3.0)
    assert (row["state"], row["lag"]) == ("refused", None)
