"""A flow's loss ledger as its driver follows it.

Every process reads the whole ledger when it takes charge, so all that follows from the ledger is the same after a
takeover.
"""

from __future__ import annotations

import logging
import threading

from sparkmirror.config import FlowConfig
from sparkmirror.events import Event
from sparkmirror.exact.durable.acknowledgements import LedgerState
from sparkmirror.exact.durable.loss_kinds import LossOutcome
from sparkmirror.exact.durable.losses import Loss, losses_topic
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.snapshot.loss_counts import LossCount, LossRow, loss_counts, loss_rows

log = logging.getLogger(__name__)


class LossWatch:
    """Follow the loss ledger.

    The ledger is the one account of losses: pumps and the driver write a loss there before anything else happens.
    """

    def __init__(self, flow: FlowConfig) -> None:
        self._name = flow.name
        self._client = ClusterClient(flow.target, f"{flow.name}|sparkmirror-losses")
        self._log = TopicLog(self._client, losses_topic(flow.source.alias))
        self._offset: int | None = None
        self._lock = threading.Lock()
        self._state = LedgerState()
        self._counts: tuple[LossCount, ...] = ()
        self._rows: tuple[LossRow, ...] = ()
        self._added: dict[str, Loss] = {}

    def start(self) -> None:
        """Read the ledger; entries after this call are `added` ones.

        A second call does nothing. Raises `ConnectionError` or `ClusterUnreachable`.
        """
        with self._lock:
            if self._offset is None:
                self._read_on(0)

    def read(self) -> None:
        """Take and log new entries; raises `ConnectionError` or `ClusterUnreachable`."""
        with self._lock:
            if self._offset is None:
                return
            for loss in self._read_on(self._offset):
                level = logging.INFO if loss.outcome is LossOutcome.EXPECTED else logging.WARNING
                log.log(level, "flow %s: %s: %s", self._name, loss.kind, loss.words, extra=Event.LOSS.extra)
                self._added[loss.key] = loss

    def _read_on(self, offset: int) -> list[Loss]:
        """Take the topic's records from an offset on; return new and changed losses."""
        records, self._offset = self._log.read(0, offset)
        if not records:
            return []
        news = self._state.apply(records)
        entries = self._state.entries
        self._counts, self._rows = loss_counts(entries), loss_rows(entries)
        return news

    @property
    def counts(self) -> tuple[LossCount, ...]:
        """The whole ledger, summed up.

        Empty until this process takes charge.
        """
        return self._counts

    @property
    def rows(self) -> tuple[LossRow, ...]:
        """Newest entries of the ledger, the newest first."""
        return self._rows

    @property
    def added(self) -> list[Loss]:
        """Losses that were written or changed since this process took charge.

        Only a run with `--once` asks for them, at its end: the run that steps over records tells so, and later runs
        don't.
        """
        with self._lock:
            return list(self._added.values())

    def close(self) -> None:
        self._client.close()
