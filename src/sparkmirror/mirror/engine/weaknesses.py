"""Warnings about old brokers at a flow's source, logged once."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import closing, suppress

from sparkmirror.config import FlowConfig
from sparkmirror.errors import SparkMirrorError
from sparkmirror.events import Event
from sparkmirror.kafka.cluster.broker_versions import weaker_guarantees
from sparkmirror.kafka.cluster.client import ClusterClient

log = logging.getLogger(__name__)


class Weaknesses:
    """Weaknesses of a flow's source."""

    def __init__(self, flow: FlowConfig) -> None:
        self._flow = flow
        self._warned = False
        self.lines: tuple[str, ...] = ()
        """Weaker guarantees, a line each; empty until they are known."""

    def warn(self, topics: Sequence[str]) -> None:
        """Warn once about weaker guarantees of the brokers that have these topics.

        After a failure, the next call tries again.
        """
        if self._warned or not topics:
            return
        with (
            suppress(ConnectionError, SparkMirrorError),
            closing(ClusterClient(self._flow.source, f"{self._flow.name}|sparkmirror-driver")) as client,
        ):
            self.lines = tuple(weaker_guarantees(client, topics))
            for line in self.lines:
                log.warning(
                    "flow %s: cluster %s: %s",
                    self._flow.name,
                    self._flow.source.alias,
                    line,
                    extra=Event.SOURCE_WEAKNESS.extra,
                )
            self._warned = True
