"""Monitor the source's logs during the copy.

The ends tell the lag; starts and retention tell which records the source deletes next; last stable offsets tell which
records wait for a transaction's end.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping

from sparkmirror.config import FlowConfig
from sparkmirror.events import Event
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.list_offsets import KnownLeaders
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.mirror.engine.flow_view import FlowView
from sparkmirror.mirror.engine.forecast import WARN_MINUTES, Forecast, Forecaster, LagSample
from sparkmirror.mirror.engine.transaction_watch import TransactionWatch

LOOK_S = 5.0
"""Seconds between readings of the source's ends, for the lag."""

FIRST_LOOK_S = 0.4
"""Seconds between attempts at the first reading."""

RETENTION_S = 300.0
"""Seconds for which a topic's retention counts as known."""

log = logging.getLogger(__name__)


class LagMonitor:
    """Monitor a flow's source; each look asks the source's brokers a few things.

    Pumps see no ends for partitions that they don't fetch. The results are in the flow's view.
    """

    def __init__(
        self,
        flow: FlowConfig,
        view: FlowView,
        source: ClusterAdmin,
        target: ClusterAdmin,
        partitions: Callable[[], Iterable[TopicPartition]],
        acts: Callable[[], bool],
        late: Callable[[Mapping[TopicPartition, int]], Mapping[TopicPartition, int]] = lambda _: {},
    ) -> None:
        """Prepare the monitor; `partitions` returns the source partitions to ask for.

        While `acts` returns False, the receipts are of a former term, and nothing is forecast. `late` takes the
        source's ends, and returns `FlowView.late`.
        """
        self._flow = flow
        self._view = view
        self._source = source
        self._target = target
        self._partitions = partitions
        self._acts = acts
        self._late = late
        self._leaders = KnownLeaders()
        self._transactions = TransactionWatch(source) if flow.fetch.isolation_level == "read_committed" else None
        self._forecaster = Forecaster()
        self._retentions: dict[str, tuple[float, int | None]] = {}
        self._warned_of: set[TopicPartition] = set()

    def watch(self, closing: threading.Event) -> None:
        """Read the source's ends and starts at intervals, until `closing` is set."""
        while not closing.wait(LOOK_S if self._view.source_ends else FIRST_LOOK_S):
            try:
                self.look()
                self._view.admin_connections = self._source.connections, self._target.connections
            except Exception as error:  # the lag then rests on the pumps' reports
                self._view.ends_trouble = str(error)
                log.debug("flow %s: the source's offsets can't be read: %s", self._flow.name, error)

    def look(self) -> None:
        """Read all partitions' ends, and more for lagging partitions.

        These are log starts and last stable offsets. Raises `ClusterUnreachable`.
        """
        views = list(self._view.partitions.items()) if self._acts() else []
        receipts = {(key.topic, key.partition): view.receipt for key, view in views if view.receipt}
        ends = self._source.end_offsets(self._partitions(), known=self._leaders)
        lagging = {
            partition: receipt
            for partition, receipt in receipts.items()
            if 0 <= receipt.upstream < ends.get(partition, 0)
        }
        now = time.time()
        starts = self._source.start_offsets(lagging) if lagging else {}
        self._read_retentions({topic for topic, _ in starts}, now)
        self._forecaster.note(
            {
                partition: LagSample(
                    at_s=now,
                    upstream=receipt.upstream,
                    source_end=ends[partition],
                    log_start=starts[partition],
                    timestamp_ms=receipt.timestamp_ms if receipt.timestamp_ms >= 0 else None,
                    retention_ms=self._retentions[partition[0]][1],
                )
                for partition, receipt in lagging.items()
                if partition in starts
            }
        )
        forecast = self._nearest_loss()
        stable = self._stable(lagging, ends) if self._transactions is not None and lagging else {}
        late = self._late(ends)  # before the ends are seen that it is about
        if late != self._view.late:
            self._view.late = late
        self._view.take_ends(ends, starts, stable)
        self._view.forecast = forecast
        if self._transactions is not None:
            self._view.held_back = self._transactions.look(stable)

    def _stable(
        self, lagging: Iterable[TopicPartition], ends: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int]:
        """Read partitions' last stable offsets, where below their ends."""
        stable = self._source.end_offsets(lagging, isolation="read_committed")
        return {partition: offset for partition, offset in stable.items() if offset < ends[partition]}

    def _nearest_loss(self) -> Forecast | None:
        """Return the partition that loses records first, if near; warn of each new one."""
        near = [forecast for forecast in self._forecaster.forecasts() if forecast.minutes < WARN_MINUTES]
        near.sort(key=lambda forecast: forecast.minutes)
        for forecast in near:
            if (forecast.topic, forecast.partition) not in self._warned_of:
                log.warning("flow %s: %s", self._flow.name, forecast.words, extra=Event.RETENTION_RACE.extra)
        self._warned_of = {(forecast.topic, forecast.partition) for forecast in near}
        return near[0] if near else None

    def _read_retentions(self, topics: set[str], now: float) -> None:
        """Read topics' `retention.ms`, where older than `RETENTION_S`.

        The value is None if the topic deletes no record by age, or if its configuration may not be read.
        """
        due = [topic for topic in topics if now - self._retentions.get(topic, (-math.inf, None))[0] > RETENTION_S]
        configs = self._source.topic_configs(due) if due else {}
        for topic in due:
            values = {entry.name: entry.value or "" for entry in configs.get(topic, ())}
            deletes = "delete" in values.get("cleanup.policy", "")
            retention_ms = int(values.get("retention.ms", -1))
            self._retentions[topic] = now, retention_ms if deletes and retention_ms >= 0 else None
