"""Which patterns of a flow match nothing at its source, and whether anything is left to copy."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.config.model import GroupConfig
from sparkmirror.mirror.sync.pattern_matches import Matches, group_matches, topic_matches
from sparkmirror.mirror.sync.topic_rules import group_filter, topic_rules
from sparkmirror.policy import DefaultGroupFilter
from sparkmirror.snapshot.unmatched_pattern import UnmatchedPattern
from sparkmirror.veil import NAMES_VEIL

A = ClusterConfig(alias="A", bootstrap_servers=("a:1",))
B = ClusterConfig(alias="B", bootstrap_servers=("b:1",))
THERE = ("heartbeats", "mm2-offset-syncs.B.internal", "__consumer_offsets", "B.clicks", "orders.eu", "orders.us")
"""Heartbeats, internal topics, a copy that came from B, and two topics."""


def matches(
    topics: Sequence[str], exclude: Sequence[str] = (), there: Sequence[str] = THERE, **more: object
) -> Matches:
    changes = {"topics": tuple(topics), **({"topics_exclude": tuple(exclude)} if exclude else {}), **more}
    flow = FlowConfig(source=A, target=B).model_copy(update=changes)
    return topic_matches(flow, topic_rules(flow), there)


def test_what_matches_needs_no_word() -> None:
    assert matches([".*"]) == matches(["orders.*"]) == matches(["orders.eu", "orders.us"]) == Matches()


@pytest.mark.parametrize(
    ("topics", "exclude", "says"),
    [
        (["ordrs.*"], [], "no topic of A matches topics = ordrs.* (did you mean orders.eu, orders.us?)"),
        (["a", "x y"], [], "no topic of A matches topics = a; topics = x y (no topic's name has a blank"),
        ([".*"], [".*"], "topics.exclude leaves out every topic that topics matches: .* matches orders.eu"),
        ([".*"], ["x", "orders.*"], "topics matches: orders.* matches orders.eu"),
        (["B.clicks"], [], "no topic of A matches topics = B.clicks"),
        (["__consumer_offsets"], [], "no topic of A matches topics = __consumer_offsets"),
    ],
)
def test_nothing_to_copy(topics: list[str], exclude: list[str], says: str) -> None:
    assert says in matches(topics, exclude).nothing


def test_patterns_behind_a_reference_are_not_shown() -> None:
    """Neither where nothing is copied nor where one of several matches nothing."""
    NAMES_VEIL.put("${file:secrets:topics}", "Marker.*, x:Marker")
    hidden = [
        matches(["Marker.*"]),
        matches(["Marker.*", ""], there=["Marker"], exclude=["x"]),
        matches([".*"], ["Marker.*", ".*"], there=["Marker.a"]),
        matches(["orders.*", "x:Marker"]),
    ]
    assert "Marker" not in str([(each.nothing, each.unmatched) for each in hidden]).replace("matches Marker.a", "")
    assert hidden[3].unmatched[0].words.startswith("topics = ${file:secrets:topics} (no topic's name has `:`")


def test_a_source_of_heartbeats_alone_has_nothing_to_copy_unless_they_are_asked_for() -> None:
    assert "A has no topic that sparkmirror's principal may describe" in matches([".*"], there=THERE[:4]).nothing
    assert matches(["heartbeats"], there=THERE[:4]) == Matches()


def test_one_pattern_of_several() -> None:
    found = matches(["orders.eu", "ordrs.us", "a;b"])
    assert found.nothing == ""
    slip, wrong = found.unmatched
    assert (slip.words, slip.fault) == ("topics = ordrs.us (did you mean orders.us, orders.eu?)", "")
    assert wrong.fault.startswith("`;` separates no patterns")


def test_an_exclusion_that_matches_nothing_is_told_if_it_is_a_slip() -> None:
    """The defaults, and those for topics to come, are not."""
    assert matches([".*"], ["later.*"]) == Matches()
    assert matches([".*"], ["ordrs.us"]).unmatched == (
        UnmatchedPattern("topics.exclude", "ordrs.us", nearest=("orders.us", "orders.eu")),
    )


class OnlyBills:
    """A filter of the user's own."""

    def should_replicate_topic(self, topic: str) -> bool:
        return topic == "bills"


def test_a_filter_of_the_users_own_is_judged_by_what_it_accepts() -> None:
    changes = {"topic_filter_class": f"{__name__}:OnlyBills"}
    assert matches(["ordrs"], **changes).nothing == f"{__name__}:OnlyBills accepts no topic of A"
    assert matches(["ordrs"], there=["bills"], **changes) == Matches()


GROUPS = ("billing", "shop")


def of_groups(groups: Sequence[str], exclude: Sequence[str] = ("x",), there: Sequence[str] = GROUPS) -> Matches:
    group = GroupConfig(groups=tuple(groups), groups_exclude=tuple(exclude))
    flow = FlowConfig(source=A, target=B, group=group)
    wanted = group_filter(flow)
    assert isinstance(wanted, DefaultGroupFilter)
    return group_matches(flow, wanted, there)


def test_groups() -> None:
    assert of_groups([".*"]) == of_groups(["shop", "bill.*"]) == Matches()
    assert of_groups(["billng"]).nothing == "no consumer group of A matches groups = billng (did you mean billing?)"
    assert (
        of_groups([".*"], [".*"]).nothing == "groups.exclude leaves out every consumer group of A that groups matches"
    )
    assert "A has no consumer group" in of_groups([".*"], there=()).nothing
    assert of_groups(["shop", "billng"]) == Matches(unmatched=(UnmatchedPattern("groups", "billng", "", ("billing",)),))


def test_news_are_told_once() -> None:
    before = of_groups(["shop", "billng"])
    assert before.news(Matches()) == ["nothing matches groups = billng (did you mean billing?)"]
    assert before.news(before) == []
    nothing = of_groups(["billng"])
    assert nothing.news(before) == [nothing.nothing]
    assert nothing.news(nothing) == []
