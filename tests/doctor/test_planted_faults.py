"""Planted faults: the right finding is first. Healthy mirrors: nothing is said."""

from __future__ import annotations

from pathlib import Path

import pytest
from doctor_page import COMMAND, first_of, whole_page
from planted import FAULTS, Fault, healthy

from sparkmirror.doctor.diagnosis import RULES
from sparkmirror.doctor.findings import diagnose

DOCS = Path(__file__).parents[2] / "docs" / "doctor.md"
MISJUDGED = 0
"""Faults whose finding isn't first; 2 of 40 may be."""


def test_the_right_finding_is_first() -> None:
    wrong = {}
    for fault in FAULTS:
        first = first_of(fault)
        if first is None or first.rule != fault.rule:
            wrong[fault.words] = (fault.rule, first)
    assert len(FAULTS) >= 40
    assert len(wrong) <= MISJUDGED, wrong


@pytest.mark.parametrize(("words", "mirror"), healthy(), ids=[words for words, _ in healthy()])
def test_nothing_is_said_of_a_healthy_mirror(words: str, mirror: Fault) -> None:
    now, before = mirror.snapshots
    assert diagnose(now, before) == []
    assert diagnose(now) == []


def test_the_page_is_as_the_rules_are() -> None:
    assert DOCS.read_text() == whole_page(), COMMAND


def test_every_rule_is_planted() -> None:
    """But those of causes that differ in their words only."""
    planted = {fault.rule for fault in FAULTS}
    assert {rule.name for rule in RULES if not rule.name.startswith("parked-")} == planted - {
        name for name in planted if name.startswith("parked-")
    }


def test_rules_explain_only_what_comes_later() -> None:
    names = [rule.name for rule in RULES]
    assert len(set(names)) == len(names)
    for place, rule in enumerate(RULES):
        assert set(rule.explains) <= set(names[place + 1 :]), rule.name
