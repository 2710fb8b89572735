"""Where MirrorMaker 2 has got to in one partition, read from both logs.

Its stored offset is right after a clean stop. After a kill it lies behind: then the target's tail tells
(`tail_match`), from the newest offset sync on, or else from records before the stored offset on.
Blocking; `last_copied_of_many` has several read at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice, takewhile
from typing import NamedTuple

from sparkmirror.cluster.client import ClusterClient, TopicLeaders
from sparkmirror.cluster.log_range import RangeUnread, read_batches
from sparkmirror.cluster.topic_configs import CLEANUP_POLICY, topic_configs
from sparkmirror.mm2.records import OffsetSync
from sparkmirror.takeover.log_bounds import BothLogs, Bounds
from sparkmirror.takeover.tail_match import ANY_TIME, LogRecord, Unclear, possible_ends
from sparkmirror.wire.batches import TIMESTAMP_TYPE_BIT
from sparkmirror.wire.pieces import raw_parts

CONTEXT = 256
"""So many source offsets before the stored one must be in the target too, where no offset sync helps."""

FIRST_TAIL, WIDER, LONGEST_TAIL = 1024, 8, 4 << 20
"""Records of the target that are looked at, at first and at most."""

MOST_MISSING = 1 << 20
"""Records that the target may lack of what it is said to have."""

ONE_STRETCH = 4096
"""Nearer than this, both places of the source are read in one go."""

STOP_CLEANLY = "start MirrorMaker 2 once more and stop it with SIGTERM, which stores where it is"


@dataclass(frozen=True, slots=True)
class LastCopied:
    """Up to where MirrorMaker 2 has copied a partition."""

    upstream: int
    log_end: int
    """Of the target, with all that it wrote."""


class Ours(NamedTuple):
    """What this flow has in a partition: where it would go on at the source, and where that ends at the target."""

    upstream: int
    end: int


class Untold(Exception):
    """It can't be told, and the message says why and what to do. `wait`: it may be told soon.

    `strange`: what is there does not look like MirrorMaker 2's, so it may be somebody else's.
    """

    def __init__(self, reason: str, *, wait: bool = False, strange: bool = False) -> None:
        super().__init__(reason)
        self.wait = wait
        self.strange = strange


def told_by_bounds(bounds: Bounds, stored: int) -> LastCopied | Untold | None:
    """What can be said without reading a record: where the source has nothing behind the stored offset."""
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
    """For one flow. `read_committed`: so does the flow read its source."""

    def __init__(self, source: ClusterClient, target: ClusterClient, *, read_committed: bool) -> None:
        self._source = source
        self._target = target
        self._read_committed = read_committed

    def find(
        self, both: BothLogs, bounds: Bounds, stored: int, sync: OffsetSync | None, ours: Ours | None
    ) -> LastCopied:
        """Raises `Untold`, and `ConnectionError`s.

        `stored` is the upstream offset that MirrorMaker 2 says it has copied, where `told_by_bounds` is not enough;
        `sync` its newest offset sync. `ours` is given where that is more than what we have: if the target has nothing
        of it, it was our own word on records that the target has lost since, and what we have is what is found.
        """
        logs = _Logs(self._source, self._target, both, bounds, self._read_committed)
        if ours is not None and self._is_our_word(logs, both, ours, stored):
            return LastCopied(ours.upstream - 1, bounds.target_end)
        if next(logs.source_records(stored + 1), None) is None:
            return LastCopied(stored, bounds.target_end)  # what it stored is copied, and there is nothing else
        try:
            ends = self._from_sync(logs, stored, sync) or self._from_context(logs, stored)
        except Unclear:
            ends = set()
            many = "too many"
        else:
            many = str(len(ends))
            if len(ends) == 1:
                return LastCopied(ends.pop(), bounds.target_end)
            if not ends:
                raise Untold(_strange(stored, both), strange=True)
        raise Untold(
            f"MirrorMaker 2 may have copied more than it has stored (offset {stored}), and records that look alike "
            f"don't tell how many ({many} readings): {STOP_CLEANLY}"
        )

    def _is_our_word(self, logs: _Logs, both: BothLogs, ours: Ours, stored: int) -> bool:
        """Whether the target surely has none of the source's records from where we would go on to the stored offset.

        MirrorMaker 2 copies them in order, so it can't have written anything behind them either. Raises `Untold` where
        the target may have some of them, but not the last one.
        """
        records = takewhile(lambda record: record.offset <= stored, logs.source_records(ours.upstream))
        missing = list(islice(records, MOST_MISSING))
        if not missing:
            return self._wrote_nothing_more(logs, both, ours, stored)
        newest = missing[-1] if next(records, None) is None else logs.newest(stored)
        start = max(ours.end, logs.target_start, logs.target_end - LONGEST_TAIL)
        contents = {record.content for record in missing}
        # A header converter alters contents, but not times.
        stamped = ANY_TIME in (missing[0].timestamp, newest.timestamp)
        empty, some = True, False
        for record in logs.copies(start):
            empty = False
            stamped |= record.timestamp == ANY_TIME
            some |= record.content in contents or _alike(record, missing[0])
            if stamped or _alike(record, newest):
                return False
        if stamped or (empty and start > ours.end):
            return False
        configs = topic_configs(self._target, [both.target.name], (CLEANUP_POLICY,)).get(both.target.name, {})
        whole = start == ours.end and newest is missing[-1] and "compact" not in configs.get(CLEANUP_POLICY, "compact")
        if whole and not some:
            return True
        raise Untold(_strange(stored, both), strange=True)

    def _wrote_nothing_more(self, logs: _Logs, both: BothLogs, ours: Ours, stored: int) -> bool:
        """Whether the target surely has nothing of MirrorMaker 2's behind ours, where the source has no record to tell.

        Markers lie between what we have and the stored offset, which was our own word then. MirrorMaker 2 would have
        gone on with the first record behind it.
        """
        following = next(logs.source_records(stored + 1), None)
        configs = topic_configs(self._source, [both.source.name], (CLEANUP_POLICY,)).get(both.source.name, {})
        readable = logs.target_start <= ours.end and logs.target_end - ours.end <= LONGEST_TAIL
        if following is None or not readable or "compact" in configs.get(CLEANUP_POLICY, "compact"):
            return False
        strange = list(logs.copies(ours.end))
        return bool(strange) and not any(one.timestamp == ANY_TIME or _alike(one, following) for one in strange)

    def _from_sync(self, logs: _Logs, stored: int, sync: OffsetSync | None) -> set[int]:
        """What the records from the newest offset sync on can be; none where that is of no use."""
        if sync is None:
            return set()
        if sync.downstream == logs.target_end - 1 and logs.target_start == logs.target_end:
            return {sync.upstream} if sync.upstream >= stored else set()  # retention has deleted all of it
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
        """What the tail can be that begins before the stored offset's copy."""
        size = FIRST_TAIL
        while True:
            start = max(logs.target_end - size, logs.target_start)
            tail = logs.tail(start, size) or []
            stretch = logs.stretch(stored - CONTEXT, stored, size)
            found = possible_ends(stored, [stretch], tail)
            if not found:
                known = sum(record.offset <= stored for record in stretch)
                found = possible_ends(stored, [stretch[max(known - 1, 0) :]], tail)
            if found or start == logs.target_start or size >= LONGEST_TAIL:
                return found
            size *= WIDER


def _strange(stored: int, both: BothLogs) -> str:
    return (
        f"the target does not end with the source's records behind offset {stored}, the last that MirrorMaker 2 says "
        f"it copied: somebody else wrote there, or a cleaner removed what would tell; {STOP_CLEANLY}, or delete "
        f"{both.target.name}"
    )


def _alike(one: LogRecord, other: LogRecord) -> bool:
    return one.content == other.content or one.timestamp == other.timestamp


class _Logs:
    """Both sides of one partition, as they were when its bounds were read."""

    def __init__(
        self, source: ClusterClient, target: ClusterClient, both: BothLogs, bounds: Bounds, read_committed: bool
    ) -> None:
        self._source, self._source_topic = source, both.source
        self._target, self._target_topic = target, both.target
        self._partition = both.route.partition
        self._read_committed = read_committed
        self._source_start, self._source_end = bounds.source_start, bounds.source_end
        self.target_start, self.target_end = bounds.target_start, bounds.target_end

    def tail(self, start: int, most: int) -> list[LogRecord] | None:
        """The target's records from an offset on; None if they are more than that."""
        found = list(islice(self.copies(start), most + 1))
        return found if len(found) <= most else None

    def copies(self, start: int) -> Iterator[LogRecord]:
        """The target's records from an offset on."""
        if start >= self.target_end:
            return iter(())
        records = _records(
            self._target, self._target_topic, self._partition, start, read_committed=True, own_times=False
        )
        return takewhile(lambda record: record.offset < self.target_end, records)

    def newest(self, last: int) -> LogRecord:
        """The source's last record up to an offset, as there is one."""
        before = CONTEXT
        while not (found := self.stretch(last - before, last, 0)):
            before *= WIDER
        return found[-1]

    def source_records(self, offset: int) -> Iterator[LogRecord]:
        """The source's records from an offset on, as far as there are any."""
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
        """The source's records from an offset to another one, and so many more."""
        records = self.source_records(first)
        found = []
        for record in records:
            if record.offset > last:
                more -= 1
            if more < 0:
                break
            found.append(record)
        return found


def _records(
    client: ClusterClient, topic: TopicLeaders, partition: int, offset: int, *, read_committed: bool, own_times: bool
) -> Iterator[LogRecord]:
    """`own_times`: where a broker has stamped records that is their time; in a copy it says nothing."""
    for header, view in read_batches(client, topic, partition, offset, read_committed=read_committed):
        stamped = bool(header.attributes & TIMESTAMP_TYPE_BIT) and not own_times
        try:
            for at, timestamp, body in raw_parts(header, view):
                if at >= offset:
                    time = ANY_TIME if stamped else timestamp
                    yield LogRecord(at, time, blake2b(body, digest_size=16).digest(), header.base_offset)
        except ValueError as error:
            raise RangeUnread(f"cluster {client.config.alias}: {topic.name}-{partition}: {error}") from error
