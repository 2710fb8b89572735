"""The cluster that a flow copies from: one, for all processes, until an operator says another (R20)."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from tests.support.cut_log import Topic, View

from sparkmirror.exact.durable.claim_log import ClaimLog
from sparkmirror.exact.durable.claims import read_record, source_record
from sparkmirror.exact.durable.source_cluster import SourceCluster, agreed_source


def test_the_first_process_to_say_it_counts_for_all() -> None:
    topic = Topic(8)
    assert ClaimLog(View(topic)).source_cluster() is None
    assert ClaimLog(View(topic)).agree_source(SourceCluster(0, "first")) == SourceCluster(0, "first")
    assert ClaimLog(View(topic)).agree_source(SourceCluster(0, "second")) == SourceCluster(0, "first")
    assert ClaimLog(View(topic)).source_cluster() == SourceCluster(0, "first")


def test_of_two_operators_who_accept_another_source_the_first_counts() -> None:
    topic = Topic(8)
    log = ClaimLog(View(topic))
    log.agree_source(SourceCluster(0, "old"))
    assert ClaimLog(View(topic)).agree_source(SourceCluster(1, "new")) == SourceCluster(1, "new")
    assert ClaimLog(View(topic)).agree_source(SourceCluster(1, "newer")) == SourceCluster(1, "new")
    assert log.source_cluster() == SourceCluster(1, "new"), "a process that had read the one before"
    assert log.agree_source(SourceCluster(2, "old")) == SourceCluster(2, "old"), "there and back"


@given(st.lists(st.builds(SourceCluster, st.integers(0, 4), st.sampled_from("abc"))))
def test_who_speaks_later_changes_nothing_that_was_agreed(proposals: list[SourceCluster]) -> None:
    """All processes agree, however far each has read: what counted is followed only by a next number."""
    counted = [agreed_source(proposals[:read]) for read in range(len(proposals) + 1)]
    for before, after in pairwise(counted):
        assert before == after or (after is not None and after.number > (before.number if before is not None else -1))


def test_a_record_of_the_source_is_nothing_to_a_release_that_does_not_know_it() -> None:
    key, value = source_record(SourceCluster(3, "id"), bytes(16))
    assert read_record(key, value) == SourceCluster(3, "id")
    assert key[2] == 4, "older releases pass over kinds that they don't know"
    assert read_record(key, None) is None
    assert read_record(key, b"\0\1\0") is None
    assert read_record(key, b"\0\1\0\0\0\0") is None
