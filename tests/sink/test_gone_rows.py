"""An attempt without the rows of an earlier one, as the source no longer has their records."""

from __future__ import annotations

import pytest
from lab import KafkaCluster
from tests.sink.one_partition import attempt, begin, in_order, rows, take_rest, values
from tests.sink.sink_query import Query
from tests.support.loss_tools import delete_records

from sparkmirror.errors import ClusterUnreachable, RowsChanged, RowsInDoubt
from sparkmirror.kafka.wire.codecs import Codec
from sparkmirror.sink import task_writing
from sparkmirror.sink.agreement import MicroBatch
from sparkmirror.sink.appender import TaskAppender
from sparkmirror.sink.audit import audit
from sparkmirror.sink.fencing import counts_at_rest
from sparkmirror.sink.order import GoneRows
from sparkmirror.sink.task_writing import TaskWriter
from sparkmirror.sink.writing import BatchWriter

pytestmark = pytest.mark.broker


def test_rows_that_are_gone_are_left_and_the_others_come_behind(query: Query) -> None:
    order = query.order(0)
    attempt(order, 0, 1, 2, 3, 4)
    with pytest.raises(RowsChanged, match="3 records that an earlier attempt"):
        attempt(order, 3, 4, 5)
    with pytest.raises(RowsChanged):
        attempt(order._replace(gone={(query.topic, 0): GoneRows(2)}), 3, 4, 5)
    assert values(query) == [0, 1, 2, 3, 4]
    leaving = order._replace(gone={(query.topic, 0): GoneRows(3, is_told=False)})
    ranges = attempt(leaving, 3, 4, 5, 6)
    assert [(each.records, each.earlier, each.gone, each.is_held) for each in ranges] == [(7, 2, 3, False)]
    audit(query.client, leaving, ranges)
    assert values(query) == [0, 1, 2, 3, 4, 5, 6]


def test_rows_wait_until_what_is_lost_before_them_is_told(query: Query) -> None:
    order = query.order(0)
    attempt(order, 0, 1)
    held = order._replace(gone={(query.topic, 0): GoneRows(2, is_told=False)})
    ranges = attempt(held, 5, 6)
    assert [(each.records, each.gone, each.is_held) for each in ranges] == [(2, 2, True)]
    audit(query.client, held, ranges)
    assert values(query) == [0, 1]
    (told,) = attempt(order._replace(gone={(query.topic, 0): GoneRows(2)}), 5, 6)
    assert (told.records, told.gone, told.is_held) == (4, 2, False)
    assert values(query) == [0, 1, 5, 6]


def test_a_row_equal_to_one_that_is_gone_is_refused(query: Query) -> None:
    """Nothing tells whether it is appended already, but where order does."""
    order = query.order(0)._replace(gone={(query.topic, 0): GoneRows(2)})
    attempt(order, 0, 1)
    with pytest.raises(RowsInDoubt, match="some of the 2 records that an earlier attempt"):
        attempt(order, 1, 5)
    assert values(query) == [0, 1]
    attempt(order, 5, 1)
    assert values(query) == [0, 1, 1, 5]


def test_a_row_that_only_an_older_attempt_has_is_not_appended_behind_later_ones(query: Query) -> None:
    """The source may have compacted it, or deleted it with all before."""
    order = query.order(0)._replace(is_ordered=True)
    older = TaskAppender(order, window_bytes=1)
    older.take(rows(0, 1))
    attempt(order._replace(gone={(query.topic, 0): GoneRows(4)}), 4, 5)
    with pytest.raises(RowsChanged, match="records that an earlier attempt"):
        take_rest(older, 2, 3, 4, 5)
    assert in_order(query) == [0, 1, 4, 5]


def test_a_writer_writes_no_rows(query: Query) -> None:
    """Without rows, all that earlier attempts had must be gone."""
    order, at = query.order(3), (query.topic, 0)
    writer = BatchWriter(query.config, query.topic, Codec(0), is_gathered=False)
    attempt(order, 0, 1, 2)
    assert writer.topics(order.batch) == [query.topic]
    with pytest.raises(RowsChanged, match="its leader has 3 records of batch 3, and the tasks have 0"):
        writer.write(None, order.batch)
    (left,) = writer.write(None, order.batch, {at: GoneRows(3)})
    assert (left.records, left.gone, left.first_offset, left.last_offset) == (3, 3, 0, 2)


def test_a_batch_that_was_written_before_tells_nothing_of_the_next_ones_attempts(query: Query) -> None:
    """After a rollback an older batch comes again: the next may have been tried a day ago."""
    order, at = query.order(3), (query.topic, 0)
    attempt(order, 0, 1, 2)
    writer = BatchWriter(query.config, query.topic, Codec(0), is_gathered=False)
    writer.write(None, order.batch, {at: GoneRows(3)})
    assert writer._order(query.client, query.order(4).batch).first_attempt_ms == order.first_attempt_ms  # noqa: SLF001


def test_what_is_known_of_earlier_attempts_is_in_the_tasks_order(query: Query) -> None:
    begins, made_ms = {(query.topic, 0): 4}, query.order(3).first_attempt_ms + 99_000
    writer = BatchWriter(query.config, query.topic, Codec(0), is_gathered=False)
    writer.expect(begins, made_ms, is_repeated=True)
    order = writer._order(query.client, query.order(3).batch)  # noqa: SLF001
    assert (order.begins, order.first_attempt_ms, order.is_repeated) == (begins, made_ms, True)


def test_a_task_that_found_all_its_rows_tells_nothing_of_the_next_batch(
    query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest: dict[object, tuple[int, int]] = {}
    monkeypatch.setattr(task_writing, "_newest", newest)
    writer = TaskWriter(cluster=query.config, topic=query.topic, codec=Codec(0), in_turn=True)
    batch = MicroBatch(query.name, 3)
    writer.append(batch, [rows(0, 1)])
    assert [number for number, _ in newest.values()] == [3]
    newest.clear()
    (again,) = writer.append(batch, [rows(0, 1)])[1]
    assert (again.earlier, newest) == (2, {})


def test_fewer_records_than_were_counted_are_not_written_behind(query: Query) -> None:
    """A loss was told by the count: since then an unclean leader may have cut the log."""
    order, at = query.order(3), (query.topic, 0)
    attempt(order, 0, 1)
    with pytest.raises(ClusterUnreachable, match="it had 3 records of this batch and has 2 now: its log was cut"):
        attempt(order._replace(gone={at: GoneRows(3, is_told=False, counted=3)}), 5, 6)
    assert values(query) == [0, 1]
    attempt(order._replace(gone={at: GoneRows(3, counted=2)}), 5, 6)
    assert values(query) == [0, 1, 5, 6]


@pytest.mark.parametrize("deleted", [2, 6])
def test_records_that_the_target_deleted_since_are_counted_and_in_doubt(
    query: Query, target_cluster: KafkaCluster, deleted: int
) -> None:
    """The leader knows how many there were; nothing is appended again, or told as lost."""
    order = query.order(0)
    begin(order, *range(6))
    delete_records(target_cluster, query.topic, 0, deleted)
    assert counts_at_rest(query.client, order, lambda: [query.topic]) == {(query.topic, 0): 6}
    for leave in (None, {(query.topic, 0): GoneRows(2, counted=6)}):
        with pytest.raises(RowsInDoubt, match=f"appended 6 records, and {6 - deleted} are left") as raised:
            attempt(order._replace(gone=leave), *range(6))
        assert raised.value.place == (query.topic, 0)
    assert values(query) == [*range(deleted, 6)]
