"""Read a range of a partition's log: large fetches, ahead of the use.

Only data batches are given out: transaction markers, batches that compaction emptied and, at read_committed, aborted
data are left out.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import NamedTuple, Self

from sparkmirror.config import ClusterConfig
from sparkmirror.errors import ClusterTrouble, ClusterUnreachable, HandledError
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.epoch_history import epoch_at
from sparkmirror.kafka.cluster.error_names import error_name
from sparkmirror.kafka.cluster.fetch_once import FetchBounds, fetch_over, only_part
from sparkmirror.kafka.cluster.leader_epochs import EpochStart
from sparkmirror.kafka.cluster.list_offsets import EARLIEST, list_offsets
from sparkmirror.kafka.cluster.log_range import LogBatch, RangeUnread
from sparkmirror.kafka.wire.batches import MAGIC, BatchHeader, batch_headers
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.fetch_session import FetchedPartition
from sparkmirror.kafka.wire.rpc import RpcConnection
from sparkmirror.kafka.wire.topic_ids import same_topic
from sparkmirror.kafka.wire.transactions import Transactions

FETCH_BYTES = 4 << 20
AHEAD = 2
"""Number of answers that may wait to be used."""
_RECEIVE_BUFFER = 1 << 20
_BOUNDS = FetchBounds(FETCH_BYTES, FETCH_BYTES, wait_ms=500)
_CLIENT_ID = "sparkmirror-verify"
_PATIENCE_S = 60.0
"""Longest time without an answer.

If a leader dies, a new leader takes over after the brokers' session timeout, by default 9 s.
"""
_PAUSE_S = 0.5
_WAIT_S = 0.2
_EMPTY_ANSWERS, _EMPTY_PAUSE_S = 4, 1.0
"""Empty answers that end a compacted log's read, and the pause after each.

The cleaner may have taken all batches up to the end. Otherwise an empty answer proves nothing: old data may be slow to
come (tiered storage, and its quota for fetches).
"""


class OffsetBounds(NamedTuple):
    """Offsets [first, end) of a log; records of batches outside are left out."""

    first: int
    end: int


class LogChanged(HandledError):
    """A log has changed since the plan: it was deleted, created again, or cut short."""


class _EndsEarly(ClusterTrouble):
    """A log's readable part ends before the range.

    Either a new leader's high watermark lags, or the log was cut.
    """


class RangeReader:
    """Read one partition's batches at offsets [first, end), in order.

    A context manager. The reader connects when the iteration begins. Only a compacted log may end before the range.
    `epochs` are the records' leader epochs, as far as known: a batch of another epoch is of another log.
    """

    def __init__(
        self,
        config: ClusterConfig,
        topic: str,
        topic_id: bytes,
        partition: int,
        bounds: OffsetBounds,
        *,
        read_committed: bool,
        compacted: bool,
        role: str = _CLIENT_ID,
        epochs: Sequence[EpochStart] = (),
    ) -> None:
        self._config = config
        self._topic, self._topic_id, self._partition = topic, topic_id, partition
        self._bounds = bounds
        self._read_committed = read_committed
        self._compacted = compacted
        self._role = role
        self._epochs = epochs
        self._answers: queue.Queue[list[LogBatch] | BaseException | None] = queue.Queue(AHEAD)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"read {topic}-{partition}", daemon=True)
        self.expired: list[OffsetBounds] = []
        """Offsets that retention deleted before they were read.

        Offsets before a batch are listed before the batch is given out.
        """

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._thread.join()

    def __iter__(self) -> Iterator[LogBatch]:
        while True:
            answer = self._answers.get()
            if answer is None:
                return
            if isinstance(answer, BaseException):
                raise answer
            yield from answer

    def _run(self) -> None:
        client = ClusterClient(self._config, self._role)
        last: BaseException | None = None
        try:
            if self._bounds.first < self._bounds.end:
                self._fetch_all(client)
        except Exception as error:
            last = error
        finally:
            client.close()
        self._put(last)

    def _put(self, answer: list[LogBatch] | BaseException | None) -> None:
        while not self._closing.is_set():
            with contextlib.suppress(queue.Full):
                self._answers.put(answer, timeout=_WAIT_S)
                return

    def _fetch_all(self, client: ClusterClient) -> None:
        offset, empty, moved_at = self._bounds.first, 0, 0.0
        failing_since: float | None = None
        connection: RpcConnection | None = None
        while offset < self._bounds.end and not self._closing.is_set():
            try:
                if connection is None:
                    connection = self._connect(client)
                part = self._fetch(connection, offset)
                if part is not None and part.error == ErrorCode.OFFSET_OUT_OF_RANGE:
                    offset, empty = self._expire(client, offset), 0
                    continue
                if part is not None:
                    self._see_that_it_goes_on(part)
            except ConnectionError as error:
                if connection is not None:
                    connection.close()
                connection = None
                now = time.monotonic()
                failing_since = now if failing_since is None else failing_since
                if now - failing_since >= _PATIENCE_S:
                    kind = LogChanged if isinstance(error, _EndsEarly) else ClusterUnreachable
                    raise kind(f"{self._name}: {error}") from error
                self._closing.wait(_PAUSE_S)
                continue
            failing_since = None
            if part is None:
                continue
            batches, following = self._batches(part, offset)
            self._put(batches)
            if following > offset:
                offset, empty = following, 0
                continue
            moved_at = moved_at if empty else time.monotonic()
            empty += 1
            if self._compacted and not part.records and empty >= _EMPTY_ANSWERS:
                break  # only compacted offsets are left up to the end
            if time.monotonic() - moved_at >= _PATIENCE_S:
                end = self._bounds.end
                raise ClusterUnreachable(f"{self._name}: no record comes at offset {offset}, though its end is {end}")
            self._closing.wait(_EMPTY_PAUSE_S)
        if connection is not None:
            connection.close()

    @property
    def _name(self) -> str:
        return f"cluster {self._config.alias}: {self._topic}-{self._partition}"

    def _connect(self, client: ClusterClient) -> RpcConnection:
        leaders = client.metadata([self._topic])[self._topic]
        if leaders.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise LogChanged(f"{self._name} was deleted since it was planned")
        if leaders.error:
            raise RangeUnread(error_name(leaders.error))
        if not same_topic(leaders.topic_id, self._topic_id):
            raise LogChanged(f"{self._name} was created again since it was planned")
        if self._partition not in leaders.partitions:
            raise RangeUnread("its leader is not known")
        self._leader = leaders.partitions[self._partition].leader
        return client.dial(self._leader, receive_buffer=_RECEIVE_BUFFER)

    def _fetch(self, connection: RpcConnection, offset: int) -> FetchedPartition | None:
        reply = fetch_over(
            connection,
            self._config.client_id or self._role,
            {(self._topic, self._partition): offset},
            {self._topic: self._topic_id},
            _BOUNDS,
            read_committed=self._read_committed,
        )
        part = only_part(reply)
        if isinstance(part, int):
            if part == ErrorCode.THROTTLING_QUOTA_EXCEEDED:
                return None
            raise RangeUnread(error_name(part))
        return None if reply.throttled and not part.records else part

    def _see_that_it_goes_on(self, part: FetchedPartition) -> None:
        end = part.last_stable_offset if self._read_committed else part.high_watermark
        if not part.records and end < self._bounds.end:
            raise _EndsEarly(f"its readable part ends at {end} now")

    def _batches(self, part: FetchedPartition, offset: int) -> tuple[list[LogBatch], int]:
        """Return an answer's data batches, and the offset to continue from."""
        batches: list[LogBatch] = []
        end = self._bounds.end
        transactions = Transactions(part.aborted)
        for position, header in batch_headers(part.records):
            view = part.records[position : position + header.size]
            if len(view) < header.size:
                break
            if offset >= end or (header.magic == MAGIC and header.base_offset >= end):
                return batches, end
            following = header.next_offset
            if following > offset and header.magic == MAGIC:
                self._see_that_it_is_the_planned_log(header, max(header.base_offset, self._bounds.first))
            if following > offset and not _is_passed_over(header, view, transactions):
                batches.append(LogBatch(header, view))
            offset = max(offset, following)
        return batches, offset

    def _see_that_it_is_the_planned_log(self, header: BatchHeader, offset: int) -> None:
        planned = epoch_at(self._epochs, offset)
        if planned is not None and 0 <= header.leader_epoch != planned:
            raise LogChanged(
                f"{self._name} was cut since it was planned (an unclean leader election?): its batch at offset "
                f"{header.base_offset} is of leader epoch {header.leader_epoch}, not {planned}"
            )

    def _expire(self, client: ClusterClient, offset: int) -> int:
        """Pass over offsets that retention took; return the offset to continue from."""
        start = self._log_start(client)
        if start <= offset:
            raise LogChanged(f"{self._name} was cut below offset {offset} since it was planned")
        self.expired.append(OffsetBounds(offset, min(start, self._bounds.end)))
        return start

    def _log_start(self, client: ClusterClient) -> int:
        listed = list_offsets(client, self._leader, {self._topic: [self._partition]}, EARLIEST)
        start = listed[self._topic, self._partition]
        if start.error:
            raise RangeUnread(error_name(start.error))
        return start.offset


def _is_passed_over(header: BatchHeader, view: memoryview, transactions: Transactions) -> bool:
    if header.magic != MAGIC:
        return False
    aborted = transactions.is_aborted(header, view)
    return aborted or header.is_control or not header.records
