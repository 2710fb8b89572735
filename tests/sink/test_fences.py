"""Whoever takes up a batch fences its earlier attempts, and counts their records once they rest."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pyarrow as pa
import pytest
from tests.sink.one_partition import attempt, control_end, in_order, rows, take_rest, values
from tests.sink.sink_query import Query

from sparkmirror.clock import wall_ms
from sparkmirror.errors import AttemptFenced, ClusterUnreachable
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.kafka.wire.codecs import Codec
from sparkmirror.kafka.wire.rpc import RpcConnection
from sparkmirror.sink import agreement, appender, fencing, read_back
from sparkmirror.sink.agreement import MicroBatch, SinkAgreement
from sparkmirror.sink.appender import TaskAppender
from sparkmirror.sink.fencing import counts_at_rest
from sparkmirror.sink.order import GoneRows
from sparkmirror.sink.read_back import BatchProducer, LeaderPlace, last_sequence
from sparkmirror.sink.writing import BatchWriter

pytestmark = pytest.mark.broker


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


def test_a_process_that_was_fenced_writes_once_it_has_taken_up_the_batch_again(
    query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fencing, "GRACE_S", 1.0)
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


def test_a_batch_is_taken_up_before_anybody_has_created_the_control_topic(
    query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a first attempt that failed before it had an order."""
    monkeypatch.setattr(agreement, "CONTROL_TOPIC", f"{query.topic}-control")
    monkeypatch.setattr(fencing, "GRACE_S", 1.0)
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


def test_an_attempt_whose_answer_was_late_looks_for_the_fence_again(
    query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a replica hangs, nothing moves: so its batch may be taken up, and the answer comes with the count."""
    monkeypatch.setattr(appender, "MAX_CONFIRMATION_AGE_S", 1.0)

    def hang(point: str) -> None:
        if point == "sent":
            SinkAgreement(query.client, query.name, 0).fence(3)
            time.sleep(1.5)

    old = TaskAppender(query.order(3)._replace(agreed_to=control_end(query)), hang, window_bytes=1)
    old.take(rows(0))
    with pytest.raises(AttemptFenced, match="another process has taken up batch 3"):
        take_rest(old, 1)
    assert in_order(query) == [0]


def test_a_look_at_one_partition_tells_nothing_of_the_others(query: Query) -> None:
    old = TaskAppender(query.order(3)._replace(first_attempt_ms=wall_ms() - 7_200_000))
    old.take(rows(0))
    old._heard -= 3600  # noqa: SLF001 - no test waits so long
    old.expect([(query.topic, 1)])
    assert old._is_late  # noqa: SLF001
    old.finish()
    assert in_order(query) == [0]


def test_requests_are_not_sent_once_it_is_late(query: Query) -> None:
    """A leader before them may have taken its request for long."""
    old, sent = TaskAppender(query.order(3)), list[str]()

    class Leader:
        def __init__(self, name: str) -> None:
            self.name = name

        def send_raw(self, data: object) -> None:
            sent.append(self.name)
            old._heard -= 3600  # noqa: SLF001 - no test waits so long

    with pytest.raises(ConnectionError):
        list(old._exchanged([SimpleNamespace(connection=Leader(name), data=[]) for name in "AB"]))  # type: ignore[misc]  # noqa: SLF001
    assert sent == ["A"]
    old.close()


def test_encoding_does_not_make_it_late(query: Query, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(appender, "_ENCODING_S", -1.0)
    points: list[str] = []
    order = query.order(3)
    one = TaskAppender(order, points.append)
    one.take(rows(0).set_column(1, "partition", pa.array([1], pa.int32())))
    take_rest(one, 1)
    assert points.count("sent") == 2
    assert values(query) == [0, 1]


def test_counts_rest_from_one_look_to_the_next(query: Query, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look may last: its counts are those of its beginning."""
    clock, looks = [100.0], [(1, 1), (1, 9), (2, 0), (2, 9), (2, 9), (2, 0), (2, 0)]

    def look(*_: object, **__: object) -> dict[tuple[str, int], int]:
        count, lasts_s = looks.pop(0)
        clock[0] += lasts_s
        return {(query.topic, 0): count}

    monkeypatch.setattr(fencing, "now_s", lambda: clock[0])
    monkeypatch.setattr(fencing, "counts", look)
    monkeypatch.setattr(fencing, "_ends", lambda *_: {})
    assert counts_at_rest(query.client, query.order(3), list) == {(query.topic, 0): 2}


@pytest.mark.parametrize("reached", [True, False])
def test_slow_counts_have_time_for_the_replicas(query: Query, monkeypatch: pytest.MonkeyPatch, reached: bool) -> None:
    """Each look takes longer than the patience, which begins once the ends are known."""
    clock, looks = [100.0], list[int]()

    def look(*_: object, **__: object) -> dict[tuple[str, int], int]:
        looks.append(0)
        clock[0] += 80
        return {(query.topic, 0): 2}

    monkeypatch.setattr(fencing, "now_s", lambda: clock[0])
    monkeypatch.setattr(fencing, "counts", look)
    monkeypatch.setattr(fencing, "_ends", lambda *_: {(query.topic, 0): 9})
    monkeypatch.setattr(fencing, "_are_replicated", lambda *_: reached)
    if reached:
        assert counts_at_rest(query.client, query.order(3), lambda: [query.topic]) == {(query.topic, 0): 2}
        assert len(looks) == 4
        return
    with pytest.raises(ClusterUnreachable, match=f"{query.topic}: replicas are far behind, or a leader is away"):
        counts_at_rest(query.client, query.order(3), lambda: [query.topic])


def test_counts_that_change_rest_again(query: Query, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, looks = [100.0], [1, 1, 1, 2, 2, 2, 2]

    def look(*_: object, **__: object) -> dict[tuple[str, int], int]:
        clock[0] += 5
        return {(query.topic, 0): looks.pop(0)}

    asked: list[int] = []

    def ends(*_: object) -> dict[tuple[str, int], int]:
        asked.append(len(looks))
        return {}

    monkeypatch.setattr(fencing, "now_s", lambda: clock[0])
    monkeypatch.setattr(fencing, "GRACE_S", 4.0)
    monkeypatch.setattr(fencing, "counts", look)
    monkeypatch.setattr(fencing, "_ends", ends)
    assert counts_at_rest(query.client, query.order(3), list) == {(query.topic, 0): 2}
    assert asked == [4, 1]


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


def test_a_sign_in_is_renewed_before_it_is_asked_whether_it_is_late(
    query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several brokers' sign-ins may take longer than a batch may wait."""
    old = TaskAppender(query.order(3), window_bytes=1)
    old.take(rows(0))

    def renew(connection: RpcConnection) -> None:
        if not looks:
            old._heard -= 3600  # noqa: SLF001 - no test waits so long

    looks: list[bool] = []
    look = old._look  # noqa: SLF001

    def noted(partitions: list[tuple[str, int]]) -> None:
        looks.append(True)
        look(partitions)

    monkeypatch.setattr(old, "_look", noted)
    monkeypatch.setattr(RpcConnection, "renew_if_due", renew)
    take_rest(old, 1)
    assert looks == [True]
    assert in_order(query) == [0, 1]
