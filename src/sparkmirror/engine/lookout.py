"""Looking at the source's logs while they are copied: their ends, for the lag, and what they will delete next."""

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
"""How long a topic's retention is taken for known."""

log = logging.getLogger(__name__)


class Lookout:
    """For one flow; each look asks the source's admin side for a few things."""

    def __init__(self, flow: FlowConfig, source: ClusterAdmin) -> None:
        self.ends: Mapping[TopicPartition, int] = {}
        """Up to where there is something to copy: pumps don't see that of partitions that they don't fetch."""
        self.starts: Mapping[TopicPartition, int] = {}
        """Of the logs of those that lag."""
        self.forecast: Forecast | None = None
        """The partition that loses records first, if that is near."""
        self._flow = flow
        self._source = source
        self._forecaster = Forecaster()
        self._retentions: dict[str, tuple[float, int]] = {}
        self._warned_of: set[TopicPartition] = set()

    def look(self, partitions: Iterable[TopicPartition], receipts: Mapping[TopicPartition, Receipt]) -> None:
        """Read the ends of all, and of those that lag the starts too; raises `ClusterUnreachable`."""
        self.ends = self._source.end_offsets(partitions, isolation=self._flow.fetch.isolation_level)
        lagging = {where: one for where, one in receipts.items() if 0 <= one.upstream < self.ends.get(where, 0)}
        now = time.time()
        starts = self._source.start_offsets(lagging) if lagging else {}
        self.starts = starts
        self._read_retentions({topic for topic, _ in starts}, now)
        self._forecaster.note(
            {
                where: LagSample(
                    now,
                    one.upstream,
                    self.ends[where],
                    starts[where],
                    one.timestamp_ms,
                    self._retentions[where[0]][1],
                )
                for where, one in lagging.items()
                if where in starts
            }
        )
        self._tell()

    def _tell(self) -> None:
        near = [forecast for forecast in self._forecaster.forecasts() if forecast.minutes < WARN_MINUTES]
        self.forecast = min(near, key=lambda forecast: forecast.minutes, default=None)
        where = {(forecast.topic, forecast.partition) for forecast in near}
        if self.forecast is not None and where - self._warned_of:
            log.warning("flow %s: %s", self._flow.name, self.forecast.words, extra=Event.RETENTION_RACE.extra)
        self._warned_of = where

    def _read_retentions(self, topics: set[str], now: float) -> None:
        """retention.ms of these topics; -1 where nothing is deleted by age, or where that may not be read."""
        due = [topic for topic in topics if now - self._retentions.get(topic, (-math.inf, -1))[0] > RETENTION_S]
        found = self._source.topic_configs(due) if due else {}
        for topic in due:
            values = {entry.name: entry.value or "" for entry in found.get(topic, ())}
            deletes = "delete" in values.get("cleanup.policy", "")
            self._retentions[topic] = now, int(values.get("retention.ms", -1)) if deletes else -1
