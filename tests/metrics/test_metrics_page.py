"""`docs/metrics.md` has each name with its type and labels, as the collector writes them."""

from __future__ import annotations

from pathlib import Path

from tests.metrics.metric_tables import tables

from sparkmirror.look.metrics import client_names, own, profiles

PAGE = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()


def test_tables_are_as_the_collector_is() -> None:
    assert PAGE.endswith(tables()), "write the output of tests.metrics.metric_tables at the page's end"


def test_bounds_are_as_the_page_says() -> None:
    for number in (
        own.MOST_PARTITIONS,
        own.WORST_PARTITIONS,
        own.MOST_TOPICS,
        own.WORST_TOPICS,
        own.MOST_GROUPS,
        own.WORST_GROUPS,
        profiles.MOST_PARTITIONS,
        profiles.MOST_CHECKPOINTS,
        client_names.MOST_TOPICS,
    ):
        assert f" {number:,} " in PAGE
