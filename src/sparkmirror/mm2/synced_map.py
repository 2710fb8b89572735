"""Upstream offsets from before a takeover, translated by MirrorMaker 2's own offset syncs.

Our exact map begins where we began. Before that only single records are pinned. Where two syncs that follow each other
are as far apart at the source as at the target, nothing else was between them, and every offset is known. Elsewhere the
rule is MirrorMaker 2's (`mm2.md` 3.6): the offset after the newest pin that is not beyond. No record is ever skipped.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from sparkmirror.mm2.records import OffsetSync


class SyncedOffset(NamedTuple):
    """Where a group that reads upstream from some offset on may read downstream."""

    downstream: int
    exact: bool
    """Nothing is read twice, either."""


class AdoptedMap:
    """One partition's syncs, in the order they were written. `begins`: the target's offset where our own map does."""

    def __init__(self, syncs: Iterable[OffsetSync], begins: int) -> None:
        self._upstreams: list[int] = []
        self._downstreams: list[int] = []
        for sync in syncs:
            if sync.downstream >= begins:
                continue
            kept = bisect_left(self._upstreams, sync.upstream)  # a rewind: what follows is there once more
            if (sync.upstream, sync.downstream) in zip(
                self._upstreams[kept : kept + 1], self._downstreams[kept : kept + 1], strict=True
            ):
                continue  # written again
            if self._downstreams and sync.downstream <= self._downstreams[-1]:
                kept = 0  # the target topic is another one
            del self._upstreams[kept:], self._downstreams[kept:]
            self._upstreams.append(sync.upstream)
            self._downstreams.append(sync.downstream)

    def downstream(self, upstream: int) -> SyncedOffset | None:
        """None if it is before the first pin."""
        index = bisect_right(self._upstreams, upstream) - 1
        if index < 0:
            return None
        ahead = upstream - self._upstreams[index]
        pinned = self._downstreams[index]
        if not ahead:
            return SyncedOffset(pinned, exact=True)
        if index + 1 < len(self._upstreams):
            distance = self._upstreams[index + 1] - self._upstreams[index]
            if distance == self._downstreams[index + 1] - pinned:
                return SyncedOffset(pinned + ahead, exact=True)
        return SyncedOffset(pinned + 1, exact=False)
