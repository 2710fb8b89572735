"""Trial appends: idempotent batches sent to one topic, one at a time.

The trial records the leaders' answers, and reads back what the leaders keep. Passing errors (a leader moves, replicas
are late) are retried until `PATIENCE_S` are over.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from kafka.record.default_records import DefaultRecordBatchBuilder

from sparkmirror.errors import ClusterTrouble
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.error_names import error_name
from sparkmirror.kafka.cluster.fetch_once import FetchBounds, fetch_once, only_part
from sparkmirror.kafka.cluster.producers import describe_producers, new_producer_id
from sparkmirror.kafka.cluster.scratch_topic import what_to_grant
from sparkmirror.kafka.wire import produce
from sparkmirror.kafka.wire.batches import SEQUENCE_MODULUS, batch_headers
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.fetch_session import FetchedPartition
from sparkmirror.kafka.wire.rpc import UnsupportedBroker
from sparkmirror.kafka.wire.topic_ids import NO_ID

PATIENCE_S = 10.0
LATE_S = 1.0
"""Longest wait for acknowledged batches to appear in the log.

At some brokers the high watermark follows a moment later.
"""
_PAUSE_S = 0.05
_PRODUCE_TIMEOUT_MS = 5_000
_FETCH_BOUNDS = FetchBounds(max_bytes=1 << 20, partition_bytes=1 << 20)
_BATCH_BYTES = 1 << 14
_PASSING = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.LISTENER_NOT_FOUND,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.UNKNOWN_TOPIC_ID,
    }
)
"""Error codes worth a retry: of `pump/verdicts.py`, without those about sequences."""
_LENGTH_AT, _LEADER_EPOCH_AT, _MAGIC_AT = 8, 12, 16

Answer = TypeVar("Answer")
BatchKey = tuple[int, int, int, int]
"""A trial batch's name: partition, producer id, epoch and first sequence."""
WriterKey = tuple[int, int]
"""Partition and producer id."""


class CannotTell(ClusterTrouble):
    """Error for an incomplete trial: one line with the reason."""


class _Ack(NamedTuple):
    error: int
    base_offset: int
    append_time_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A sent batch, the check it was sent for, and the leader's answer."""

    check: str
    what: str
    key: BatchKey
    last_sequence: int
    batch: bytes
    error: int
    base_offset: int
    append_time_ms: int

    @property
    def body(self) -> bytes:
        """The batch's bytes, without the fields that the broker writes."""
        return _body(self.batch)


@dataclass(slots=True, kw_only=True)
class Writer:
    """A producer in one partition; `sent` holds the batches accepted by the leader."""

    trial: AppendTrial
    partition: int
    producer_id: int
    epoch: int
    next_sequence: int = 0
    sent: list[Sent] = field(default_factory=list)

    def first(self, sequence: int, check: str) -> Sent:
        """Send a first batch, with one record."""
        return self.append(sequence, 1, check)

    def append(self, sequence: int, count: int, check: str) -> Sent:
        """Send a batch; move the next sequence on if the leader accepts it."""
        batch = _batch(self.producer_id, self.epoch, sequence, count)
        ack = self._send(sequence, count, batch, check, f"a batch at sequence {sequence}")
        if not ack.error:
            self.next_sequence = (sequence + count) % SEQUENCE_MODULUS
            self.sent.append(ack)
        return ack

    def try_at(self, sequence: int, check: str, what: str) -> Sent:
        """Send a two-record batch out of sequence, expecting a refusal."""
        return self._send(sequence, 2, _batch(self.producer_id, self.epoch, sequence, 2), check, what)

    def repeat(self, earlier: Sent, check: str, what: str) -> Sent:
        count = (earlier.last_sequence - earlier.key[3]) % SEQUENCE_MODULUS + 1
        return self._send(earlier.key[3], count, earlier.batch, check, what)

    def _send(self, sequence: int, count: int, batch: bytes, check: str, what: str) -> Sent:
        ack = self.trial.produce(self.partition, batch)
        key = self.partition, self.producer_id, self.epoch, sequence
        last = (sequence + count - 1) % SEQUENCE_MODULUS
        sent = Sent(
            check=check,
            what=what,
            key=key,
            last_sequence=last,
            batch=batch,
            error=ack.error,
            base_offset=ack.base_offset,
            append_time_ms=ack.append_time_ms,
        )
        self.trial.sent.append(sent)
        return sent


class AppendTrial:
    """One topic, and all batches sent to it.

    Methods raise `CannotTell` and `UnsupportedBroker`.
    """

    def __init__(self, client: ClusterClient, topic: str) -> None:
        self._client = client
        self._topic = topic
        self._topic_id = NO_ID
        self._leaders: dict[int, int] = {}
        self._deadline = time.monotonic() + PATIENCE_S
        self.sent: list[Sent] = []

    def writer(self, partition: int, epoch: int, producer_id: int | None = None) -> Writer:
        """Return a partition's producer: a new one, or with the given producer id."""
        if producer_id is None:
            producer_id, epoch = new_producer_id(self._client)
        return Writer(trial=self, partition=partition, producer_id=producer_id, epoch=epoch)

    def produce(self, partition: int, batch: bytes) -> _Ack:
        """Send one batch with acks=all, and wait for the leader's answer."""

        def attempt(leader: int) -> _Ack:
            connection = self._client.broker(leader)
            version = connection.version(produce.API_KEY, produce.VERSIONS, "Produce")
            topic = produce.topic_field(version, self._topic, self._topic_id)
            batches = {topic: {partition: memoryview(batch)}}
            request = produce.produce_request(version, 0, self._client.client_id.encode(), _PRODUCE_TIMEOUT_MS, batches)
            _, acks, _ = produce.read_answer(version, connection.exchange_raw(request))
            if not acks:
                raise CannotTell("a batch was not answered")
            return _Ack(acks[0].error, acks[0].base_offset, acks[0].log_append_time_ms)

        return self._at_leader(partition, attempt, lambda ack: ack.error)

    # --- state at the leaders -------------------------------------------------------------------

    def taken(self, key: BatchKey) -> int | None:
        """Return the offset that a batch's first acknowledgement gave; None without one."""
        return next((sent.base_offset for sent in self.sent if sent.key == key and not sent.error), None)

    def expected(self) -> dict[WriterKey, tuple[int, int]]:
        """Return each producer's epoch and last sequence, by the acknowledgements."""
        newest: dict[WriterKey, tuple[int, int]] = {}
        seen: set[BatchKey] = set()
        for sent in self.sent:
            if not sent.error and sent.key not in seen:
                seen.add(sent.key)
                newest[sent.key[:2]] = sent.key[2], sent.last_sequence
        return newest

    def reported(self) -> dict[WriterKey, tuple[int, int]]:
        """Return each producer's epoch and last sequence, by DescribeProducers.

        Looks the leaders up again first, since any replica would answer.
        """
        told: dict[WriterKey, tuple[int, int]] = {}
        self._leaders = {}
        for partition in self._partitions():

            def attempt(leader: int, partition: int = partition) -> tuple[int, dict[WriterKey, tuple[int, int]]]:
                answer = describe_producers(self._client, leader, {self._topic: [partition]})
                described = answer[self._topic, partition]
                return described.error, {
                    (partition, entry.producer_id): (entry.producer_epoch, entry.last_sequence)
                    for entry in described.producers
                }

            error, entries = self._at_leader(partition, attempt, lambda answer: answer[0])
            if error:
                raise CannotTell(f"DescribeProducers is answered by {error_name(error)}{what_to_grant(error)}")
            told |= entries
        return told

    def stored(self) -> dict[BatchKey, list[tuple[int, bytes]]]:
        """Read all batches in the logs: offsets and bodies, by name."""
        batches: dict[BatchKey, list[tuple[int, bytes]]] = defaultdict(list)
        until = time.monotonic() + LATE_S
        for partition in self._partitions():
            acknowledged = (sent.base_offset for sent in self.sent if sent.key[0] == partition and not sent.error)
            newest, offset = max(acknowledged, default=-1), 0
            while True:
                part = self._fetch(partition, offset)
                for position, header in batch_headers(part.records):
                    key = partition, header.producer_id, header.producer_epoch, header.base_sequence
                    batches[key].append((header.base_offset, _body(part.records[position : position + header.size])))
                    offset = header.next_offset
                if not part.records and (offset > newest or time.monotonic() > until):
                    break
                if not part.records:
                    time.sleep(_PAUSE_S)
        return batches

    def _fetch(self, partition: int, offset: int) -> FetchedPartition:
        def attempt(leader: int) -> FetchedPartition | int:
            offsets, topic_ids = {(self._topic, partition): offset}, {self._topic: self._topic_id}
            return only_part(fetch_once(self._client, leader, offsets, topic_ids, _FETCH_BOUNDS))

        part = self._at_leader(partition, attempt, _fetch_error)
        error = _fetch_error(part)
        if isinstance(part, int) or error:
            raise CannotTell(f"the log can't be read: {error_name(error)}{what_to_grant(error)}")
        return part

    # --- leaders --------------------------------------------------------------------------------

    def _partitions(self) -> list[int]:
        return sorted({sent.key[0] for sent in self.sent})

    def _at_leader(self, partition: int, attempt: Callable[[int], Answer], code: Callable[[Answer], int]) -> Answer:
        while True:
            try:
                answer = attempt(self._leader(partition))
                if code(answer) not in _PASSING:
                    return answer
                why = error_name(code(answer))
            except UnsupportedBroker:
                raise
            except ConnectionError as error:
                self._client.hang_up()
                why = str(error)
            if time.monotonic() > self._deadline:
                raise CannotTell(f"it could not be tried to the end: {why}")
            self._leaders = {}
            time.sleep(_PAUSE_S)

    def _leader(self, partition: int) -> int:
        if partition not in self._leaders:
            topic = self._client.metadata([self._topic])[self._topic]
            self._topic_id = topic.topic_id
            self._leaders = {index: leader.leader for index, leader in topic.partitions.items()}
        return self._leaders.get(partition, -1)


def _batch(producer_id: int, epoch: int, sequence: int, count: int) -> bytes:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=False,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        batch_size=_BATCH_BYTES,
    )
    for number in range(count):
        builder.append(number, int(time.time() * 1000), None, b"append check %d" % (sequence + number), [])
    return bytes(builder.build())


def _fetch_error(part: FetchedPartition | int) -> int:
    return part if isinstance(part, int) else part.error


def _body(batch: bytes | memoryview) -> bytes:
    """Return a batch without its base offset and leader epoch."""
    return bytes(batch[_LENGTH_AT:_LEADER_EPOCH_AT]) + bytes(batch[_MAGIC_AT:])
