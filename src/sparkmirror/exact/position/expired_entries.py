"""Ledger entries for records that expired before they were copied.

A copy that stands still meets the loss at each reading, larger each time: its entry grows. One place at the target may
have several entries: of earlier topics of the name, of a log that was cut, and behind records that were passed over,
as a transform drops them. No entry replaces another, and no two entries of one log have an offset in common.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import NamedTuple

from sparkmirror.exact.durable.losses import Loss, LossKind

_MOVED_BACK = frozenset({LossKind.ALTERED, LossKind.TARGET_TRUNCATED})
"""Entries after which records that were passed over before may be due again."""


class ExpiredEntry(NamedTuple):
    """Range of an entry, and the words that tell it from others at its place."""

    first: int
    end: int
    apart: str


def expired_entries(
    known: Sequence[Loss],
    downstream: int,
    source_topic_id: bytes,
    done: int,
    source_start: int,
    *,
    recreated: bool = False,
    cut_at: int | None = None,
) -> list[ExpiredEntry]:
    """Return the entries that tell what expired from `done` to `source_start`.

    - `known` are the ledger's losses in the target partition, the newest last.
    - `recreated` is True if the last copied record is an earlier topic's.
    - `cut_at` is where the log was cut below the last copied record, else None.

    Known entries that need no change are left out, except the last one. `done` may be lower than at an earlier reading,
    whose progress nobody noted.
    """
    here = [loss for loss in known if loss.downstream == downstream]
    was_recreated = recreated or any(loss.kind is LossKind.RECREATED for loss in here)
    topic = source_topic_id.hex() if was_recreated else ""
    of_log = _of_log(here, topic, source_start, cut_at)
    told = [loss for loss in of_log if done <= loss.end and loss.first < source_start]
    told.sort(key=lambda loss: loss.first)
    if not told:
        return [ExpiredEntry(done, source_start, _free(here, topic, done))]
    before_moved_back = known[: max(_newest(known, *_MOVED_BACK), 0)]
    entries = []
    for loss, after in zip(told, [*told[1:], None], strict=True):
        first = min(done, loss.first) if loss is told[0] else loss.first
        if after is None:
            end = max(loss.end, source_start)
        else:
            # What is between two entries was passed over, unless it was due again before the second one grew.
            end = max(loss.end, after.first) if after in before_moved_back else loss.end
        if after is None or (first, end) != (loss.first, loss.end):
            entries.append(ExpiredEntry(first, end, loss.apart))
    return entries


def _of_log(here: Sequence[Loss], topic: str, source_start: int, cut_at: int | None) -> Iterator[Loss]:
    """Yield the entries of the source's present log, among the losses at one place.

    Release 0.2 did not tell topics apart: its entry for a topic that was created again begins at offset 0.
    """
    recreated, cut = _newest(here, LossKind.RECREATED), _newest(here, LossKind.TRUNCATED)
    log_from = here[cut].first if cut >= 0 else None
    if cut_at not in (None, log_from):
        return
    for place, loss in enumerate(here):
        # The cut's own entry is written again, and so later, when its action changes.
        if loss.kind is not LossKind.EXPIRED or (place < cut and loss.first != log_from):
            continue
        of_0_2 = not loss.apart and loss.first == 0 and loss.end <= source_start and place > recreated >= 0
        if loss.apart == topic or loss.apart.startswith(f"{topic}:") or of_0_2:
            yield loss


def _newest(losses: Sequence[Loss], *kinds: LossKind) -> int:
    """Return the index of the newest loss of some kinds; -1: there is none."""
    return max((index for index, loss in enumerate(losses) if loss.kind in kinds), default=-1)


def _free(here: Sequence[Loss], topic: str, first: int) -> str:
    """Return words that no other entry at the place has.

    The topic alone if possible, else with the first offset.
    """
    taken = {loss.apart for loss in here if loss.kind is LossKind.EXPIRED}
    if topic not in taken:
        return topic
    words = f"{topic}:{first}"
    return words if words not in taken else next(w for n in count(1) if (w := f"{words}:{n}") not in taken)
