"""End of MirrorMaker 2's copy of one partition, read from both logs.

MirrorMaker 2's stored offset is right after a clean stop. After a kill the stored offset is too low: then the target's
tail tells (`tail_match`), from the newest offset sync on, or else from records before the stored offset on.

Blocking; `last_copied_pool` has several partitions read at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice, takewhile
from typing import NamedTuple

from sparkmirror.errors import HandledError
from sparkmirror.exact.mm2.record_formats import OffsetSync
from sparkmirror.kafka.cluster.client import ClusterClient, TopicLeaders
from sparkmirror.kafka.cluster.log_range import RangeUnread, read_batches
from sparkmirror.kafka.cluster.topic_configs import CLEANUP_POLICY, topic_configs
from sparkmirror.kafka.wire.batches import TIMESTAMP_TYPE_BIT
from sparkmirror.kafka.wire.pieces import raw_parts
from sparkmirror.mirror.takeover.log_bounds import BothLogs, Bounds
from sparkmirror.mirror.takeover.tail_match import ANY_TIME, LogRecord, Unclear, possible_ends

CONTEXT = 256
"""Source offsets before the stored offset whose copies must be at the target too.

Used where no offset sync helps.
"""

FIRST_TAIL, WIDER, LONGEST_TAIL = 1024, 8, 4 << 20
"""Numbers of target records to look at: at first, growth per try, at most."""

MOST_MISSING = 1 << 20
"""Most allegedly copied source records to look for at the target."""

ONE_STRETCH = 4096
"""Two source places closer than this are read in one go."""

STOP_CLEANLY = "start MirrorMaker 2 once more and stop it with SIGTERM, which stores where it is"


@dataclass(frozen=True, slots=True)
class LastCopied:
    """End of MirrorMaker 2's copy of a partition."""

    upstream: int
    log_end: int
    """The target's log end, with all records that MirrorMaker 2 wrote."""


class OurEnd(NamedTuple):
    """End of this flow's records: next source offset, and end at the target.

    The part of `OurRecords` that decides how far to look for MirrorMaker 2's records.
    """

    upstream: int
    end: int
    recreated: bool = False
    """True if the target topic was created again, and has no record of this flow yet.

    Then MirrorMaker 2's word counts only if the log shows its last record.
    """


class Untold(HandledError):
    """The copy's end is unknown; the message has reason and remedy.

    `wait` is True if the end may be known soon. `strange` is True if the records do not look like MirrorMaker 2's, so a
    foreign producer may have written them.
    """

    def __init__(self, reason: str, *, wait: bool = False, strange: bool = False) -> None:
        super().__init__(reason)
        self.wait = wait
        self.strange = strange


def told_by_bounds(bounds: Bounds, stored: int) -> LastCopied | Untold | None:
    """Return the answer that needs no record: the source ends at the stored offset.

    Return `Untold` for unstable or contradictory bounds, and `None` if records must be read.
    """
    if bounds.target_stable < bounds.target_end:
        return Untold(
            f"the target's newest records are not stable yet: a transaction is open at offset "
            f"{bounds.target_end - 1} or before it, or replicas lag behind",
            wait=True,
        )
    if stored >= bounds.source_end:
        return Untold(
            f"MirrorMaker 2 has copied offset {stored}, and the source ends at {bounds.source_end}: the source topic "
            "was created again since; delete it at the target, or exclude the topic",
            strange=True,
        )
    return LastCopied(stored, bounds.target_end) if stored + 1 == bounds.source_end else None


class LastCopiedReader:
    """Read the ends of one flow's copies.

    `read_committed` is the isolation level with which the flow reads its source.
    """

    def __init__(self, source: ClusterClient, target: ClusterClient, *, read_committed: bool) -> None:
        self._source = source
        self._target = target
        self._read_committed = read_committed

    def find(
        self,
        pair: BothLogs,
        bounds: Bounds,
        stored: int,
        sync: OffsetSync | None,
        ours: OurEnd | None,
        doubted: bool = False,
    ) -> LastCopied:
        """Find the copy's end. Raises `Untold`, and `ConnectionError`s.

        Call `told_by_bounds` first. `stored` is the upstream offset that MirrorMaker 2 says it has copied; `sync` is
        its newest offset sync. `ours` is this flow's progress, given if `stored` is beyond. If the target has none of
        the records beyond the progress, sparkmirror itself stored the offset, and the target has lost the records
        since: then the result is this flow's progress. `doubted` is True if another connector's offset may be right
        instead: then `stored` counts only if the target ends with the last record up to `stored`.
        """
        logs = _Logs(self._source, self._target, pair, bounds, self._read_committed)
        if ours is not None and self._is_our_word(logs, pair, ours, stored):
            return LastCopied(ours.upstream - 1, bounds.target_end)
        end = stored  # right if no further record exists
        if next(logs.source_records(stored + 1), None) is not None:
            end = self._by_tail(logs, pair, stored, sync)
        if doubted and end == stored and not _is_shown(logs, stored):
            raise Untold(
                f"the target does not end with the source's record at offset {stored}, the last that a connector says "
                "it copied. Another connector's offset is older than the source's first record, and the logs don't "
                "tell which of them copies to this target: run sparkmirror on the right connector's own file, or name "
                "its offsets topic as offset.storage.topic"
            )
        return LastCopied(end, bounds.target_end)

    def _by_tail(self, logs: _Logs, pair: BothLogs, stored: int, sync: OffsetSync | None) -> int:
        """Return the copy's end by the target's last records. Raises `Untold`."""
        try:
            ends = self._from_sync(logs, stored, sync) or self._from_context(logs, stored)
        except Unclear:
            ends = set()
            many = "too many"
        else:
            many = str(len(ends))
            if len(ends) == 1:
                return ends.pop()
            if not ends:
                raise Untold(_strange(stored, pair), strange=True)
        raise Untold(
            f"MirrorMaker 2 may have copied more than it has stored (offset {stored}), and records that look alike "
            f"don't tell how many ({many} readings): {STOP_CLEANLY}"
        )

    def _is_our_word(self, logs: _Logs, pair: BothLogs, ours: OurEnd, stored: int) -> bool:
        """Tell whether the target surely lacks all records between progress and `stored`.

        MirrorMaker 2 copies records in order, so it can't have written records after them either. Raises `Untold` if
        the target may have some records, but not the last.
        """
        records = takewhile(lambda record: record.offset <= stored, logs.source_records(ours.upstream))
        missing = list(islice(records, MOST_MISSING))
        if not missing:
            return self._wrote_nothing_more(logs, pair, ours, stored)
        newest = missing[-1] if next(records, None) is None else logs.newest(stored)
        start = max(ours.end, logs.target_start, logs.target_end - LONGEST_TAIL)
        contents = {record.content for record in missing}
        # A header converter alters contents, but keeps times.
        stamped = ANY_TIME in (missing[0].timestamp, newest.timestamp)
        empty, any_alike = True, False
        for record in logs.copies(start):
            empty = False
            stamped |= record.timestamp == ANY_TIME
            any_alike |= record.content in contents or _alike(record, missing[0])
            if _is_copy(record, newest) if ours.recreated else stamped or _alike(record, newest):
                return False
        if not ours.recreated and (stamped or (empty and start > ours.end)):
            return False
        configs = topic_configs(self._target, [pair.target.name], (CLEANUP_POLICY,)).get(pair.target.name, {})
        whole = start == ours.end and newest is missing[-1] and "compact" not in configs.get(CLEANUP_POLICY, "compact")
        if whole and not any_alike:
            return True
        raise Untold(_strange(stored, pair), strange=True)

    def _wrote_nothing_more(self, logs: _Logs, pair: BothLogs, ours: OurEnd, stored: int) -> bool:
        """Tell whether the target surely has no MirrorMaker 2 records after the progress.

        The source has only markers between this flow's progress and the stored offset, which sparkmirror itself stored
        then. MirrorMaker 2 would have gone on with the first record after the stored offset.
        """
        following = next(logs.source_records(stored + 1), None)
        configs = topic_configs(self._source, [pair.source.name], (CLEANUP_POLICY,)).get(pair.source.name, {})
        readable = logs.target_start <= ours.end and logs.target_end - ours.end <= LONGEST_TAIL
        if following is None or not readable or "compact" in configs.get(CLEANUP_POLICY, "compact"):
            return False
        strange = list(logs.copies(ours.end))
        return bool(strange) and not any(
            record.timestamp == ANY_TIME or _alike(record, following) for record in strange
        )

    def _from_sync(self, logs: _Logs, stored: int, sync: OffsetSync | None) -> set[int]:
        """Return the possible ends by the records from the newest offset sync on.

        Empty if the sync is of no use.
        """
        if sync is None:
            return set()
        if sync.downstream == logs.target_end - 1 and logs.target_start == logs.target_end:
            return {sync.upstream} if sync.upstream >= stored else set()  # retention has deleted all records
        if not logs.target_start <= sync.downstream < logs.target_end:
            return set()
        tail = logs.tail(sync.downstream, LONGEST_TAIL)
        if tail is None or not tail or tail[0].offset != sync.downstream:
            return set()
        count = len(tail)
        first = min(stored + 1 - count, sync.upstream)
        if sync.upstream - stored <= ONE_STRETCH:
            last = max(stored, sync.upstream)
            stretches = [logs.stretch(first, last, count)]
        else:
            stretches = [logs.stretch(first, stored, count), logs.stretch(sync.upstream, sync.upstream - 1, count)]
            if stretches[0] and stretches[0][-1].offset >= sync.upstream:
                stretches = [logs.stretch(first, sync.upstream, count)]
        pinned = any(record.offset == sync.upstream for stretch in stretches for record in stretch)
        if not pinned:
            return {sync.upstream} if count == 1 and sync.upstream >= stored else set()
        return possible_ends(stored, stretches, tail, sync.upstream)

    def _from_context(self, logs: _Logs, stored: int) -> set[int]:
        """Return the possible ends by a tail that begins before the stored offset's copy."""
        size = FIRST_TAIL
        while True:
            start = max(logs.target_end - size, logs.target_start)
            tail = logs.tail(start, size) or []
            stretch = logs.stretch(stored - CONTEXT, stored, size)
            whole = start == logs.target_start
            cut = whole and bool(tail) and tail[0].offset > 0
            ends = possible_ends(stored, [stretch], tail, anywhere=cut)
            if not ends:
                known = sum(record.offset <= stored for record in stretch)
                ends = possible_ends(stored, [stretch[max(known - 1, 0) :]], tail)
            if ends or whole or size >= LONGEST_TAIL:
                return ends
            size *= WIDER


def _strange(stored: int, pair: BothLogs) -> str:
    return (
        f"the target does not end with the source's records after offset {stored}, the last that MirrorMaker 2 says "
        f"it copied: a foreign producer wrote there, or compaction removed the evidence; {STOP_CLEANLY}, or delete "
        f"{pair.target.name}"
    )


def _is_shown(logs: _Logs, stored: int) -> bool:
    """Tell whether the target ends with the last source record up to `stored`.

    Also True if the source has no record up to `stored`: nothing can be left out then.
    """
    oldest = next(logs.source_records(0), None)
    if oldest is None or oldest.offset > stored:
        return True
    newest = logs.newest(stored)
    tail = list(logs.copies(max(logs.target_end - FIRST_TAIL, logs.target_start)))
    if not tail or newest.timestamp == ANY_TIME:
        return False
    return (newest.timestamp, newest.content) == (tail[-1].timestamp, tail[-1].content)


def _alike(left: LogRecord, right: LogRecord) -> bool:
    return left.content == right.content or left.timestamp == right.timestamp


def _is_copy(record: LogRecord, original: LogRecord) -> bool:
    if ANY_TIME in (record.timestamp, original.timestamp):
        return record.content == original.content
    return record.timestamp == original.timestamp


class _Logs:
    """Logs on both sides for one partition, within the bounds read before."""

    def __init__(
        self, source: ClusterClient, target: ClusterClient, pair: BothLogs, bounds: Bounds, read_committed: bool
    ) -> None:
        self._source, self._source_topic = source, pair.source
        self._target, self._target_topic = target, pair.target
        self._partition = pair.route.partition
        self._read_committed = read_committed
        self._source_start, self._source_end = bounds.source_start, bounds.source_end
        self.target_start, self.target_end = bounds.target_start, bounds.target_end

    def tail(self, start: int, most: int) -> list[LogRecord] | None:
        """Return the target's records from an offset on; `None` if more than `most`."""
        records = list(islice(self.copies(start), most + 1))
        return records if len(records) <= most else None

    def copies(self, start: int) -> Iterator[LogRecord]:
        """Yield the target's records from an offset on."""
        if start >= self.target_end:
            return iter(())
        records = _records(
            self._target, self._target_topic, self._partition, start, read_committed=True, own_times=False
        )
        return takewhile(lambda record: record.offset < self.target_end, records)

    def newest(self, last: int) -> LogRecord:
        """Return the source's last record up to an offset; a record must exist."""
        before = CONTEXT
        while not (records := self.stretch(last - before, last, 0)):
            before *= WIDER
        return records[-1]

    def source_records(self, offset: int) -> Iterator[LogRecord]:
        start = max(offset, self._source_start)
        if start >= self._source_end:
            return iter(())
        return _records(
            self._source,
            self._source_topic,
            self._partition,
            start,
            read_committed=self._read_committed,
            own_times=True,
        )

    def stretch(self, first: int, last: int, more: int) -> list[LogRecord]:
        """Return the source's records from offset `first` to `last`, and `more` records."""
        records = self.source_records(first)
        taken = []
        for record in records:
            if record.offset > last:
                more -= 1
            if more < 0:
                break
            taken.append(record)
        return taken


def _records(
    client: ClusterClient, topic: TopicLeaders, partition: int, offset: int, *, read_committed: bool, own_times: bool
) -> Iterator[LogRecord]:
    """Yield a topic partition's records from an offset on.

    With `own_times`, a time stamped by the broker counts as the record's time; in a copy such a time says nothing.
    """
    for header, view in read_batches(client, topic, partition, offset, read_committed=read_committed):
        stamped = bool(header.attributes & TIMESTAMP_TYPE_BIT) and not own_times
        try:
            for at, timestamp, body in raw_parts(header, view):
                if at >= offset:
                    time = ANY_TIME if stamped else timestamp
                    yield LogRecord(at, time, blake2b(body, digest_size=16).digest(), header.base_offset)
        except ValueError as error:
            raise RangeUnread(f"cluster {client.config.alias}: {topic.name}-{partition}: {error}") from error
