"""The recorded answers are those of all requests, and `docs/connect.md` tells each difference."""

from __future__ import annotations

import re
from pathlib import Path

from tests.connect.compare import reasons, recorded
from tests.support.rest_cases import rest_cases

PAGE = Path(__file__).parents[2] / "docs" / "connect.md"


def test_each_request_has_its_row() -> None:
    cases = [(case.name, f"{case.method} {case.path}") for case in rest_cases("source:9092", "target:9092")]
    assert [(row.case, row.request) for row in recorded()] == cases


def test_another_status_has_a_reason() -> None:
    assert [row.case for row in recorded() if row.ours != row.real and not row.reason] == []


def test_the_page_tells_each_difference() -> None:
    section = PAGE.read_text("utf-8").partition("## Differences from Connect")[2]
    told = re.findall(r"^\| [^|]+ \| (.+) \|$", section, re.MULTILINE)
    assert [reason for reason in sorted(set(reasons().values())) if reason not in told] == []
    assert f"{len(recorded())} requests" in section
    assert f"{len(recorded()) - len(reasons())} answers" in section
