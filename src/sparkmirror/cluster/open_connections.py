"""Number of a kafka-python client's open connections, by the client's metrics."""

from __future__ import annotations

from typing import Any

from kafka.metrics.metrics_reporter import AbstractMetricsReporter

_NAME = "connection-count"


class OpenConnections(AbstractMetricsReporter):  # type: ignore[misc]  # kafka-python has no types
    """Metrics reporter for one client.

    Pass `lambda: reporter` in the client's `metric_reporters`.
    """

    def __init__(self) -> None:
        self._metric: Any = None

    @property
    def count(self) -> int:
        """Number of open connections; 0 before the client has begun."""
        return int(self._metric.value()) if self._metric is not None else 0

    def init(self, metrics: list[Any]) -> None:
        for metric in metrics:
            self.metric_change(metric)

    def metric_change(self, metric: Any) -> None:
        if metric.metric_name.name == _NAME:
            self._metric = metric

    def metric_removal(self, metric: Any) -> None:
        if metric is self._metric:
            self._metric = None

    def configure(self, configs: dict[str, Any]) -> None:
        """Do nothing: the reporter has no settings."""

    def close(self) -> None:
        """Do nothing: the reporter holds no resources."""
