"""An attempt without the rows of an earlier one, as the source no longer has their records."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from kafka import KafkaConsumer, TopicPartition
from lab import KafkaCluster
from test_attempts import Query

from sparkmirror.errors import AttemptFenced, ClusterUnreachable, RowsChanged, RowsInDoubt
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.kafka.wire.codecs import Codec
from sparkmirror.sink import agreement, appender, read_back, task_writing
from sparkmirror.sink.agreement import MicroBatch, SinkAgreement
from sparkmirror.sink.appender import TaskAppender
from sparkmirror.sink.audit import audit
from sparkmirror.sink.order import AppendedRange, AppendOrder, GoneRows
from sparkmirror.sink.read_back import BatchProducer, LeaderPlace, last_sequence
from sparkmirror.sink.task_writing import TaskWriter
from sparkmirror.sink.writing import BatchWriter

pytestmark = pytest.mark.broker


@pytest.fixture
def query(target_cluster: KafkaCluster, topic_name: str) -> Iterator[Query]:
    made = Query(target_cluster, topic_name)
    yield made
    made.client.close()


def rows(*offsets: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {
            "value": pa.array([b"%d" % offset for offset in offsets], pa.binary()),
            "partition": pa.array([0] * len(offsets), pa.int32()),
        }
    )


def attempt(order: AppendOrder, *offsets: int) -> list[AppendedRange]:
    appender = TaskAppender(order)
    try:
        appender.expect([(order.topic, 0)])
        if offsets:
            appender.take(rows(*offsets))
        return appender.finish()
    finally:
        appender.close()


def control_end(query: Query) -> int:
    agreement = SinkAgreement(query.client, query.name, 0)
    agreement.producer()
    return agreement.read_to


def take_rest(appender: TaskAppender, *offsets: int) -> None:
    try:
        appender.take(rows(*offsets))
        appender.finish()
    finally:
        appender.close()


def in_order(query: Query) -> list[int]:
    consumer = KafkaConsumer(bootstrap_servers=list(query.config.bootstrap_servers), enable_auto_commit=False)
    at = TopicPartition(query.topic, 0)
    consumer.assign([at])
    consumer.seek_to_beginning()
    (end,) = consumer.end_offsets([at]).values()
    seen: list[int] = []
    while consumer.position(at) < end:
        seen += [int(record.value) for records in consumer.poll(1000).values() for record in records]
    consumer.close()
    return seen


def values(query: Query) -> list[int]:
    return sorted(int(value) for value in query.values().elements())


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


def test_an_older_attempt_appends_nothing_once_its_batch_is_taken_up(query: Query) -> None:
    """Counts include what it appends while it may not have seen the fence."""
    order, at = query.order(3), (query.topic, 0)
    order = order._replace(agreed_to=control_end(query))
    writer = BatchWriter(query.config, query.topic, Codec(0), is_gathered=False)
    assert not writer.is_fenced(order.batch)
    old = TaskAppender(order, window_bytes=1)
    old.take(rows(0))
    old.take(rows(1))
    with ThreadPoolExecutor(1) as pool:
        counted = pool.submit(writer.take_up, order.batch)
        time.sleep(2)
        old.take(rows(2))
        assert counted.result() == {at: 3}
    with pytest.raises(AttemptFenced, match="another process has taken up batch 3"):
        take_rest(old, 3)
    with pytest.raises(AttemptFenced, match="another process has taken up batch 3"):
        attempt(order, 0, 1, 2, 3)
    assert in_order(query) == [0, 1, 2]


def test_a_process_that_was_fenced_writes_once_it_has_taken_up_the_batch_again(query: Query) -> None:
    order, at = query.order(3), (query.topic, 0)
    attempt(order, 0, 1, 2)
    first, second = (BatchWriter(query.config, query.topic, Codec(0), is_gathered=False) for _ in range(2))
    assert first.take_up(order.batch) == {at: 3}
    assert second.is_fenced(order.batch)
    assert not first.is_fenced(order.batch)
    assert second.take_up(order.batch) == {at: 3}
    assert first.is_fenced(order.batch)
    with pytest.raises(AttemptFenced, match="another process has taken up batch 3 of the query"):
        first.write(None, order.batch, {at: GoneRows(3)})
    (left,) = second.write(None, order.batch, {at: GoneRows(3)})
    assert left.gone == 3
    attempt(query.order(4), 4)
    with pytest.raises(AttemptFenced, match="a newer batch of the query than 3 has begun"):
        second.take_up(order.batch)


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


def test_a_batch_is_taken_up_before_anybody_has_created_the_control_topic(
    query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a first attempt that failed before it had an order."""
    monkeypatch.setattr(agreement, "CONTROL_TOPIC", f"{query.topic}-control")
    batch = MicroBatch(query.name, 3)
    assert not BatchWriter(query.config, query.topic, Codec(0), is_gathered=False).is_fenced(batch)
    assert BatchWriter(query.config, query.topic, Codec(0), is_gathered=False).take_up(batch) == {}


def test_a_batchs_fences_leave_one_record(query: Query) -> None:
    one = SinkAgreement(query.client, query.name, 0)
    fences = [one.fence(number) for number in (3, 4, 3)]
    entries, _ = TopicLog(query.client, agreement.CONTROL_TOPIC).read(0, fences[0])
    keys = {entry.offset: entry.key for entry in entries}
    assert keys[fences[0]] == keys[fences[2]] != keys[fences[1]]
    assert [SinkAgreement(query.client, query.name, 0).newest_fence(number) for number in (3, 4, 5)] == [
        fences[2],
        fences[1],
        -1,
    ]


@pytest.fixture
def fenced_at(query: Query, monkeypatch: pytest.MonkeyPatch) -> Callable[[TaskAppender, str], None]:
    """Have an attempt's step take so long that its batch is fenced meanwhile."""
    monkeypatch.setattr(appender, "MAX_CONFIRMATION_AGE_S", 1.0)

    def have(attempt: TaskAppender, step: str) -> None:
        work, due = getattr(attempt, step), [True]

        def slow(*args: object, **more: object) -> object:
            if due:
                due.clear()
                SinkAgreement(query.client, query.name, 0).fence(3)
                time.sleep(1.5)
            return work(*args, **more)

        monkeypatch.setattr(attempt, step, slow)

    return have


@pytest.mark.parametrize("step", ["_learn_line", "_requests"], ids=["reads logs", "connects"])
def test_an_attempt_whose_step_took_long_looks_for_the_fence_again(
    step: str, query: Query, fenced_at: Callable[[TaskAppender, str], None]
) -> None:
    order = query.order(3)._replace(agreed_to=control_end(query))
    old = TaskAppender(order, window_bytes=1)
    old.take(rows(0))
    if step == "_learn_line":
        time.sleep(1.5)  # so it looks, before it appends
    fenced_at(old, step)
    with pytest.raises(AttemptFenced, match="another process has taken up batch 3"):
        take_rest(old, 1)
    assert in_order(query) == [0]


def test_the_log_is_searched_back_to_an_earlier_batch(query: Query, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cold log may be large, and whoever takes up a batch reads it at once."""
    for number in range(2):
        for start in range(0, 300, 100):
            attempt(query.order(number), *range(100 * number, 100 * number + start + 100))
    windows: list[int] = []
    read = read_back._read  # noqa: SLF001 - each window

    def noted(client: ClusterClient, place: LeaderPlace, writer: BatchProducer, start: int, end: int) -> object:
        windows.append(end - start)
        return read(client, place, writer, start, end)

    monkeypatch.setattr(read_back, "_read", noted)
    place = LeaderPlace(query.topic, 0, query.client.metadata([query.topic])[query.topic].topic_id, 1)
    producer_id = query.order(0).producer_id
    lasts = [last_sequence(query.client, place, BatchProducer(producer_id, epoch), 0) for epoch in (2, 1, 0)]
    assert lasts == [-1, 299, 299]
    assert windows == [256, 256, 256, 600]
