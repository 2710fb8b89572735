"""Remedies that are a key in the file: with it the planted fault is none of the rule any more."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from tests.support.planted import FAULTS
from tests.support.planted_flows import pumps

from sparkmirror.config import FlowConfig, load_mm2_properties
from sparkmirror.look.doctor.findings import diagnose
from sparkmirror.mirror.sync.topic_rules import group_filter
from sparkmirror.snapshot.snapshot import Flow, Snapshot

FILE = "clusters = A, B\nA.bootstrap.servers = 127.0.0.1:1\nB.bootstrap.servers = 127.0.0.1:1\nA->B.enabled = true\n"
EDITS = [
    ("ten tasks for twenty idle partitions", "few-partitions-a-task", "tasks.max = 3"),
    ("tasks.max 32 for one partition", "tasks-max-useless", "tasks.max = 1"),
    ("Spark has two slots for eight tasks, and falls behind", "slots-short", "tasks.max = 2"),
    ("12,000 groups: a turn takes longer than its interval", "many-groups", "groups = g7.*"),
    ("12,000 groups: a turn takes longer than its interval", "duty-slow", "sync.group.offsets.interval.seconds = 600"),
]
"""Fault, rule, and the line that its remedy has people write."""


def as_configured(was: Flow, config: FlowConfig) -> Flow:
    """The flow as it is with this file."""
    is_wanted = group_filter(config).should_replicate_group
    intervals = {"group offsets": float(config.group.sync_group_offsets_interval_seconds)}
    return dataclasses.replace(
        was,
        tasks_max=config.tasks_max,
        pumps=pumps(config.tasks_max, cpu_s=10.0),
        groups=tuple(group for group in was.groups if is_wanted(group.group)),
        duties=tuple(
            dataclasses.replace(duty, interval_s=intervals.get(duty.duty, duty.interval_s)) for duty in was.duties
        ),
    )


@pytest.mark.parametrize(("words", "rule", "written"), EDITS, ids=[rule for _, rule, _ in EDITS])
def test_the_finding_goes(words: str, rule: str, written: str, tmp_path: Path) -> None:
    (fault,) = (each for each in FAULTS if each.words == words)
    now, before = fault.snapshots
    actions = [one.action for one in diagnose(now, before) if one.rule == rule]
    key = written.partition(" = ")[0]
    assert actions, "it is planted"
    assert all(key in action or "Raise the interval" in action for action in actions), "the remedy has the key"
    file = tmp_path / "mm2.properties"
    file.write_text(f"{FILE}{written}\n")
    (config,) = load_mm2_properties(str(file)).flows
    changed = as_configured(fault.now, config)
    left = diagnose(Snapshot(fault.process, now.at_ms, (changed,)), before)
    assert rule not in {one.rule for one in left}
