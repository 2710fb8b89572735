"""Attempts at once, that die at each point and order their rows each in its own way: every record once."""

from __future__ import annotations

import random
import time
from collections import Counter

import pyarrow as pa
import pytest
from kafka import KafkaProducer
from lab import KafkaCluster
from tests.sink.attempts import PARTITIONS, expected, rows, run_attempts, value
from tests.sink.sink_query import Query

from sparkmirror.errors import AttemptFenced, RowsChanged, RowsRefused
from sparkmirror.kafka.wire.codecs import Codec
from sparkmirror.sink import appender
from sparkmirror.sink.agreement import EPOCHS, SinkAgreement
from sparkmirror.sink.appender import TaskAppender
from sparkmirror.sink.audit import audit

pytestmark = pytest.mark.broker

ROWS = 60
LZ4 = Codec(3)


def run_batches(query: Query, batches: int, seed: int, *, at_us: int | None = None) -> Counter[str]:
    """Run each batch's attempts, three at once, and the driver's audit of the one that reached its end."""
    ended: Counter[str] = Counter()
    for number in range(batches):
        order = query.order(number)
        told = run_attempts(
            order,
            range(number * ROWS, (number + 1) * ROWS),
            at_once=3,
            seed=seed * 1000 + number,
            dies=0.03,
            at_us=at_us,
        )
        assert told.errors == []
        for ranges in told.ranges:
            assert sum(each.records for each in ranges) == ROWS
            audit(query.client, order, ranges)
        ended += told.ended
    return ended


@pytest.mark.parametrize("seed", range(2))
def test_every_record_is_there_once(seed: int, query: Query) -> None:
    at_us = None if seed % 2 else int(time.time() * 1e6)
    ended = run_batches(query, 6, seed, at_us=at_us)
    assert query.values() == expected(6 * ROWS)
    assert ended["reached its end"] >= 6


@pytest.mark.full
@pytest.mark.parametrize("seed", range(10, 20))
def test_every_record_is_there_once_of_two_thousand_attempts(seed: int, query: Query) -> None:
    """Ten seeds of seventy batches, three attempts at least of each."""
    ended = run_batches(query, 70, seed, at_us=int(time.time() * 1e6) if seed % 2 else None)
    print(f"seed {seed}: {dict(ended)}")
    assert ended.total() >= 210
    assert any(place.startswith("died") for place in ended)
    assert query.values() == expected(70 * ROWS)


def test_timestamps_that_the_broker_replaces(target_cluster: KafkaCluster, topic_name: str) -> None:
    query = Query(target_cluster, topic_name, **{"message.timestamp.type": "LogAppendTime"})
    run_batches(query, 3, 5, at_us=int(time.time() * 1e6) - 1_000_000)
    assert query.values() == expected(3 * ROWS)


def test_a_topic_that_takes_only_small_batches(target_cluster: KafkaCluster, topic_name: str) -> None:
    query = Query(target_cluster, topic_name, **{"max.message.bytes": "300"})
    run_batches(query, 3, 6)
    appender = TaskAppender(query.order(3))
    appender.take(rows(list(range(3 * ROWS, 9 * ROWS)), None))
    ranges = appender.finish()
    assert sum(each.records for each in ranges) == 6 * ROWS
    audit(query.client, query.order(3), ranges)
    assert query.values() == expected(9 * ROWS)
    large = pa.RecordBatch.from_pydict(
        {"value": pa.array([b"small", random.randbytes(400)]), "partition": pa.array([1, 1], pa.int32())}
    )
    appender = TaskAppender(query.order(4))
    appender.take(large)
    with pytest.raises(RowsRefused, match=f"a row for {topic_name}-1 is larger .* raise the topic's max.message.bytes"):
        appender.finish()
    assert query.values() == expected(9 * ROWS) + Counter([b"small"])


def test_rows_that_differ_stop_the_batch_and_come_once(query: Query) -> None:
    """Rows that only the first attempt has: the next one finds them, and appends nothing more to their partition."""
    order = query.order(0)
    first = TaskAppender(order, window_bytes=1)
    first.take(rows(list(range(9)), None))
    second = TaskAppender(order, window_bytes=1)
    second.take(rows([*range(6), *range(30, 60)], None))
    with pytest.raises(RowsChanged, match="3 records that an earlier attempt of batch 0 appended are not among"):
        second.finish()
    assert not query.values() - expected(60), "no row is there twice"
    assert query.values(0) == Counter(map(value, [0, 1, 2, 6, 7, 8]))


def test_an_older_batch_is_fenced(query: Query) -> None:
    numbers = list(range(12))
    newer = TaskAppender(query.order(1))
    newer.take(rows(numbers, None))
    newer.finish()
    older = TaskAppender(query.order(0))
    older.take(rows([100, 101], None))
    with pytest.raises(AttemptFenced, match="a newer batch of the query than 0 has begun"):
        older.finish()
    assert query.values() == expected(12)


def test_an_older_batch_that_stood_still_is_fenced_by_its_look(query: Query) -> None:
    older = TaskAppender(query.order(0), window_bytes=1)
    older.take(rows(list(range(12)), None))
    newer = TaskAppender(query.order(1))
    newer.take(rows(list(range(12, 24)), None))
    newer.finish()
    stand_still(older)
    with pytest.raises(AttemptFenced, match="a newer batch of the query than 0 has begun"):
        older.take(rows([100, 101], None))
    assert query.values() == expected(24)


def test_records_of_the_batch_before_are_none_of_this_one(query: Query) -> None:
    """An attempt that looks before its first append finds the older batch's last sequence."""
    before = TaskAppender(query.order(0))
    before.take(rows(list(range(12)), None))
    before.finish()
    attempt = TaskAppender(query.order(1))
    stand_still(attempt)
    attempt.take(rows(list(range(12, 24)), None))
    ranges = attempt.finish()
    assert [each.earlier for each in ranges] == [0, 0]
    assert query.values() == expected(24)


def test_it_waits_for_its_rows_as_long_as_they_take(query: Query, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time in which nothing is appended begins with a doubt, not with the attempt."""
    order = query.order(0)
    first = TaskAppender(order, window_bytes=1)
    first.take(rows(list(range(9)), None))
    again = TaskAppender(order)
    monkeypatch.setattr(appender, "_PATIENCE_S", 0.05)
    time.sleep(0.1)
    again.take(rows(list(range(24)), None))
    assert sum(each.earlier for each in again.finish()) == 9


def stand_still(attempt: TaskAppender) -> None:
    """As if it had heard nothing for an hour."""
    attempt._heard -= 3600  # noqa: SLF001 - no test waits so long


def test_a_generation_has_a_producer_of_its_own(query: Query) -> None:
    last, first = query.order(EPOCHS - 1), query.order(EPOCHS)
    assert (last.producer_epoch, first.producer_epoch) == (EPOCHS - 1, 0)
    assert last.producer_id != first.producer_id
    for number, order in enumerate((last, first)):
        appender = TaskAppender(order)
        appender.take(rows(list(range(number * 12, number * 12 + 12)), None))
        appender.finish()
    assert query.values() == expected(24)


def test_the_first_proposal_counts(query: Query) -> None:
    others = [SinkAgreement(query.client, query.name, 0) for _ in range(3)]
    first = others[0].producer()
    assert [each.producer() for each in others] == [first] * 3
    late = SinkAgreement(query.client, query.name, 0)
    assert late._propose(("producer",), [1, 2]) == list(first), "two at once: the lowest offset counts"  # noqa: SLF001
    assert others[1].partitions("orders", 4) == 4
    assert others[2].partitions("orders", 6) == 4, "however many there are by now"
    assert SinkAgreement(query.client, query.name, 1).producer() != first


def test_rows_that_brokers_would_forget_are_refused(query: Query) -> None:
    at_us = int((time.time() - 23.5 * 3600) * 1e6)
    appender = TaskAppender(query.order(0))
    with pytest.raises(RowsRefused, match="and brokers forget who appended records from before"):
        appender.take(rows([1, 2, 3], at_us))
    assert query.values() == Counter()


def test_a_partition_that_is_not_there_is_refused(query: Query) -> None:
    appender = TaskAppender(query.order(0)._replace(topic="nowhere"))
    with pytest.raises(RowsRefused, match="column topic: cluster B has no topic nowhere: create it first"):
        appender.take(rows([1], None))


def test_the_audit_sees_two_tasks_and_other_counts(query: Query) -> None:
    order = query.order(0)
    appender = TaskAppender(order)
    appender.take(rows(list(range(12)), None))
    ranges = appender.finish()
    audit(query.client, order, ranges)
    with pytest.raises(RowsChanged, match="two tasks of batch 0 have rows for it"):
        audit(query.client, order, [*ranges, ranges[0]])
    with pytest.raises(RowsChanged, match="its leader has 6 records of batch 0, and the tasks have 5"):
        audit(query.client, order, [ranges[0], ranges[1]._replace(records=5)])
    with pytest.raises(RowsChanged, match="its leader has 6 records of batch 0, and the tasks have 0"):
        audit(query.client, order, ranges[:1])
    with pytest.raises(RowsChanged, match="its leader has 6 records of batch 0, and the tasks have 0"):
        audit(query.client, order, [])
    anywhere = order._replace(topic="")
    audit(query.client, anywhere, [], ["deleted-since"])
    with pytest.raises(RowsChanged, match="its leader has 6 records of batch 0, and the tasks have 0"):
        audit(query.client, anywhere, [], [query.topic])


def test_records_are_read_back_from_below_those_of_others(query: Query) -> None:
    order = query.order(0)
    first = TaskAppender(order, window_bytes=1)
    first.take(rows(list(range(9)), None))
    producer = KafkaProducer(bootstrap_servers=list(query.config.bootstrap_servers), linger_ms=50)
    for number in range(4_000):
        producer.send(query.topic, b"of another", partition=number % PARTITIONS)
    producer.close()
    again = TaskAppender(order)
    again.take(rows(list(range(24)), None))
    assert sum(each.earlier for each in again.finish()) == 9
    assert query.values() == expected(24) + Counter({b"of another": 4_000})
