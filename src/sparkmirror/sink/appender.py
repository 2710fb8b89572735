"""A task's attempt to append its rows of a micro-batch, each once."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from sparkmirror.arrow.encoding import encode
from sparkmirror.arrow.row_columns import RowColumns
from sparkmirror.clock import now_s, wall_ms
from sparkmirror.errors import AttemptFenced, ClusterTrouble, ClusterUnreachable, RowsChanged, RowsInDoubt, RowsRefused
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.error_names import error_name
from sparkmirror.kafka.cluster.producers import describe_producers
from sparkmirror.kafka.wire import produce
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.rpc import RpcConnection
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.pump.trust import MAX_CONFIRMATION_AGE_S
from sparkmirror.pump.verdicts import ErrorAction, explanation, verdict
from sparkmirror.sink.agreement import SinkAgreement
from sparkmirror.sink.line import Flight, PartitionLine, RowNumbers, RowSelection
from sparkmirror.sink.order import MARGIN_MS, AppendedRange, AppendOrder
from sparkmirror.sink.read_back import (
    BatchProducer,
    LeaderPlace,
    last_sequence,
    may_be_hidden,
    read_back,
    search_from,
)

WINDOW_BYTES = 8 << 20
"""Bytes of rows to gather before a request."""
_PATIENCE_S = 60.0
"""Longest time to try again after errors that pass."""
_PAUSE_S = 0.2
_ENCODING_S = MAX_CONFIRMATION_AGE_S / 3
"""Time after which to send what is encoded, before it is too late for all."""
_APPEND_TIMEOUT_MS = 30_000
_ROLE = "sparkmirror-sink"
_SIZES: Mapping[int, str] = {
    ErrorCode.MESSAGE_TOO_LARGE: "max.message.bytes",
    ErrorCode.RECORD_LIST_TOO_LARGE: "segment.bytes",
}
"""Codes that refuse a batch by its size, and the topic's setting behind each."""

Answer = TypeVar("Answer")
Fault = Callable[[str], None]
"""Hook for tests, called at each place where an attempt may die."""


class _Appends(NamedTuple):
    """A leader's request, ready to be sent."""

    connection: RpcConnection
    version: int
    topics: Mapping[bytes, str]
    """Topics by their fields in the answer."""
    data: list[bytes | memoryview]


class TaskAppender:
    """An attempt; `take` Arrow batches, then `finish`. For one thread.

    Rows need a `partition` column; `topic` too, unless the order names the topic. Raises `RowsRefused`, `RowsChanged`,
    `AttemptFenced` and `ClusterUnreachable`; each leaves the appended records to the next attempt.
    """

    def __init__(
        self, order: AppendOrder, fault: Fault = lambda place: None, *, window_bytes: int = WINDOW_BYTES
    ) -> None:
        self._order = order
        self._fault = fault
        self._writer = BatchProducer(order.producer_id, order.producer_epoch)
        self._client = ClusterClient(order.cluster, _ROLE)
        batch = order.batch
        self._agreement = SinkAgreement(self._client, batch.query, batch.generation, order.agreed_to)
        self._lines: dict[TopicPartition, PartitionLine] = {}
        self._places: dict[TopicPartition, LeaderPlace] = {}
        self._window_bytes = window_bytes
        self._taken = 0
        self._heard = now_s()
        self._doubt_since: float | None = None
        self._timed = False

    def take(self, batch: pa.RecordBatch) -> None:
        """Take rows, and send full windows."""
        now_ms = wall_ms()
        columns = RowColumns.of(batch, now_ms)
        self._timed = columns.timed
        self._refuse_old(columns, now_ms)
        for partition, numbers in self._by_partition(columns):
            if partition not in self._lines:
                self._begin(partition)
            self._lines[partition].add(RowSelection(columns, numbers))
        self._taken += batch.nbytes
        if self._taken >= self._window_bytes:
            self._drain()

    def expect(self, partitions: Iterable[TopicPartition]) -> None:
        """Look at partitions that get no rows, or none any more."""
        for partition in partitions:
            if partition not in self._lines:
                self._begin(partition)

    def finish(self) -> list[AppendedRange]:
        """Send the rest; return each partition's result."""
        for line in self._lines.values():
            line.settle()
        self._drain()
        for place, line in self._lines.items():
            left = line.finish()
            if line.is_in_doubt:
                raise RowsInDoubt(
                    f"{place[0]}-{place[1]}: some of the {line.next:,} records that an earlier attempt of batch "
                    f"{self._order.batch.number} appended may be gone at the source, and rows are equal, so that "
                    "nothing tells which"
                )
            if left:
                raise RowsChanged(
                    f"{place[0]}-{place[1]}: {left:,} records that an earlier attempt of batch "
                    f"{self._order.batch.number} appended are not among this attempt's rows: the query isn't "
                    "deterministic, or rows for one Kafka partition are in two tasks"
                )
        self._client.close()
        return [
            AppendedRange(
                topic=place[0],
                partition=place[1],
                records=line.next,
                first_offset=line.first_offset,
                last_offset=line.last_offset,
                earlier=line.earlier,
                gone=line.gone.total(),
                is_held=line.is_held,
            )
            for place, line in sorted(self._lines.items())
            if line.next
        ]

    def close(self) -> None:
        self._client.close()

    # --- rows -----------------------------------------------------------------------------------

    def _refuse_old(self, columns: RowColumns, now_ms: int) -> None:
        """Refuse rows that brokers would forget before all attempts have ended."""
        oldest_ms = now_ms - self._order.state_ms + MARGIN_MS
        if columns.timed and columns.count and (row_ms := int(columns.timestamps.min())) < oldest_ms:
            raise RowsRefused(
                "timestamp",
                f"a row is from {_moment(row_ms)}, and brokers forget who appended records from "
                f"before {_moment(oldest_ms)}, so they could come twice: drop the column, or raise "
                "producer.id.expiration.ms on the brokers",
            )

    def _by_partition(self, columns: RowColumns) -> Iterable[tuple[TopicPartition, RowNumbers]]:
        if columns.partition is None:
            raise RowsRefused("partition", "it is missing: gather the rows by Kafka partition first")
        topics = columns.topic if columns.topic is not None else np.full(columns.count, self._order.topic, object)
        if not all(topics):
            raise RowsRefused("topic", "a row has none, and the sink has no topic of its own")
        for topic in sorted(set(topics)):
            mine = topics == topic
            for number in np.unique(columns.partition[mine]).tolist():
                yield (topic, number), np.flatnonzero(mine & (columns.partition == number)).astype(np.int64)

    def _begin(self, partition: TopicPartition) -> None:
        topic = partition[0]
        if not self._lines:
            self._tried(self._stop_at_fence)
        if not any(name == topic for name, _ in self._places):
            self._tried(lambda: self._locate([topic]))
        if partition not in self._places:
            count = sum(name == topic for name, _ in self._places)
            raise RowsRefused("partition", f"{topic} has {count} partitions, and a row is for number {partition[1]}")
        leave = (self._order.gone or {}).get(partition)
        self._lines[partition] = PartitionLine(self._order.batch_bytes, leave, is_ordered=self._order.is_ordered)
        if leave is not None or self._order.is_repeated or self._order.may_be_forgotten(wall_ms()):
            self._look([partition])

    # --- sending --------------------------------------------------------------------------------

    def _drain(self) -> None:
        while due := {partition: line for partition, line in self._lines.items() if line.is_due}:
            batches: dict[TopicPartition, memoryview] = {}
            began = now_s()
            for partition, line in due.items():
                batches[partition] = self._next_batch(line)
                if now_s() - began > _ENCODING_S:
                    break
            self._send(batches)
        self._taken = 0

    def _next_batch(self, line: PartitionLine) -> memoryview:
        columns, numbers = line.waiting[0]
        made = encode(
            columns,
            numbers,
            producer_id=self._order.producer_id,
            producer_epoch=self._order.producer_epoch,
            sequence=line.next,
            codec=self._order.codec,
            most=line.batch_bytes,
        )
        line.flight = Flight(columns, numbers[: made.records])
        if made.records == len(numbers):
            line.waiting.pop(0)
        else:
            line.waiting[0] = RowSelection(columns, numbers[made.records :])
        return made.data

    def _send(self, batches: Mapping[TopicPartition, memoryview]) -> None:
        self._fault("send")
        doubtful: dict[TopicPartition, int] = {}
        try:
            requests = self._requests(batches)
            if self._is_late:
                requests, doubtful = [], dict.fromkeys(self._lines, int(ErrorCode.REQUEST_TIMED_OUT))
            for partition, code in self._exchanged(requests):
                if code is not None:
                    doubtful[partition] = code
        except ConnectionError:
            self._client.hang_up()
        for partition in batches:
            if self._lines[partition].flight is not None:
                doubtful.setdefault(partition, ErrorCode.NETWORK_EXCEPTION)
        self._fault("acknowledged")
        if doubtful:
            self._doubt(doubtful)

    @property
    def _is_late(self) -> bool:
        """True if the attempt must look before it appends (R6).

        If the process stood still, it may be an old attempt, and brokers may have forgotten its batch.
        """
        return now_s() - self._heard > MAX_CONFIRMATION_AGE_S

    def _requests(self, batches: Mapping[TopicPartition, memoryview]) -> list[_Appends]:
        """Connect to each leader; return the requests."""
        by_leader: dict[int, dict[TopicPartition, memoryview]] = defaultdict(dict)
        for partition, batch in batches.items():
            by_leader[self._places[partition].leader][partition] = batch
        requests = []
        for leader, part in by_leader.items():
            connection = self._client.broker(leader)
            connection.renew_if_due()
            version = connection.version(produce.API_KEY, produce.VERSIONS, "Produce")
            fields: dict[bytes, dict[int, memoryview]] = defaultdict(dict)
            names: dict[bytes, str] = {}
            for (topic, number), batch in part.items():
                field = produce.topic_field(version, topic, self._places[topic, number].topic_id)
                key = self._places[topic, number].topic_id if version >= produce.BY_ID_FROM else topic.encode()
                fields[field][number], names[key] = batch, topic
            data = produce.produce_request(version, 0, self._client.client_id.encode(), _APPEND_TIMEOUT_MS, fields)
            requests.append(_Appends(connection, version, names, data))
        return requests

    def _exchanged(self, requests: Iterable[_Appends]) -> Iterable[tuple[TopicPartition, int | None]]:
        """Send requests; yield answered partitions, with a code in doubt."""
        sent = now_s()
        for each in requests:
            if self._is_late:
                raise ConnectionError("a leader took too long to take its request")
            each.connection.send_raw(each.data)
        self._fault("sent")
        throttles_ms = [0]
        for connection, version, names, _ in requests:
            _, acks, throttle_ms = produce.read_answer(version, connection.receive_raw())
            throttles_ms.append(throttle_ms)
            for ack in acks:
                if ack.key[0] not in names:
                    continue
                partition = names[ack.key[0]], ack.key[1]
                line = self._lines.get(partition)
                if line is None or line.flight is None:
                    continue
                self._heard = sent  # an answer may be late, and the batch taken up meanwhile
                # The answer to a repeated batch has its timestamp, and so has each answer of a LogAppendTime topic.
                if ack.error or ack.log_append_time_ms >= 0:
                    yield partition, ack.error
                else:
                    line.acknowledge(ack.base_offset)
                    self._doubt_since = None
                    yield partition, None
        time.sleep(max(throttles_ms) / 1000)  # until then a broker reads nothing, and would append it later (R5)

    def _doubt(self, codes: Mapping[TopicPartition, int]) -> None:
        """Compare with the log, and continue from there."""
        for partition, code in codes.items():
            if code and verdict(code) is ErrorAction.STOP:
                raise self._fenced(partition)
            if code in _SIZES:
                self._shrink(partition, code)
            elif code and verdict(code) is ErrorAction.PARK:
                raise ClusterUnreachable(
                    f"cluster {self._client.config.alias} refuses rows for {partition[0]}-{partition[1]}: "
                    f"{error_name(code)}: {explanation(code)}"
                )
        self._doubt_since = self._doubt_since if self._doubt_since is not None else now_s()
        if now_s() - self._doubt_since > _PATIENCE_S:
            (topic, number), code = next(iter(codes.items()))
            raise ClusterUnreachable(
                f"cluster {self._client.config.alias}: {topic}-{number}: nothing was appended for {_PATIENCE_S:.0f} s: "
                f"{error_name(code)}"
            )
        if any(code and verdict(code) is ErrorAction.RETRY for code in codes.values()):
            time.sleep(_PAUSE_S)
        self._look(list(codes))

    def _shrink(self, partition: TopicPartition, code: int) -> None:
        if not self._lines[partition].shrink():
            raise RowsRefused(
                "value",
                f"a row for {partition[0]}-{partition[1]} is larger than cluster {self._client.config.alias} takes: "
                f"raise the topic's {_SIZES[code]}",
            )

    def _fenced(self, partition: TopicPartition) -> AttemptFenced:
        return AttemptFenced(
            f"{partition[0]}-{partition[1]}: a newer batch of the query than {self._order.batch.number} has begun: "
            "this attempt is an old one, and appends nothing more"
        )

    # --- looking --------------------------------------------------------------------------------

    def _look(self, partitions: list[TopicPartition]) -> None:
        """Ask leaders and logs for this batch's records, and match the rows to them."""
        known = sum(line.next for line in self._lines.values())
        self._tried(lambda: self._learn(partitions))
        if sum(line.next for line in self._lines.values()) > known:
            self._doubt_since = None

    def _stop_at_fence(self) -> None:
        number = self._order.batch.number
        if self._order.agreed_to >= 0 and self._agreement.newest_fence(number) >= 0:
            raise AttemptFenced(f"another process has taken up batch {number}: this attempt appends nothing more")

    def _learn(self, partitions: list[TopicPartition]) -> None:
        self._stop_at_fence()
        self._locate({topic for topic, _ in partitions})
        by_leader: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for topic, number in partitions:
            by_leader[self._places[topic, number].leader][topic].append(number)
        for leader, asked in by_leader.items():
            for partition, described in describe_producers(self._client, leader, asked).items():
                if described.error:
                    raise ClusterTrouble(f"{partition[0]}-{partition[1]}: {error_name(described.error)}")
                state = next(
                    (each for each in described.producers if each.producer_id == self._order.producer_id), None
                )
                if state is not None and state.producer_epoch > self._order.producer_epoch:
                    raise self._fenced(partition)
                is_ours = state is not None and state.producer_epoch == self._order.producer_epoch
                last = state.last_sequence if is_ours and state is not None else -1
                self._learn_line(partition, last, is_known=state is not None)
        heard = now_s()
        self._stop_at_fence()  # the logs may have taken long to read
        if len(partitions) == len(self._lines):
            self._heard = heard

    def _learn_line(self, partition: TopicPartition, last: int, *, is_known: bool) -> None:
        line, place = self._lines[partition], self._places[partition]
        floor = line.last_offset + 1
        if not is_known and may_be_hidden(self._client, place, self._order):
            floor, is_whole = search_from(self._client, place, self._order, line.last_offset)
            last = max(last_sequence(self._client, place, self._writer, floor, is_whole=is_whole), line.next - 1)
        if last + 1 < (known := max(line.next, line.counted)):
            raise ClusterUnreachable(
                f"cluster {self._client.config.alias}: {place}: it had {known:,} records of this batch and has "
                f"{last + 1:,} now: its log was cut"
            )
        if last + 1 > line.next:
            records = read_back(self._client, place, self._writer, line.next, last, floor)
            line.is_stamped |= records.is_stamped
            there = records.first_offset, records.last_offset
            line.learn(records.rows, with_time=self._timed, count=records.records, place=there)
        line.reconsider()

    def _locate(self, topics: Iterable[str]) -> None:
        for name, topic in self._client.metadata(topics).items():
            if topic.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise RowsRefused("topic", f"cluster {self._client.config.alias} has no topic {name}: create it first")
            if topic.error or any(leader.leader < 0 for leader in topic.partitions.values()):
                raise ClusterTrouble(f"{name}: {error_name(topic.error) if topic.error else 'no leader now'}")
            for number, leader in topic.partitions.items():
                before = self._places.get((name, number))
                if before is not None and before.topic_id != topic.topic_id:
                    raise ClusterUnreachable(f"topic {name} was created again while its rows were appended")
                self._places[name, number] = LeaderPlace(name, number, topic.topic_id, leader.leader)

    def _tried(self, attempt: Callable[[], Answer]) -> Answer:
        """Try again while errors may pass; raises `ClusterUnreachable`."""
        until = now_s() + _PATIENCE_S
        while True:
            try:
                return attempt()
            except ConnectionError as error:
                self._client.hang_up()
                if now_s() > until:
                    raise ClusterUnreachable(f"cluster {self._client.config.alias}: {error}") from error
                time.sleep(_PAUSE_S)


def _moment(at_ms: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at_ms / 1000))
