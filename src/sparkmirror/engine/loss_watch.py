"""A flow's loss ledger as its driver follows it: all of it, and what was added since this process took charge."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Iterable

from sparkmirror.cluster.client import ClusterClient
from sparkmirror.cluster.topic_log import TopicLog
from sparkmirror.config import FlowConfig
from sparkmirror.durable.losses import Loss, LossKind, losses_topic, read_losses
from sparkmirror.events import Event

log = logging.getLogger(__name__)


class LossWatch:
    """The ledger is the one account of losses: pumps and the driver write it before anything else happens."""

    def __init__(self, flow: FlowConfig) -> None:
        self._name = flow.name
        self._client = ClusterClient(flow.target, f"{flow.name}|sparkmirror-losses")
        self._log = TopicLog(self._client, losses_topic(flow.source.alias))
        self._offset: int | None = None
        self._lock = threading.Lock()
        self._before: dict[str, Loss] = {}
        """What was in the ledger when this process took charge."""
        self._losses: dict[str, Loss] = {}

    def start(self) -> None:
        """Read what there is, and count what comes from now on as new; a second time does nothing.

        Raises `ConnectionError` or `ClusterUnreachable`.
        """
        with self._lock:
            if self._offset is None:
                entries, self._offset = self._log.read(0, 0)
                self._before = {loss.key: loss for loss in read_losses(entries)}

    def read(self) -> None:
        """Take what was added, and log it; raises `ConnectionError` or `ClusterUnreachable`."""
        with self._lock:
            if self._offset is None:
                return
            entries, self._offset = self._log.read(0, self._offset)
            for loss in read_losses(entries):
                if self._losses.get(loss.key) != loss:
                    level = logging.WARNING if loss.is_loss else logging.INFO
                    log.log(level, "flow %s: %s: %s", self._name, loss.kind, loss.words, extra=Event.LOSS.extra)
                self._losses[loss.key] = loss

    @property
    def losses(self) -> list[Loss]:
        """The newest word on each that was added since this process took charge."""
        with self._lock:
            return list(self._losses.values())

    @property
    def ledger(self) -> list[Loss]:
        """The newest word on each, those of before too; nothing until this process takes charge."""
        with self._lock:
            return list((self._before | self._losses).values())

    def close(self) -> None:
        self._client.close()


def summed_up(losses: Iterable[Loss]) -> tuple[str, ...]:
    """A few words on each kind: how many there were, and how many offsets they span."""
    counts: Counter[LossKind] = Counter()
    offsets: Counter[LossKind] = Counter()
    for loss in losses:
        if loss.is_loss:
            counts[loss.kind] += 1
            offsets[loss.kind] += loss.offsets
    return tuple(
        f"{counts[kind]:,} {kind}" + (f" ({offsets[kind]:,} offsets)" if offsets[kind] else "")
        for kind in sorted(counts)
    )
