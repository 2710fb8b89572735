"""How MirrorMaker 2 translates a group's offsets from its offset syncs (`mm2.md` 3.6), to the record.

It keeps 64 syncs a partition, newest first, ever further apart; an offset between two of them becomes that of the
lower one's next record. Ours are exact; this one is for reading what MirrorMaker 2 has left, and for comparing.

Invariants of a partition's `s`: A: `s[0]` is the newest sync. B: for i < j, unless they are the same sync,
`s[i].upstream <= s[j].upstream + 2**j - 2**i`. C: `s[i].upstream >= s[j].upstream + 2**max(i - 2, 0)`.
D: `s[63]` is the oldest that can be used.
"""

from __future__ import annotations

from sparkmirror.exact.mm2.record_formats import OffsetSync
from sparkmirror.kafka.wire.topic_partition import TopicPartition

SLOTS = 64
_LONG_MAX = 2**63 - 1


class OffsetSyncStore:
    """The syncs of every partition, and what they tell.

    `keep_history`: use all syncs that are read at the start, as MirrorMaker 2 does if it has found its checkpoints;
    else only the last one of each partition and those after it, lest a checkpoint went back.
    """

    def __init__(self, *, keep_history: bool) -> None:
        self._keep_history = keep_history
        self._read_to_end = False
        self._slots: dict[TopicPartition, list[OffsetSync]] = {}

    def started(self) -> None:
        """The topic was read to its end: nothing is translated before."""
        self._read_to_end = True

    def add(self, sync: OffsetSync) -> None:
        """The next sync of the topic."""
        where = sync.topic, sync.partition
        slots = self._slots.get(where)
        starting = not (self._read_to_end or self._keep_history)
        if slots is None or starting or sync.upstream < slots[0].upstream:
            self._slots[where] = [sync] * SLOTS
        else:
            _insert(slots, sync)

    def translate(self, topic: str, partition: int, upstream: int) -> int | None:
        """Where a group continues downstream: -1 if that is older than all syncs, None if nothing is known."""
        slots = self._slots.get((topic, partition))
        if not self._read_to_end or slots is None:
            return None
        chosen = next((sync for sync in slots if sync.upstream <= upstream), slots[-1])
        if chosen.upstream > upstream:
            return -1
        return chosen.downstream + (chosen.upstream < upstream)

    def slots(self, topic: str, partition: int) -> tuple[OffsetSync, ...]:
        """All 64 of a partition, newest first; none if nothing is known."""
        return tuple(self._slots.get((topic, partition), ()))


def _insert(slots: list[OffsetSync], sync: OffsetSync) -> None:
    """Put the newest first; then repair B from the top, with older syncs where they fit, until it holds again."""
    original = tuple(slots)
    slots[0] = replacement = sync
    candidate = 0
    for current in range(1, SLOTS):
        previous = slots[current - 1]
        while True:
            old = original[candidate]
            apart = is_apart(previous, old, current - 1)
            apart_from_next = current + 1 == SLOTS or is_apart(old, slots[current + 1], current)
            fits = apart and apart_from_next and is_recent(previous, old, current - 1, current)
            if fits:
                replacement = old
            if fits or not apart:
                candidate += 1
            if apart or candidate >= current:
                break
        if is_recent(previous, slots[current], current - 1, current):
            return
        slots[current] = replacement


def is_recent(newer: OffsetSync, older: OffsetSync, i: int, j: int) -> bool:
    """Invariant B of slots `i` < `j`; a bound that no Java long holds is kept by all."""
    bound = older.upstream + (1 << j) - (1 << i)
    return bound > _LONG_MAX or newer.upstream <= bound


def is_apart(newer: OffsetSync, older: OffsetSync, i: int) -> bool:
    """Invariant C of slot `i` and one below it; a bound that no Java long holds is kept by none."""
    bound = older.upstream + (1 << max(i - 2, 0))
    return bound <= _LONG_MAX and newer.upstream >= bound
