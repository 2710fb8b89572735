"""The newest that the driver knows about a flow: what its pumps reported and what the source has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sparkmirror.engine.assignment import PartitionKey
from sparkmirror.engine.forecast import Forecast
from sparkmirror.pump.orders import FlowReport, Receipt
from sparkmirror.wire.topic_partition import TopicPartition


@dataclass(slots=True)
class PartitionView:
    """The newest that is known about one partition."""

    receipt: Receipt | None = None
    bytes_per_s: float = 0.0
    seen_at: float = 0.0
    """When the pump reported it, in seconds since 1970."""
    pump: str = ""


@dataclass(slots=True)
class FlowView:
    """The newest that is known about a flow; counts since this process began."""

    pumps: dict[str, FlowReport] = field(default_factory=dict)
    source_ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    """High watermarks at the source, read by the driver: pumps don't see those that they don't fetch."""
    ends_read_at: float = float("-inf")
    """By `time.monotonic`."""
    partitions: dict[PartitionKey, PartitionView] = field(default_factory=dict)
    forecast: Forecast | None = None
    """The partition whose records the source deletes first before they are copied, if there is one."""
    gone: tuple[str, ...] = ()
    """Source topics that were copied and are not there any more; their copies stay."""

    past_records: int = 0
    past_bytes: int = 0
    """Of pumps of epochs before the newest."""

    @property
    def records(self) -> int:
        return self.past_records + sum(report.records for report in list(self.pumps.values()))

    @property
    def bytes(self) -> int:
        return self.past_bytes + sum(report.bytes for report in list(self.pumps.values()))

    @property
    def copied(self) -> dict[TopicPartition, int]:
        """The upstream offset of the last record copied, by source topic and partition, as far as it is known."""
        views = list(self.partitions.items())
        return {
            (key.topic, key.partition): view.receipt.upstream - 1
            for key, view in views
            if view.receipt is not None and view.receipt.upstream > 0
        }

    def note(self, report: FlowReport) -> None:
        """Keep a pump's newest report; those of earlier epochs are summed up."""
        if any(other.epoch > report.epoch for other in list(self.pumps.values())):
            return  # of a pump that was cancelled and lived on
        for pump, old in list(self.pumps.items()):
            if old.epoch < report.epoch:
                self.past_records += old.records
                self.past_bytes += old.bytes
                del self.pumps[pump]
        self.pumps[report.pump] = report
