"""Of each planted fault the verbs and the page's two lines say what a fair witness would say."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import Any

import pytest
from tests.support.planted_flows import Fault
from tests.support.snapshot_samples import NOW_MS, flow, partition, snapshot, topic
from tests.support.told import NO_STATUS, SCENES, TOLD, Told
from typer.testing import CliRunner

from sparkmirror.cli import doctor, status
from sparkmirror.cli.app import app
from sparkmirror.look.doctor.findings import diagnose
from sparkmirror.look.doctor.flow_status import line
from sparkmirror.look.page.cut_over import cut_over
from sparkmirror.look.page.sentences import headline
from sparkmirror.snapshot.snapshot import Cause, ClusterFigures, FlowState, PartitionState, Role
from sparkmirror.snapshot.status_topic import Status

FILE = "clusters = A, B\nA.bootstrap.servers = 127.0.0.1:1\nB.bootstrap.servers = 127.0.0.1:1\nA->B.enabled = true\n"
CASES = [pytest.param(fault, TOLD[fault.words], id=fault.words) for fault in SCENES if fault.words in TOLD]


def verb(patch: pytest.MonkeyPatch, path: Path, fault: Fault, *words: str) -> tuple[int, str]:
    """A verb that reads the fault's two snapshots from the target, one after the other."""
    (path / "mm2.properties").write_text(FILE)
    seen = [Status(fault.before, 0), Status(fault.now, 0)]
    if words[0] == "status":
        seen = seen[1:]
    for module in (doctor, status):
        patch.setattr(module, "read_status", lambda _: seen.pop(0))  # stands for a target that holds this
    patch.setattr(Status, "age_s", lambda _: 1.0)
    patch.setattr(time, "sleep", lambda _: None)
    name, *more = words
    done = CliRunner().invoke(app, [name, str(path / "mm2.properties"), "--flow", "A->B", *more])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout


def test_of_each_fault_is_told() -> None:
    assert {fault.words for fault in SCENES} == TOLD.keys()


@pytest.mark.parametrize(("fault", "told"), CASES)
def test_the_verbs_tell_it(fault: Fault, told: Told, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """By their words, and by their exit codes."""
    assert line(fault.now, 0.0).removeprefix("A->B: ").startswith(told.status)
    if told.check is not NO_STATUS:
        code, words = verb(monkeypatch, tmp_path, fault, "status", "--check")
        assert (code, f"A->B: {told.status}" in words) == (told.check, True), words
    code, words = verb(monkeypatch, tmp_path, fault, "doctor")
    assert code == told.doctor, words
    if fault.rule != "slots-short":  # the verb does not know Spark's slots
        assert (f"[{fault.rule}]" if fault.rule else "nothing is wrong") in words.splitlines()[0]


@pytest.mark.parametrize(("fault", "told"), CASES)
def test_the_page_tells_it(fault: Fault, told: Told) -> None:
    now, before = fault.snapshots
    said = headline(fault.now, now.at_ms, diagnose(now, before))
    assert told.says in f"{said.what} {said.then}"
    assert said.tone is told.tone
    assert cut_over(fault.now, now.at_ms).verdict is told.cut_over


def test_findings_tell_times_as_the_headline_does() -> None:
    def said(rule: str, **changes: Any) -> str:
        return next(one.evidence for one in diagnose(snapshot(flow(**changes))) if one.rule == rule)

    away = ClusterFigures(alias="B", away="cluster B has not answered", away_since_ms=NOW_MS - 420_000)
    assert said("target-unreachable", state=FlowState.UNREACHABLE, target=away) == "no answer for 7 min"
    late = said("lag-over-objective", state=FlowState.COPYING, lag=9, lag_s=133.4, objective_s=90.0)
    assert late == "2 min 13 s behind, 1 min 30 s promised"
    held = said("lease-refused", state=FlowState.STANDING_BY, role=Role.STANDBY, reason="no answer from b:9092")
    assert held == "not let in for 1 min"


def test_one_parked_partition_is_named_once() -> None:
    stopped = partition(3, state=PartitionState.PARKED, cause=Cause.TRANSFORM, reason="it is no JSON")
    for number, evidence in ((1, "1 partition parked"), (2, "2 partitions parked, first orders-3")):
        other = (dataclasses.replace(stopped, partition=4),) * (number - 1)
        (finding,) = diagnose(snapshot(flow(topics=(topic("orders", stopped, *other),))))
        assert (finding.subject, finding.evidence) == ("orders-3", evidence)
