"""Planted faults: the right finding is first. Healthy mirrors: nothing is said."""

from __future__ import annotations

import dataclasses
import re

import pytest
from tests.doctor.doctor_page import COMMAND, PAGE, whole_page
from tests.support.healthy import healthy
from tests.support.planted import FAULTS
from tests.support.planted_flows import DAY_MS, Fault, copying, earlier, moved, pumps
from tests.support.snapshot_samples import NOW_MS, flow, partition, snapshot, topic

from sparkmirror.look.doctor.diagnosis import RULES
from sparkmirror.look.doctor.findings import Finding, Severity, diagnose
from sparkmirror.look.doctor.parked import WAITS
from sparkmirror.snapshot.group_standing import GroupState
from sparkmirror.snapshot.snapshot import Cause, ClusterFigures, Flow, Group, LossCount, PartitionState, Pump

MISJUDGED = 0
"""Faults whose finding isn't first; 2 of 40 may be."""


def first_of(fault: Fault) -> Finding | None:
    now, before = fault.snapshots
    return next(iter(diagnose(now, before)), None)


def test_the_right_finding_is_first() -> None:
    wrong = {}
    for fault in FAULTS:
        first = first_of(fault)
        if first is None or first.rule != fault.rule:
            wrong[fault.words] = (fault.rule, first)
    assert len(FAULTS) >= 40
    assert len(wrong) <= MISJUDGED, wrong


_MONTH_AGO = (LossCount(kind="expired", entries=1, offsets=20, newest_ms=NOW_MS - 30 * DAY_MS, words="20 offsets"),)


@pytest.mark.parametrize(
    ("rule", "severity", "now"),
    [
        (
            "certificate-ends",
            Severity.CRITICAL,
            flow(source=ClusterFigures(alias="A", certificate_ends_ms=NOW_MS + DAY_MS)),
        ),
        (
            "certificate-ends",
            Severity.WARNING,
            flow(source=ClusterFigures(alias="A", certificate_ends_ms=NOW_MS + 9 * DAY_MS)),
        ),
        ("records-lost", Severity.NOTICE, flow(losses=_MONTH_AGO)),
        ("pumps-silent", Severity.CRITICAL, flow(pumps=pumps(2, at_ms=NOW_MS - 90_000))),
        (
            "pumps-silent",
            Severity.WARNING,
            flow(
                pumps=(
                    *pumps(1),
                    Pump(task=1, host="h", partitions=1, records=0, bytes=0, memory_bytes=0, at_ms=NOW_MS - 90_000),
                )
            ),
        ),
        (
            "paused",
            Severity.NOTICE,
            flow(topics=(topic("a", partition(state=PartitionState.PAUSED, lag=5, lag_s=60.0)),)),
        ),
        (
            "many-groups",
            Severity.NOTICE,
            flow(groups=tuple(Group(group=str(n), state=GroupState.SYNCED) for n in range(10_000))),
        ),
    ],
)
def test_how_bad_it_is(rule: str, severity: Severity, now: Flow) -> None:
    (finding,) = diagnose(snapshot(now))
    assert (finding.rule, finding.severity) == (rule, severity)


def evidence(rule: str, now: Flow, before: Flow) -> str:
    return next(
        one.evidence for one in diagnose(snapshot(now), [snapshot(before, at_ms=before.at_ms)]) if one.rule == rule
    )


@pytest.mark.parametrize(
    ("throttle_s", "words"),
    [(1_300.0, "each pump had to wait for all of 70 s"), (42.0, "each pump had to wait for 21 s of 70 s")],
)
def test_waits_for_a_quota_are_told_in_seconds(throttle_s: float, words: str) -> None:
    """Several connections of a pump wait at the same time, for longer than that in all."""
    before = earlier(copying(20_000))
    now = dataclasses.replace(copying(20_000), target=ClusterFigures(alias="B", throttle_s=throttle_s))
    assert evidence("throttled-target", now, before) == words


def test_a_small_cap_is_told_in_small_units() -> None:
    now = copying(400, bytes_per_s_cap=4_000.0, bytes=100_000)
    assert evidence("cap-too-low", now, moved(now)) == "8.6 kB/s come, 4.0 kB/s may be copied"


def test_the_worst_flow_is_first() -> None:
    alone = dataclasses.replace(flow(processes=1), flow="C->B")
    findings = diagnose(snapshot(alone, flow(retention_s=60.0, retention_of="orders-0"), alone))
    assert [one.flow for one in findings] == ["A->B", "C->B", "C->B"]


@pytest.mark.parametrize(("words", "mirror"), healthy(), ids=[words for words, _ in healthy()])
def test_nothing_is_said_of_a_healthy_mirror(words: str, mirror: Fault) -> None:
    now, before = mirror.snapshots
    assert diagnose(now, before) == []
    assert diagnose(now) == []


def test_the_page_is_as_the_rules_are() -> None:
    assert PAGE.read_text() == whole_page(), COMMAND


def test_every_rule_is_planted() -> None:
    """But those of causes that differ in their words only."""
    planted = {fault.rule for fault in FAULTS}
    assert {rule.name for rule in RULES if not rule.name.startswith("parked-")} == planted - {
        name for name in planted if name.startswith("parked-")
    }


def test_each_cause_that_parks_has_a_rule() -> None:
    """Unreachable brokers are clusters'; `tests/pump/test_events_in_any_order.py`: `WAITS` park nothing."""
    parking = set(Cause) - WAITS.keys() - {Cause.UNREACHABLE}
    assert {rule.name for rule in RULES if rule.name.startswith("parked-")} == {f"parked-{cause}" for cause in parking}


def test_the_runbook_has_each_cause_that_parks() -> None:
    text = PAGE.read_text().split("| cause | do |")[1].split("\n\n")[0]
    told = {
        cause for line in text.splitlines() for cause in re.findall(r"`([\w-]+)`", line.split("|")[1] if line else "")
    }
    assert told == {*Cause} - {*WAITS}


def test_rules_explain_only_what_comes_later() -> None:
    names = [rule.name for rule in RULES]
    assert len(set(names)) == len(names)
    for place, rule in enumerate(RULES):
        assert set(rule.explains) <= set(names[place + 1 :]), rule.name
