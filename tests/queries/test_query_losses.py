"""The remedy for what a query's topics at the target have lost has the records copied again."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from sparkmirror.exact.position.route import PartitionPair
from sparkmirror.kafka.cluster.client import TopicLeaders
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.queries import query_logs
from sparkmirror.queries.copied_logs import CopiedLog
from sparkmirror.queries.plan_log import AppendedEnd
from sparkmirror.queries.query_logs import QueryLogs

ROUTES = [PartitionPair("t", "A.t", 0), PartitionPair("u", "A.u", 0)]
IDS = {"A.t": b"1" * 16, "A.u": b"2" * 16, "all": b"3" * 16}


def looked(monkeypatch: pytest.MonkeyPatch, ends: Mapping[TopicPartition, int], lost: str) -> QueryLogs:
    """Return a look at topics in which records end, after one of them has lost its last ten."""
    logs = QueryLogs.__new__(QueryLogs)
    logs._targets = {name: TopicLeaders(name, topic_id, 0, {}) for name, topic_id in IDS.items()}  # noqa: SLF001
    anything: Any = SimpleNamespace(known=lambda *_: [])
    logs._ledger = logs._histories = anything  # noqa: SLF001
    cuts = {at: end - 10 * (at[0] == lost) for at, end in ends.items()}
    monkeypatch.setattr(query_logs, "cut_offsets", lambda *_: cuts)
    written = {at: AppendedEnd(IDS[at[0]].hex(), CopiedLog(end, ())) for at, end in ends.items()}
    logs._look_for_losses(ROUTES, written, ends)  # noqa: SLF001
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
