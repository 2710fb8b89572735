"""A flow's earlier pumps: how they ended, and how far they copied."""

from __future__ import annotations

import time
from collections.abc import Callable

from sparkmirror.exact.durable.noted_progress import NOTHING_REPORTED, ProgressLog, ReportedProgress
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.pump.messages.orders import Receipt
from sparkmirror.pump.quiet import GRACE_S


class Predecessors:
    """A flow's earlier pumps, from this process or another."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.unclean = False
        """True if an earlier round's pumps may still be alive."""
        self._unclean_at = float("-inf")
        self._progress: ProgressLog | None = None

    def begin(self, progress: ProgressLog, *, unclean: bool) -> None:
        """Take over from another driver, whose last round ended in order or `unclean`.

        Raises the errors of reading the recorded progress.
        """
        progress.known  # noqa: B018 - read now, before anything is copied
        self._progress = progress
        self.note_end(unclean=unclean)

    def note_end(self, *, unclean: bool) -> None:
        """Note how the pumps before the next round ended.

        After an `unclean` end pumps may still be alive. Such pumps count as alive for `GRACE_S`, even if a later round
        has ended in order (R5).
        """
        now = self._clock()
        if unclean:
            self._unclean_at = now
        self.unclean = now - self._unclean_at < GRACE_S

    def progress(self, receipt: Receipt | None, target: TopicPartition) -> ReportedProgress:
        """Return the progress in a target partition.

        The newest receipt tells; without one, the progress written down before this process came.
        """
        before = self._progress.of(target) if self._progress is not None else None
        if receipt is None or not receipt.target_topic_id:
            return before or NOTHING_REPORTED
        appended = max(receipt.appended, -1)
        if receipt.upstream < 0 and before is not None and before.target_topic_id == receipt.target_topic_id:
            return before._replace(appended=appended)
        return receipt.progress._replace(appended=appended)
