"""Verifications in a migration's evidence count until producers next begin to move."""

from __future__ import annotations

from typing import Any

import pytest

from sparkmirror.migrate.file import MigrationFile
from sparkmirror.migrate.verifications import TopicVerdict, VerifiedFlow, verifications

FILE = MigrationFile.model_validate(
    {
        "mirror": "mm2.properties",
        "type": "producers-first",
        "sets": [
            {"name": "shop", "topics": ["orders", "returns"], "groups": []},
            {"name": "stock", "topics": ["stock"], "groups": []},
        ],
    }
)


def verified(*topics: str, began_ms: int = 1, flow: str = "A->B") -> dict[str, Any]:
    verdicts = {topic: TopicVerdict(words="equal", good=True) for topic in topics}
    return VerifiedFlow(flow=flow, began_ms=began_ms, ranges=1, all_ranges=2, topics=verdicts).line(FILE)


def begins(who: str, name: str = "shop") -> dict[str, Any]:
    return {"set": name, "who": who, "to": "target", "what": "begins", "words": ""}


def test_a_line_comes_back_with_the_sets_topics_only() -> None:
    read = verifications([verified("orders", "of-no-set")], FILE)
    assert read == {
        ("A->B", "orders"): VerifiedFlow(
            flow="A->B",
            began_ms=1,
            ranges=1,
            all_ranges=2,
            topics={"orders": TopicVerdict(words="equal", good=True)},
        )
    }


@pytest.mark.parametrize(("who", "counts"), [("producers", False), ("all", False), ("consumers", True)])
def test_it_counts_until_producers_move(who: str, counts: bool) -> None:
    """Also the other flow's: what is equal to a side that nobody writes to will not be for long."""
    lines = [verified("orders"), verified("orders", flow="B->A"), begins(who)]
    assert bool(verifications(lines, FILE)) is counts


def test_other_sets_and_later_verifications_count() -> None:
    lines = [verified("orders", "returns", "stock"), begins("producers"), verified("orders", began_ms=2)]
    read = verifications(lines, FILE)
    assert {place: each.began_ms for place, each in read.items()} == {("A->B", "orders"): 2, ("A->B", "stock"): 1}


def test_foreign_lines_are_passed_over() -> None:
    assert verifications([{"what": "verified", "flow": 7}, {}, {"what": "begins", "who": []}], FILE) == {}
