"""Each selector in each expression of rules and dashboards has a series in a scrape."""

from __future__ import annotations

import functools
import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.metrics.rich_snapshot import RICH
from tests.support.boards import ABSENT, BOARDS, is_absent
from tests.support.deployed import DASHBOARDS, PROMETHEUS, TARGET_LABELS, Selector, panels, queries, rules, selectors

from sparkmirror.look.metrics.collector import MirrorCollector
from sparkmirror.look.metrics.profile import Profile


@functools.cache
def scrape(profiles: tuple[Profile, ...] = tuple(Profile)) -> list[tuple[str, dict[str, str]]]:
    text = MirrorCollector(lambda: RICH, profiles).text().decode()
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    recorded = [(rule["record"], {"flow": "A->B"}) for rule in rules("recording.yml")]
    return [(sample.name, {**TARGET_LABELS, **sample.labels}) for sample in samples] + recorded


def unfilled(expression: str, profiles: tuple[Profile, ...] = tuple(Profile)) -> list[Selector]:
    """The selectors that select nothing."""
    wanted = list(selectors(expression))
    assert wanted, expression
    return [one for one in wanted if not any(one.selects(*sample) for sample in scrape(profiles))]


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_dashboards(path: Path) -> None:
    assert [(title, empty) for title, expression in panels(path) if (empty := unfilled(expression))] == []
    assert [empty for query in queries(path) if "(" in query and (empty := unfilled(query))] == []


@pytest.mark.parametrize("name", ["alerts.yml", "recording.yml"])
def test_rules(name: str) -> None:
    assert [empty for rule in rules(name) if (empty := unfilled(rule["expr"]))] == []


@pytest.mark.parametrize("kind", BOARDS)
def test_boards_of_others_have_data_or_the_page_says_why_not(kind: str) -> None:
    profiles, expressions = BOARDS[kind]
    for asked_for in (profiles, tuple(Profile)):
        missing = [selector for expression in expressions for selector in unfilled(expression, asked_for)]
        assert [selector for selector in missing if not is_absent(selector.name)] == []


def test_no_name_is_there_and_absent() -> None:
    assert [name for name, _ in scrape() if is_absent(name)] == []


def test_each_absent_name_is_one_that_a_board_asks_for() -> None:
    asked_for = {
        selector.name
        for _, expressions in BOARDS.values()
        for expression in expressions
        for selector in selectors(expression)
    }
    unasked = [
        pattern
        for patterns in ABSENT
        for pattern in patterns.split(", ")
        if not any(fnmatchcase(name, pattern) for name in asked_for)
    ]
    assert unasked == []


def test_labels_that_are_grouped_by_are_there() -> None:
    known = {label for _, labels in scrape() for label in labels}
    expressions = [expression for path in DASHBOARDS for _, expression in panels(path)]
    expressions += [rule["expr"] for name in ("alerts.yml", "recording.yml") for rule in rules(name)]
    for expression in expressions:
        for grouped in re.findall(r"\b(?:by|on)\s*\(([^)]*)\)", expression):
            assert {label.strip() for label in grouped.split(",")} <= known | {""}, expression


def test_the_evaluator_finds_what_is_not_there() -> None:
    assert unfilled('sum(sparkmirror_partitions{state="parkd"}) / sparkmirror_lag_records') == [
        Selector("sparkmirror_partitions", (("state", "=", "parkd"),))
    ]
    assert unfilled('kafka_producer_buffer_available_bytes{clientid=~"connector.*"}')
    assert not unfilled('sparkmirror_partitions{state!~"park.*"}')


def test_each_alert_has_its_page() -> None:
    text = (PROMETHEUS.parents[1] / "docs" / "runbook.md").read_text()
    for rule in rules("alerts.yml"):
        assert f"\n## {rule['alert']}\n" in text
        assert rule["annotations"]["runbook_url"] == f"docs/runbook.md#{rule['alert'].lower()}"
