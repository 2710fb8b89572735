"""The remedy for what a query's topics at the target have lost has the records copied again."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from sparkmirror.exact.position.cause import Cause
from sparkmirror.exact.position.route import PartitionPair
from sparkmirror.kafka.cluster.client import TopicLeaders
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.queries import query_logs
from sparkmirror.queries.copied_logs import CopiedLog, LogsNow
from sparkmirror.queries.plan_log import NOT_KNOWN, PlannedBatch, PlannedRange, TargetEnd
from sparkmirror.queries.query_logs import QueryLogs

ROUTES = [PartitionPair("t", "A.t", 0), PartitionPair("u", "A.u", 0)]
IDS = {"A.t": b"1" * 16, "A.u": b"2" * 16, "all": b"3" * 16}


def looked(monkeypatch: pytest.MonkeyPatch, ends: Mapping[TopicPartition, int], lost: str) -> QueryLogs:
    """Return a look at topics in which records end, after one of them has lost its last ten."""
    logs = QueryLogs.__new__(QueryLogs)
    topics = {name: TopicLeaders(name, topic_id, 0, {}) for name, topic_id in IDS.items()}
    logs._there = LogsNow(topics, ends, lambda at: ends[at])  # noqa: SLF001
    anything: Any = SimpleNamespace(known=lambda *_: [])
    logs._ledger = logs._histories = anything  # noqa: SLF001
    cuts = {at: end - 10 * (at[0] == lost) for at, end in ends.items()}
    monkeypatch.setattr(query_logs, "cut_offsets", lambda *_: cuts)
    written = {at: TargetEnd(IDS[at[0]].hex(), CopiedLog(end, ())) for at, end in ends.items()}
    logs._look_for_losses(ROUTES, written)  # noqa: SLF001
    return logs


def test_a_topic_of_another_name_is_copied_again_with_all_topics_of_the_query(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deleted alone it would only get later records, as the plans know the earlier ones as copied."""
    logs = looked(monkeypatch, {("A.t", 0): 30, ("all", 1): 50}, "all")
    (loss,) = logs.lost_elsewhere
    assert (loss.target_topic, loss.partition, loss.first, loss.end) == ("all", 1, 40, 50)
    assert loss.words.endswith("; stop the flow, delete A.t, A.u, all, and start it to have all of them copied again")


@pytest.mark.parametrize("elsewhere", [True, False])
def test_a_copy_is_copied_again_alone_if_its_records_go_nowhere_else(
    monkeypatch: pytest.MonkeyPatch, elsewhere: bool
) -> None:
    """Else the others would have the records twice."""
    ends = {("A.t", 0): 30, ("A.u", 0): 20} | ({("all", 0): 9} if elsewhere else {})
    logs = looked(monkeypatch, ends, "A.t")
    assert logs.lost_elsewhere == []
    words = logs.lost["A.t", 0].words
    assert ("; delete A.t to have it copied again" in words) is not elsewhere
    assert ("; stop the flow, delete A.t, A.u, all, and start it" in words) is elsewhere


@pytest.mark.parametrize("elsewhere", [True, False])
@pytest.mark.parametrize("created_again", [True, False])
def test_a_copy_that_is_created_again_waits_if_its_records_went_elsewhere(elsewhere: bool, created_again: bool) -> None:
    """Its records would be there twice. A former topic's copy, or another topic of the name, has none of them."""
    logs = QueryLogs.__new__(QueryLogs)
    ids = IDS | {"A.former": b"4" * 16, "gone": b"5" * 16}
    topics = {name: TopicLeaders(name, topic_id, 0, {}) for name, topic_id in ids.items()}
    logs._there = LogsNow(topics, {}, lambda _: 0)  # noqa: SLF001
    old = b"9" * 16 if created_again else ids["A.t"]
    copied = {"t": old, "u": ids["A.u"], "former": ids["A.former"]}
    ranges = {(name, 0): PlannedRange(5, 9, "0a", its.hex()) for name, its in copied.items()}
    ranges["new", 0] = PlannedRange(0, 0, "0a", NOT_KNOWN)
    ends = {"A.former": ids["A.former"], "gone": b"8" * 16} | ({"all": ids["all"]} if elsewhere else {})
    plans: Any = SimpleNamespace(ends={(name, 0): TargetEnd(its.hex(), CopiedLog(9, ())) for name, its in ends.items()})
    halt = logs.created_again(PlannedBatch(3, ranges), plans, {at: f"A.{at[0]}" for at in ranges})
    assert logs.created_again(None, plans, {}) is None
    if not (elsewhere and created_again):
        assert halt is None
        return
    assert halt is not None
    assert halt.cause is Cause.RECREATED
    assert halt.reason.startswith("target topic A.t was deleted and created again")
    assert "delete A.former, A.t, all, and start it" in halt.reason
