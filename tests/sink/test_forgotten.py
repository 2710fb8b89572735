"""Brokers that have forgotten a query's producer, as after a day without its driver: the log tells what is there."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing

import pytest
from kafka import KafkaProducer
from lab import KafkaCluster
from tests.sink.attempts import expected, rows, value
from tests.sink.one_partition import attempt, begin, in_order
from tests.sink.sink_query import Query
from tests.support import mirror_process as mp
from tests.support.loss_tools import delete_records

from sparkmirror.clock import wall_ms
from sparkmirror.errors import RowsChanged, RowsInDoubt, UnfitTarget
from sparkmirror.kafka.cluster.producers import describe_producers
from sparkmirror.kafka.wire.codecs import Codec
from sparkmirror.sink.agreement import MicroBatch
from sparkmirror.sink.appender import TaskAppender
from sparkmirror.sink.audit import audit
from sparkmirror.sink.fencing import counts_at_rest
from sparkmirror.sink.preparing import prepared
from sparkmirror.sink.writing import BatchWriter

# ruff: noqa: SLF001 - what the driver knows, without Spark
pytestmark = [pytest.mark.broker, pytest.mark.full]

FORGETS_MS = 2_000
LONG_AGO_MS = int(time.time() * 1000) - 90_000_000
"""As if the first attempt was more than a day ago, which is how long brokers remember by default."""


@pytest.fixture(scope="module")
def forgetful(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    settings = {
        "producer.id.expiration.ms": str(FORGETS_MS),
        "producer.id.expiration.check.interval.ms": "200",
        "log.cleaner.backoff.ms": "200",
    }
    with KafkaCluster(tmp_path_factory.mktemp("forgetful"), properties=settings) as cluster:
        yield cluster


def wait_until_forgotten(query: Query) -> None:
    until = time.monotonic() + 60
    query.client.metadata([query.topic])
    while any(each.producers for each in describe_producers(query.client, 1, {query.topic: [0, 1]}).values()):
        assert time.monotonic() < until
        time.sleep(0.2)


@pytest.mark.parametrize("attempted_h", [25, 2, 0])
def test_the_log_is_searched(attempted_h: int, forgetful: KafkaCluster, topic_name: str) -> None:
    """Without the search the rows come twice: so attempts do it from the first attempt's half hour on.

    Records whose timestamps are old are the first to be forgotten: these may be 23 h old.
    """
    query = Query(forgetful, topic_name)
    order = query.order(0)
    first = TaskAppender(order, window_bytes=1)
    first.take(rows(list(range(9)), None))
    wait_until_forgotten(query)
    again = TaskAppender(order._replace(first_attempt_ms=wall_ms() - attempted_h * 3_600_000), window_bytes=1)
    again.take(rows(list(range(12)), None))
    ranges = again.finish()
    if attempted_h:
        assert query.values() == expected(12)
        assert sum(each.earlier for each in ranges) == 9
        audit(query.client, order, ranges)
    else:
        assert query.values() == expected(12) + expected(9)


@pytest.mark.parametrize("is_begin_known", [True, False])
def test_a_repeated_batch_is_searched_for_at_once(
    is_begin_known: bool, forgetful: KafkaCluster, topic_name: str
) -> None:
    """Brokers also forget who wrote to a log that is empty when they start."""
    query = Query(forgetful, topic_name)
    attempt(query.order(0), 0, 1, 2, 3)
    order = query.order(1)._replace(first_attempt_ms=wall_ms(), is_repeated=True)
    order = order._replace(begins={(topic_name, 0): 4} if is_begin_known else None)
    begin(order, *range(4, 10))
    wait_until_forgotten(query)
    assert counts_at_rest(query.client, order, lambda: [topic_name]) == {(topic_name, 0): 6}
    (told,) = attempt(order, *range(4, 12))
    assert (told.records, told.earlier, in_order(query)) == (8, 6, [*range(12)])
    if is_begin_known:
        delete_records(forgetful, topic_name, 0, 12)
        wait_until_forgotten(query)
        with pytest.raises(RowsInDoubt):
            attempt(order, *range(4, 12))


def test_all_is_there_and_forgotten(forgetful: KafkaCluster, topic_name: str) -> None:
    """The audit believes the log where no leader remembers."""
    query = Query(forgetful, topic_name)
    order = query.order(0)
    first = TaskAppender(order)
    first.take(rows(list(range(12)), None))
    first.finish()
    wait_until_forgotten(query)
    again = TaskAppender(order._replace(first_attempt_ms=LONG_AGO_MS))
    again.take(rows(list(range(12)), None))
    ranges = again.finish()
    audit(query.client, order, ranges)
    with pytest.raises(RowsChanged, match="its leader has 6 records of batch 0, and the tasks have 5"):
        audit(query.client, order, [ranges[0], ranges[1]._replace(records=5)])
    assert query.values() == expected(12)


def test_a_begun_batch_without_rows_is_found_in_the_log(forgetful: KafkaCluster, topic_name: str) -> None:
    query = Query(forgetful, topic_name)
    order = query.order(0)._replace(first_attempt_ms=LONG_AGO_MS)
    audit(query.client, order, [], in_logs=True)
    assert counts_at_rest(query.client, order, lambda: [topic_name]) == {}
    first = TaskAppender(order)
    first.take(rows(list(range(12)), None))
    first.finish()
    wait_until_forgotten(query)
    assert counts_at_rest(query.client, order, lambda: [topic_name]) == {(topic_name, 0): 6, (topic_name, 1): 6}
    with pytest.raises(RowsChanged, match="its leader has 6 records of batch 0, and the tasks have 0"):
        audit(query.client, order, [], in_logs=True)


def test_brokers_that_forget_too_soon_are_refused(forgetful: KafkaCluster, topic_name: str) -> None:
    query = Query(forgetful, topic_name)
    with pytest.raises(UnfitTarget, match="forgets who appended records after 2,000 ms, so they could come twice"):
        prepared(query.client)


def test_only_a_batch_that_follows_needs_no_search(forgetful: KafkaCluster, topic_name: str) -> None:
    """A batch that failed may have been tried a day ago, by the same process too."""
    query = Query(forgetful, topic_name)
    writer = BatchWriter(query.config, topic_name, Codec(0), is_gathered=False)
    created_ms = query.order(0).first_attempt_ms
    writer._state_ms, writer._asked_ms = 86_400_000, int(time.time() * 1000)
    writer._newest, writer._newest_ms = MicroBatch(query.name, 4), created_ms + 1_000_000

    def first_attempt_ms(number: int, name: str = query.name) -> int:
        return writer._order(query.client, MicroBatch(name, number)).first_attempt_ms

    assert first_attempt_ms(5) == created_ms + 1_000_000
    assert first_attempt_ms(4) == first_attempt_ms(6) == created_ms
    assert first_attempt_ms(5, f"{query.name}-other") < created_ms + 1_000_000


@pytest.mark.parametrize(("deleted", "counted"), [(4, 6), (9, 6), (10, None)])
def test_deleted_records_are_not_taken_for_missing_ones(
    deleted: int, counted: int | None, forgetful: KafkaCluster, topic_name: str
) -> None:
    """Else gone rows would be told as lost, and others be appended again."""
    query = Query(forgetful, topic_name)
    attempt(query.order(0), 0, 1, 2, 3)
    order = query.order(1)._replace(first_attempt_ms=LONG_AGO_MS, begins={(topic_name, 0): 4})
    begin(order, *range(4, 10))
    wait_until_forgotten(query)
    delete_records(forgetful, topic_name, 0, deleted)
    if counted is None:
        with pytest.raises(RowsInDoubt, match=f"^{topic_name}-0: records from offset 4 on are deleted"):
            counts_at_rest(query.client, order, lambda: [topic_name])
    else:
        assert counts_at_rest(query.client, order, lambda: [topic_name]) == {(topic_name, 0): counted}
    if deleted == 4:
        (told,) = attempt(order, *range(4, 12))
        assert (told.records, told.earlier, in_order(query)) == (8, 6, [*range(4, 12)])
        return
    with pytest.raises(RowsInDoubt) as raised:
        attempt(order, *range(4, 12))
    assert raised.value.place == (topic_name, 0)
    assert in_order(query) == [*range(deleted, 10)]


def test_a_batch_that_appended_nothing_is_in_no_doubt(forgetful: KafkaCluster, topic_name: str) -> None:
    query = Query(forgetful, topic_name)
    attempt(query.order(0), 0, 1, 2, 3)
    wait_until_forgotten(query)
    delete_records(forgetful, topic_name, 0, 4)
    order = query.order(1)._replace(first_attempt_ms=LONG_AGO_MS, begins={(topic_name, 0): 4, (topic_name, 1): 0})
    assert counts_at_rest(query.client, order, lambda: [topic_name]) == {}
    (told,) = attempt(order, 4, 5)
    assert (told.records, told.earlier, in_order(query)) == (2, 0, [4, 5])


def test_a_batch_that_is_compacted_away_is_in_doubt(forgetful: KafkaCluster, topic_name: str) -> None:
    """Records with the same keys took its records' place."""
    eager = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.001"}
    query = Query(forgetful, topic_name, **eager)
    order = query.order(0)._replace(first_attempt_ms=LONG_AGO_MS, begins={(topic_name, 0): 0})
    mine = rows([6, 12], None)
    with closing(TaskAppender(order)) as appender:
        appender.take(mine)
        appender.finish()
    wait_until_forgotten(query)
    others = KafkaProducer(bootstrap_servers=list(query.config.bootstrap_servers))

    def is_compacted() -> bool:
        for key in mine.column("key").to_pylist():
            others.send(topic_name, key=key, value=b"other", partition=0)
        others.flush()
        return not query.values(0).keys() & {value(6), value(12)}

    mp.wait_for(is_compacted, 120, "compacted")
    others.close()
    with pytest.raises(RowsInDoubt, match=f"^{topic_name}-0: records from offset 0 on are deleted, or compacted away"):
        counts_at_rest(query.client, order, lambda: [topic_name])
