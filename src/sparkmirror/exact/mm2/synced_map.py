"""Translate offsets from before a takeover by MirrorMaker 2's offset syncs.

sparkmirror's exact map begins where its own copy began. Before that point, only single records are pinned by syncs. If
two consecutive syncs are as far apart at the source as at the target, there was nothing else between the two records,
and every offset in between is known exactly. Elsewhere MirrorMaker 2's rule applies (`mm2.md` 3.6): the offset after
the newest pin at or before the offset in question. No record is ever skipped.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from sparkmirror.exact.mm2.record_formats import OffsetSync


class SyncedOffset(NamedTuple):
    """Downstream offset at which a group continues."""

    downstream: int
    exact: bool
    """True if the group reads no record twice either."""


class Mm2OffsetMap:
    """One partition's offset syncs, as a map.

    The syncs come in the order written. `begins` is the target offset where sparkmirror's own map begins.
    """

    def __init__(self, syncs: Iterable[OffsetSync], begins: int) -> None:
        self._upstreams: list[int] = []
        self._downstreams: list[int] = []
        for sync in syncs:
            if sync.downstream >= begins:
                continue
            kept = bisect_left(self._upstreams, sync.upstream)  # after a rewind, later syncs come once more
            if (sync.upstream, sync.downstream) in zip(
                self._upstreams[kept : kept + 1], self._downstreams[kept : kept + 1], strict=True
            ):
                continue  # the same sync, written again
            if self._downstreams and sync.downstream <= self._downstreams[-1]:
                kept = 0  # the target topic was created again
            del self._upstreams[kept:], self._downstreams[kept:]
            self._upstreams.append(sync.upstream)
            self._downstreams.append(sync.downstream)

    def downstream(self, upstream: int) -> SyncedOffset | None:
        """Translate an upstream offset; `None` before the first pin."""
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
