"""Entry log in a small topic, for segments, control messages and receipts.

Blocking: append entries durably, or read entries from an offset to the end.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple, TypeVar

from sparkmirror.errors import ClusterTrouble
from sparkmirror.kafka.cluster.client import ClusterClient, PartitionLeader
from sparkmirror.kafka.cluster.entry_batches import entry_batches
from sparkmirror.kafka.cluster.fetch_once import FetchBounds, fetch_once, only_part
from sparkmirror.kafka.cluster.list_offsets import EARLIEST, LATEST, list_offsets
from sparkmirror.kafka.wire import produce
from sparkmirror.kafka.wire.batches import BatchHeader, batch_headers
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.fetch_session import FetchedPartition
from sparkmirror.kafka.wire.pieces import records
from sparkmirror.kafka.wire.topic_ids import NO_ID

_APPEND_TIMEOUT_MS = 10_000
_READ_BYTES = 1 << 20
_MOST_RECORDS = 500_000
"""Most records in one answer.

As many of 20 bytes are in a batch of `_READ_BYTES` that compresses tenfold; compressed, there may be a thousand times
as many.
"""
_NO_LEADER = PartitionLeader(-1, -1)
_TRIES = 5
_PAUSE_S = 0.2
_FINAL_ERRORS = {
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.INVALID_TOPIC_EXCEPTION,
    ErrorCode.RECORD_LIST_TOO_LARGE,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.SASL_AUTHENTICATION_FAILED,
    ErrorCode.INVALID_RECORD,
}
"""Error codes after which a retry does not help."""

Answer = TypeVar("Answer")


class LogUnavailable(ClusterTrouble):
    """Error for a topic that can't be read or written now.

    `code` is Kafka's error; 0 if the connection or the content is at fault.
    """

    def __init__(self, topic: str, what: str, code: int) -> None:
        self.code = code
        grant = (
            "; grant sparkmirror's principal READ and WRITE on it"
            if code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
            else ""
        )
        super().__init__(f"topic {topic}: {what}" + (f" (error {code})" if code else "") + grant)


class LogCut(LogUnavailable):
    """Error for a log that lacks records which were read from it, or acknowledged.

    An unclean leader election cut the log at `place`.
    """

    def __init__(self, topic: str, partition: int, place: LogPlace) -> None:
        self.place = place
        super().__init__(topic, f"partition {partition} lost its records from offset {place.offset} on", 0)


class LogPlace(NamedTuple):
    """Place up to which a partition's log was read or written."""

    offset: int = 0
    """Next offset."""
    epoch: int = -1
    """Leader epoch of the batch before; -1: not known.

    With the epoch a leader tells whether its log has the same batch (KIP-320).
    """


class Appending(NamedTuple):
    """Outcome for records of several partitions, each on its own."""

    firsts: dict[int, int]
    """Offset of the first record, by partition."""
    places: dict[int, LogPlace]
    """Place after the last record, by partition.

    The epoch is the leader's as known here: it may differ from the log's.
    """
    failed: dict[int, ConnectionError]
    """Errors of partitions whose records are not known to be there, at least not all."""


class LogEntry(NamedTuple):
    """One record in the log; a tombstone has the value None."""

    offset: int
    key: bytes | None
    value: bytes | None


class TopicLog:
    """One internal topic on one cluster."""

    def __init__(self, client: ClusterClient, topic: str, *, may_be_absent: bool = False) -> None:
        """Take a client, and the topic's name.

        A topic that may be absent is looked for twice, and later once; any other one several times, since brokers may
        not know a new topic at once.
        """
        self._client = client
        self._looks, self._later_looks = (2, 1) if may_be_absent else (_TRIES, _TRIES)
        self.topic = topic
        self._topic_id = NO_ID
        self._leaders: dict[int, PartitionLeader] = {}
        self.failures = 0
        """Number of tries that failed: what they sent may still be appended."""
        self._whole: set[int] = set()
        """Partitions whose leader, as known, shows all that was ever acknowledged."""
        self._fewest = 1

    @property
    def partitions(self) -> int:
        if not self._leaders:
            self._tried(lambda: None)  # with retries: brokers may not know a new topic at once
        return len(self._leaders)

    def expect(self, partitions: int) -> None:
        """Ask again from now on after an answer with fewer partitions."""
        self._fewest = partitions
        if len(self._leaders) < partitions:
            self._leaders = {}

    def look_again(self) -> None:
        self._leaders = {}
        self._tried(lambda: None)

    def reach(self) -> None:
        """Connect to all leaders, since there will be something to write soon."""
        self._tried(
            lambda: [
                self._client.broker(leader) for leader in {at.leader for at in self._leaders.values()} if leader >= 0
            ]
        )

    def led_alike(self, partition: int) -> set[int]:
        """Return the partitions with this one's leader, or without a leader as it is."""
        if not self._leaders:
            self._tried(lambda: None)
        leader = self._leader(partition).leader
        return {partition} | {other for other, at in self._leaders.items() if at.leader == leader}

    def append(
        self, partition: int, entries: Sequence[tuple[bytes, bytes | None]], *, timestamp_ms: int | None = None
    ) -> int:
        """Append records with acks=all; return the first one's offset.

        A retry after a lost answer may repeat the records. Their timestamp is now, unless one is given.
        """
        at_ms = int(time.time() * 1000) if timestamp_ms is None else timestamp_ms
        offsets = [self._append(partition, batch) for batch in entry_batches(entries, at_ms, packed=False)]
        return offsets[0]

    def append_all(self, entries: Mapping[int, Sequence[tuple[bytes, bytes | None]]]) -> Appending:
        """Append records to several partitions, compressed, as `append` does.

        Each leader gets one request, and no leader waits for another. The order within a partition is kept, and nothing
        is appended behind a failure in it. A partition that fails leaves the others as they are.
        """
        at_ms = int(time.time() * 1000)
        firsts: dict[int, int] = {}
        places: dict[int, LogPlace] = {}
        failed: dict[int, ConnectionError] = {}
        waiting = {
            partition: entry_batches(listed, at_ms, packed=True) for partition, listed in entries.items() if listed
        }
        while batches := {
            partition: batch
            for partition, made in waiting.items()
            if partition not in failed and (batch := next(made, None)) is not None
        }:
            begins, newly_failed = self._append_each(batches)
            for partition, at in begins.items():
                ((_, header),) = batch_headers(batches[partition])
                firsts.setdefault(partition, at.offset)
                places[partition] = at._replace(offset=at.offset + header.next_offset)
            failed |= newly_failed
        for partition in failed.keys() & places.keys():
            del firsts[partition], places[partition]
        return Appending(firsts, places, failed)

    def see_whole(self, partition: int, place: LogPlace) -> None:
        """Raise `LogCut` if the log lacks records below `place`.

        A leader that has led since, as far as known, is not asked.
        """
        if not self._leaders:
            self._tried(lambda: None)
        if place.epoch < 0 or place.epoch != self._leader(partition).epoch:
            self._not_cut(partition, place, self._tried(lambda: self._fetch(partition, place, 0)))

    def _not_cut(self, partition: int, place: LogPlace, part: FetchedPartition) -> None:
        if part.diverging is not None:
            epoch, end = part.diverging
            # An older epoch may end behind the place: then the logs part somewhere before it (KIP-279).
            raise LogCut(self.topic, partition, LogPlace(min(end, place.offset), epoch))
        if part.error == ErrorCode.OFFSET_OUT_OF_RANGE:
            start = self._log_start(partition)
            if place.offset >= start:
                raise LogCut(self.topic, partition, LogPlace(start))
        elif 0 <= part.high_watermark < place.offset:
            raise LogCut(self.topic, partition, LogPlace(part.high_watermark))

    def _append(self, partition: int, batch: memoryview) -> int:
        """Append a batch to a partition; return its offset."""
        begins: dict[int, LogPlace] = {}

        def attempt() -> None:
            for error in self._append_rest({partition: batch}, begins).values():
                raise error

        self._tried(attempt)
        return begins[partition].offset

    def _append_each(self, batches: Mapping[int, memoryview]) -> tuple[dict[int, LogPlace], dict[int, ConnectionError]]:
        """Append a batch to each partition; return where they begin, and the failures.

        A partition that is refused for good is not tried again.
        """
        begins: dict[int, LogPlace] = {}
        failed: dict[int, ConnectionError] = {}
        again: dict[int, ConnectionError] = {}

        def attempt() -> None:
            rest = {partition: batch for partition, batch in batches.items() if partition not in begins | failed}
            again.clear()
            for partition, error in self._append_rest(rest, begins).items():
                is_final = getattr(error, "code", 0) in _FINAL_ERRORS
                (failed if is_final else again)[partition] = error
            for error in again.values():
                raise error

        try:
            self._tried(attempt)
        except ConnectionError as error:
            failed |= {at: again.get(at, error) for at in batches if at not in begins | failed}
        return begins, failed

    def _append_rest(
        self, batches: Mapping[int, memoryview], begins: dict[int, LogPlace]
    ) -> dict[int, ConnectionError]:
        """Try once to append the batches; note where they begin, and return the failures.

        A leader's answer that lacks a batch counts as an error, too.
        """
        errors: dict[int, ConnectionError] = {}
        by_leader: dict[int, dict[int, memoryview]] = defaultdict(dict)
        for partition, batch in batches.items():
            if (leader := self._leader(partition).leader) >= 0:
                by_leader[leader][partition] = batch
            else:
                errors[partition] = LogUnavailable(
                    self.topic, f"partition {partition} has no leader now", ErrorCode.LEADER_NOT_AVAILABLE
                )
        asked = []
        for leader, part in by_leader.items():
            try:
                connection = self._client.broker(leader)
                version = connection.version(produce.API_KEY, produce.VERSIONS, "Produce")
                field = produce.topic_field(version, self.topic, self._topic_id)
                client_id = self._client.client_id.encode()
                connection.send_raw(produce.produce_request(version, 0, client_id, _APPEND_TIMEOUT_MS, {field: part}))
            except ConnectionError as error:
                errors |= dict.fromkeys(part, error)
            else:
                asked.append((connection, version, part))
        for connection, version, part in asked:
            try:
                acks = {ack.key[1]: ack for ack in produce.read_answer(version, connection.receive_raw())[1]}
            except ConnectionError as error:
                errors |= dict.fromkeys(part, error)
                continue
            for partition in part:
                ack = acks.get(partition)
                if ack is None:
                    errors[partition] = LogUnavailable(
                        self.topic, "a broker's answer to a Produce lacks a partition", 0
                    )
                elif ack.error:
                    what = f"a record was refused {ack.message}".rstrip()
                    errors[partition] = LogUnavailable(self.topic, what, ack.error)
                else:
                    begins[partition] = LogPlace(ack.base_offset, self._leader(partition).epoch)
        return errors

    def read(self, partition: int, offset: int, *, wait_ms: int = 0) -> tuple[list[LogEntry], int]:
        """Read all records from `offset` to the high watermark.

        Return the records and the next offset to read. An offset below the log's start is moved up to the start:
        compaction and retention are expected here. Every record that was acknowledged before is below the high
        watermark (`_see_all_acknowledged`).
        """
        entries: list[LogEntry] = []
        more = True
        while more:
            answered, offset, more = self.read_some(partition, offset, wait_ms=wait_ms)
            entries += answered
        return entries, offset

    def read_some(self, partition: int, offset: int, *, wait_ms: int = 0) -> tuple[list[LogEntry], int, bool]:
        """Read one answer's records from `offset` on, as `read` does.

        Return the records, the next offset, and True if more follow below the high watermark.
        """
        entries, place, more = self._read_part(partition, LogPlace(offset), wait_ms, whole=False)
        return entries, place.offset, more

    def read_on(self, partition: int, place: LogPlace) -> tuple[list[LogEntry], LogPlace, bool]:
        """Read one answer's records from the place on up to which the log was read before.

        Return the records, the next place, and True if more follow below the high watermark. Raises `LogCut` if the log
        lacks records that were read: the answer itself tells, without a further request.
        """
        return self._read_part(partition, place, 0, whole=True)

    def _read_part(
        self, partition: int, place: LogPlace, wait_ms: int, *, whole: bool
    ) -> tuple[list[LogEntry], LogPlace, bool]:
        entries: list[LogEntry] = []
        offset, epoch = place
        part = self._tried(lambda: self._fetch(partition, place, wait_ms))
        if whole and offset:
            self._not_cut(partition, place, part)
        if part.error == ErrorCode.OFFSET_OUT_OF_RANGE and part.log_start_offset < 0:
            return entries, LogPlace(self._log_start(partition)), True
        if part.error:
            raise LogUnavailable(self.topic, "it can't be read", part.error)
        try:
            for header, batch in _batches(part.records, offset):
                entries += batch
                if len(entries) > _MOST_RECORDS:
                    raise ValueError(f"an answer has more than {_MOST_RECORDS:,} records")
                offset, epoch = max(offset, header.next_offset), header.leader_epoch
        except ValueError as error:
            raise LogUnavailable(self.topic, str(error), 0) from error
        if not part.records:
            offset = max(offset, part.high_watermark)
        elif offset == place.offset:
            raise LogUnavailable(self.topic, f"an answer has no whole batch from offset {offset} on", 0)
        return entries, LogPlace(offset, epoch), offset < part.high_watermark

    def end(self, partition: int) -> int:
        """Return the offset after the newest readable record."""
        return self._tried(lambda: self._listed(partition, LATEST))

    def since(self, partition: int, at_ms: int) -> int:
        """Return the offset of the first record at `at_ms` or later, or else the end."""
        end = self.end(partition)
        first = self._tried(lambda: self._listed(partition, at_ms))
        return first if first >= 0 else end

    def _listed(self, partition: int, at: int) -> int:
        leader = self._leader(partition).leader
        listed = list_offsets(self._client, leader, {self.topic: [partition]}, at)[self.topic, partition]
        if listed.error:
            raise LogUnavailable(self.topic, "its offsets can't be found", listed.error)
        return listed.offset

    def _fetch(self, partition: int, place: LogPlace, wait_ms: int) -> FetchedPartition:
        self._see_all_acknowledged(partition)
        bounds = FetchBounds(_READ_BYTES, _READ_BYTES, wait_ms)
        at = self._leader(partition)
        part = only_part(
            fetch_once(
                self._client,
                at.leader,
                {(self.topic, partition): place.offset},
                {self.topic: self._topic_id},
                bounds,
                leader_epoch=at.epoch,
                last_epoch=place.epoch,
            )
        )
        if isinstance(part, int):
            throttled = part == ErrorCode.THROTTLING_QUOTA_EXCEEDED
            raise LogUnavailable(
                self.topic, "the broker throttles sparkmirror" if throttled else "it can't be read", part
            )
        return part

    def _log_start(self, partition: int) -> int:
        listed = list_offsets(self._client, self._leader(partition).leader, {self.topic: [partition]}, EARLIEST)
        start = listed[self.topic, partition]
        if start.error:
            raise LogUnavailable(self.topic, "its start can't be found", start.error)
        return start.offset

    def _locate(self) -> None:
        topic = self._client.metadata([self.topic])[self.topic]
        if topic.error:
            raise LogUnavailable(self.topic, "it isn't there", topic.error)
        count = len(topic.partitions)
        if count < max([self._fewest, *(index + 1 for index in topic.partitions)]):
            raise LogUnavailable(self.topic, f"it has {self._fewest} partitions, and a broker names only {count}", 0)
        self._topic_id = topic.topic_id
        self._leaders = dict(topic.partitions)
        self._whole.clear()

    def _leader(self, partition: int) -> PartitionLeader:
        return self._leaders.get(partition, _NO_LEADER)

    def _see_all_acknowledged(self, partition: int) -> None:
        """Wait until a new leader shows all that the leaders before it acknowledged.

        A new leader's high watermark is behind until its followers have fetched, and a Fetch tells nothing about that.
        A broker answers a question for the log's end only afterwards (KIP-207: OFFSET_NOT_AVAILABLE). The leader epoch
        in each Fetch shows that the leader is still the same.
        """
        if partition not in self._whole:
            self._listed(partition, LATEST)
            self._whole.add(partition)

    def _tried(self, attempt: Callable[[], Answer]) -> Answer:
        """Try with a few retries.

        Each retry looks the leaders up again, on new connections.
        """
        for tried in range(1, _TRIES + 1):
            try:
                if not self._leaders:
                    self._locate()
                return attempt()
            except ConnectionError as error:
                self.failures += 1
                self._leaders = {}
                self._client.hang_up()
                code = getattr(error, "code", 0)
                if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and tried >= self._looks:
                    self._looks = self._later_looks
                    raise
                if tried == _TRIES or code in _FINAL_ERRORS:
                    raise
                time.sleep(_PAUSE_S)
        raise AssertionError("unreachable")


def _batches(log: memoryview, offset: int) -> Iterator[tuple[BatchHeader, Sequence[LogEntry]]]:
    """Yield each batch's header and records from `offset` on.

    From a batch come `_MOST_RECORDS` and one at most. Raises ValueError for a damaged batch, and for batches that
    overlap or go back.
    """
    ahead = 0
    for position, header in batch_headers(log):
        if header.is_corrupt(log, position):
            raise ValueError(f"its batch at offset {header.base_offset} is corrupt")
        if header.base_offset < ahead:
            raise ValueError(f"its batch at offset {header.base_offset} comes after the records up to {ahead - 1}")
        ahead = header.next_offset
        stored = () if header.is_control else records(header, log[position : position + header.size])
        wanted = (LogEntry(each.offset, each.key, each.value) for each in stored if each.offset >= offset)
        yield header, list(islice(wanted, _MOST_RECORDS + 1))
