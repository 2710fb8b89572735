"""Watch over the source's logs during the copy.

The ends tell the lag; starts and retention tell which records the source deletes next.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterable, Mapping

from sparkmirror.cluster.admin import ClusterAdmin
from sparkmirror.config import FlowConfig
from sparkmirror.engine.forecast import WARN_MINUTES, Forecast, Forecaster, LagSample
from sparkmirror.events import Event
from sparkmirror.messages.orders import Receipt
from sparkmirror.wire.topic_partition import TopicPartition

RETENTION_S = 300.0
"""Seconds for which a topic's retention counts as known."""

log = logging.getLogger(__name__)


class Lookout:
    """Watch over a flow's source; each look asks the source's brokers a few things."""

    def __init__(self, flow: FlowConfig, source: ClusterAdmin) -> None:
        self.ends: Mapping[TopicPartition, int] = {}
        """Source partition to the end of its readable records.

        Pumps don't see the ends of partitions that they don't fetch.
        """
        self.starts: Mapping[TopicPartition, int] = {}
        """Starts of the logs of partitions that lag."""
        self.forecast: Forecast | None = None
        """The partition that loses records first, if that is near."""
        self._flow = flow
        self._source = source
        self._forecaster = Forecaster()
        self._retentions: dict[str, tuple[float, int]] = {}
        self._warned_of: set[TopicPartition] = set()

    def look(self, partitions: Iterable[TopicPartition], receipts: Mapping[TopicPartition, Receipt]) -> None:
        """Read the ends of all partitions, and the starts of lagging ones.

        Raises `ClusterUnreachable`.
        """
        self.ends = self._source.end_offsets(partitions, isolation=self._flow.fetch.isolation_level)
        lagging = {
            partition: receipt
            for partition, receipt in receipts.items()
            if 0 <= receipt.upstream < self.ends.get(partition, 0)
        }
        now = time.time()
        starts = self._source.start_offsets(lagging) if lagging else {}
        self.starts = starts
        self._read_retentions({topic for topic, _ in starts}, now)
        self._forecaster.note(
            {
                partition: LagSample(
                    now,
                    receipt.upstream,
                    self.ends[partition],
                    starts[partition],
                    receipt.timestamp_ms,
                    self._retentions[partition[0]][1],
                )
                for partition, receipt in lagging.items()
                if partition in starts
            }
        )
        self._tell()

    def _tell(self) -> None:
        near = [forecast for forecast in self._forecaster.forecasts() if forecast.minutes < WARN_MINUTES]
        self.forecast = min(near, key=lambda forecast: forecast.minutes, default=None)
        endangered = {(forecast.topic, forecast.partition) for forecast in near}
        if self.forecast is not None and endangered - self._warned_of:
            log.warning("flow %s: %s", self._flow.name, self.forecast.words, extra=Event.RETENTION_RACE.extra)
        self._warned_of = endangered

    def _read_retentions(self, topics: set[str], now: float) -> None:
        """Read `retention.ms` of topics, where older than `RETENTION_S`.

        The value is -1 if the topic deletes no record by age, or if its configuration may not be read.
        """
        due = [topic for topic in topics if now - self._retentions.get(topic, (-math.inf, -1))[0] > RETENTION_S]
        configs = self._source.topic_configs(due) if due else {}
        for topic in due:
            values = {entry.name: entry.value or "" for entry in configs.get(topic, ())}
            deletes = "delete" in values.get("cleanup.policy", "")
            self._retentions[topic] = now, int(values.get("retention.ms", -1)) if deletes else -1
