"""The load: three idempotent producers and two transactional ones, which write down what the source promised them.

It is a process of its own, so that it does not wait for the nemesis nor the nemesis for it. Every record has a name
in a header (`history.py`), other headers, keys and values of many sizes, some of them null. A third of the
transactions is aborted; some stay open for a while, and the two producers' transactions overlap. The second idempotent
producer's records are two days old, and it rests now and then; the third one's are what the source may take back.
Half of the partitions get their last record while there still are faults (`leave_alone`).
"""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, NamedTuple, Self

from kafka import KafkaProducer
from kafka.errors import KafkaError, KafkaTimeoutError

from chaos.history import DRAFT, OLD, PLAIN, HistoryWriter, record_id
from chaos.records import ID_HEADER

TRANSACTIONAL = ("txn1", "txn2")
CODECS = ("lz4", "zstd", "gzip", "snappy", None)
_TICK_S = 0.05
OLD_MS = 2 * 86_400_000
_OLD_WRITES_S, _OLD_RESTS_S = 3.0, 1.5
"""A rest is long enough for a target that looks every second to find that the producer's state has expired."""
_ABORTED_SHARE = 1 / 3
_MOST_IN_TRANSACTION = 30
_LONG_TRANSACTION_EVERY = 25
_LONG_TRANSACTION_S = 2.0
_TRANSACTION_TIMEOUT_MS = 15_000
_END_TIMEOUT_S = 15.0
_STOP_TIMEOUT_S = 45.0
_DELIVERY_TIMEOUT_MS = 40_000
_GIVEN_UP_S = _DELIVERY_TIMEOUT_MS / 1000 + 5
"""What a producer has queued is delivered or has failed by then."""
_CLIENT: dict[str, Any] = {
    "request_timeout_ms": 6_000,
    "delivery_timeout_ms": _DELIVERY_TIMEOUT_MS,
    "max_block_ms": 10_000,
    "bootstrap_timeout_ms": 10_000,
    "reconnect_backoff_max_ms": 1_000,
    "linger_ms": 5,
}


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """What is written where; a topic that is None is not written to."""

    servers: str
    history: Path
    seed: int
    partitions: int
    plain_topic: str
    transactional_topic: str | None
    old_topic: str | None = None
    draft_topic: str | None = None
    records_per_s: float = 300.0
    transactions_per_s: float = 5.0
    """Of each of the transactional producers."""
    old_per_s: float = 60.0
    """Records, while it does not rest."""
    drafts_per_s: float = 40.0


class Load:
    """The running load; as a context it is stopped at the end."""

    def __init__(self, plan: LoadPlan) -> None:
        self.plan = plan
        processes = multiprocessing.get_context("spawn")
        self._stop = processes.Event()
        self._busy: Any = processes.Value("i", plan.partitions)
        self._hushed = processes.Event()
        self._process = processes.Process(
            target=_write, args=(plan, self._stop, self._hushed, self._busy), daemon=True, name="load"
        )

    @property
    def busy(self) -> int:
        """How many partitions of each topic are written to: the first ones."""
        return int(self._busy.value)

    @contextlib.contextmanager
    def hushed(self) -> Iterator[None]:
        """Begin nothing new meanwhile; what has begun continues."""
        self._hushed.set()
        try:
            yield
        finally:
            self._hushed.clear()

    def leave_alone(self, busy: int) -> None:
        """Write to no more than so many partitions from now on."""
        self._busy.value = min(self.busy, busy)

    def __enter__(self) -> Self:
        self._process.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Let it end what it has begun, for a while; then end it."""
        self._stop.set()
        self._process.join(_STOP_TIMEOUT_S)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def send_named(
    producer: Any, history: HistoryWriter, topic: str, partition: int, name: str, filler: bytes, age_ms: int = 0
) -> Any:
    """Send one record with that name; returns its future. It is in the history once it is acknowledged."""
    number = int(name.split("-")[2])
    future = producer.send(
        topic,
        value=None if number % 23 == 5 and number % 7 else filler,
        key=None if number % 7 == 0 else b"key-%d" % (number % 101),
        headers=[(ID_HEADER, name.encode()), *([("empty", b""), ("number", b"%d" % number)] if number % 3 else [])],
        partition=partition,
        timestamp_ms=int(time.time() * 1000) - age_ms if age_ms else None,
    )
    future.add_callback(lambda _: history.sent(name))
    return future


def close_logs(servers: str, topics: list[str], partitions: int) -> None:
    """Write a last record to every partition. Raises KafkaError if the source does not take it."""
    producer = KafkaProducer(bootstrap_servers=servers)
    for topic in topics:
        for partition in range(partitions):
            header = (ID_HEADER, last_name(partition).encode())
            producer.send(topic, value=b"the last record", headers=[header], partition=partition).get(30)
    producer.close()


def end_transactions(servers: str) -> None:
    """End what transactions are left, which hold readers of committed records up. Raises KafkaError."""
    for name in TRANSACTIONAL:
        ending = KafkaProducer(bootstrap_servers=servers, transactional_id=name)
        ending.init_transactions()
        ending.close()


def last_name(partition: int) -> str:
    """The name of the last record of a partition."""
    return record_id("last", partition, 0)


def _write(plan: LoadPlan, stop: Event, hushed: Event, busy: Any) -> None:
    logging.getLogger("kafka").setLevel(logging.CRITICAL)  # what goes wrong is meant to
    history, control = HistoryWriter(plan.history), _Control(hushed, busy)
    writers: list[Callable[[Event], None]] = [
        _PlainWriter(plan, control, history, PLAIN, plan.plain_topic, plan.records_per_s).run
    ]
    if plan.draft_topic:
        writers.append(_PlainWriter(plan, control, history, DRAFT, plan.draft_topic, plan.drafts_per_s).run)
    if plan.old_topic:
        writers.append(_OldWriter(plan, control, history, OLD, plan.old_topic, plan.old_per_s).run)
    if plan.transactional_topic:
        writers += [_TransactionalWriter(plan, control, history, name).run for name in TRANSACTIONAL]
    threads = [threading.Thread(target=run, args=(stop,), daemon=True) for run in writers]
    for thread in threads:
        thread.start()
    parent = multiprocessing.parent_process()
    while not stop.wait(1.0):
        if parent is None or not parent.is_alive():
            return
    for thread in threads:
        thread.join(_STOP_TIMEOUT_S)


def _within(timeout_s: float, action: Callable[[], None]) -> None:
    """Do it, but wait no longer than that: ending a transaction has no time limit of its own in kafka-python.

    Raises KafkaTimeoutError. What happens in the background then is fenced by the next producer of the same name.
    """
    outcome: Future[None] = Future()

    def act() -> None:
        try:
            action()
        except BaseException as error:
            outcome.set_exception(error)
        else:
            outcome.set_result(None)

    threading.Thread(target=act, daemon=True).start()
    try:
        outcome.result(timeout_s)
    except TimeoutError as error:
        raise KafkaTimeoutError("the transaction does not end") from error


def _close(producer: Any, timeout_s: float) -> None:
    """kafka-python closes nothing where what is queued is not gone by then, and tries again as it collects garbage."""
    with contextlib.suppress(Exception):
        producer.close(timeout=timeout_s)


class _Control(NamedTuple):
    """What another process changes."""

    hushed: Event
    busy: Any
    """A value: how many partitions are written to."""


class _Writer:
    """One producer after another: a producer that failed is replaced."""

    def __init__(self, plan: LoadPlan, control: _Control, history: HistoryWriter, name: str) -> None:
        self.plan = plan
        self.control = control
        self.history = history
        self.name = name
        self.chance = random.Random(f"{plan.seed} {name}")
        self.numbers: Counter[int] = Counter()

    def run(self, stop: Event) -> None:
        while not stop.is_set():
            producer = None
            try:
                producer = self.open()
                self.write(producer, stop)
            except (KafkaError, AssertionError, RuntimeError):  # a producer in a state that it can't leave
                time.sleep(0.5)
            finally:
                if producer is not None and stop.is_set():
                    _close(producer, 10.0)
                elif producer is not None:
                    threading.Thread(target=_close, args=(producer, _GIVEN_UP_S), daemon=True).start()

    def open(self) -> Any:
        return KafkaProducer(
            bootstrap_servers=self.plan.servers, compression_type=self.chance.choice(CODECS), **_CLIENT
        )

    def write(self, producer: Any, stop: Event) -> None:
        """Write until told to stop."""
        raise NotImplementedError

    def next(self) -> tuple[int, int]:
        """A partition, and the number of the next record there."""
        partition = self.chance.randrange(self.control.busy.value)
        self.numbers[partition] += 1
        return partition, self.numbers[partition]

    def filler(self) -> bytes:
        """Some bytes, half of which compress well."""
        size = self.chance.choice((0, 10, 100, 300, 1500))
        return self.chance.randbytes(size // 2) + b"the same old story " * (size // 40)


class _PlainWriter(_Writer):
    age_ms = 0

    def __init__(
        self, plan: LoadPlan, control: _Control, history: HistoryWriter, name: str, topic: str, per_s: float
    ) -> None:
        super().__init__(plan, control, history, name)
        self.topic = topic
        self.per_s = per_s
        self.failed = False

    def write(self, producer: Any, stop: Event) -> None:
        self.failed = False
        while not stop.is_set() and not self.failed:
            began = time.monotonic()
            if self.control.hushed.is_set():
                stop.wait(_TICK_S)
                continue
            for _ in range(max(int(self.per_s * _TICK_S), 1)):
                partition, number = self.next()
                name = record_id(self.name, partition, number)
                sent = send_named(producer, self.history, self.topic, partition, name, self.filler(), self.age_ms)
                sent.add_errback(self._fail)
            stop.wait(max(_TICK_S - (time.monotonic() - began), self.rest_s(began)))
        producer.flush(timeout=30)

    def rest_s(self, now: float) -> float:
        """How long to write nothing at this time of the monotonic clock."""
        return 0.0

    def _fail(self, _: Exception) -> None:
        self.failed = True


class _OldWriter(_PlainWriter):
    """Writes what is too old for brokers to keep its producer's state: neither the source's nor the target's."""

    age_ms = OLD_MS

    def rest_s(self, now: float) -> float:
        return _OLD_RESTS_S if now % (_OLD_WRITES_S + _OLD_RESTS_S) > _OLD_WRITES_S else 0.0


class _TransactionalWriter(_Writer):
    def __init__(self, plan: LoadPlan, control: _Control, history: HistoryWriter, name: str) -> None:
        super().__init__(plan, control, history, name)
        self.transactions = 0

    def open(self) -> Any:
        producer = KafkaProducer(
            bootstrap_servers=self.plan.servers,
            compression_type=self.chance.choice(CODECS),
            transactional_id=self.name,
            transaction_timeout_ms=_TRANSACTION_TIMEOUT_MS,
            **_CLIENT,
        )
        try:
            producer.init_transactions()
        except BaseException:
            producer.close(timeout=1)
            raise
        return producer

    def write(self, producer: Any, stop: Event) -> None:
        while not stop.is_set():
            if self.control.hushed.is_set():
                stop.wait(_TICK_S)
                continue
            self.transactions += 1
            aborts = self.chance.random() < _ABORTED_SHARE
            fate, how = ("abort", "aborted") if aborts else ("commit", "committed")
            producer.begin_transaction()
            for _ in range(self.chance.randint(1, _MOST_IN_TRANSACTION)):
                partition, number = self.next()
                name = record_id(self.name, partition, number, self.transactions, fate)
                topic = self.plan.transactional_topic or ""
                send_named(producer, self.history, topic, partition, name, self.filler())
            if aborts:
                producer.flush(timeout=30)  # else an abort takes back what was not sent yet
            if self.transactions % _LONG_TRANSACTION_EVERY == 0:
                stop.wait(_LONG_TRANSACTION_S)
            _within(_END_TIMEOUT_S, producer.abort_transaction if aborts else producer.commit_transaction)
            self.history.ended(f"{self.name}-{self.transactions}", how)
            stop.wait(self.chance.random() * 2 / self.plan.transactions_per_s)
