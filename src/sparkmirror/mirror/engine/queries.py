"""Spark queries that copy transformed topics, as the engine sees them.

The engine knows these topics (`queried_topics`), and tells when a flow may be worked on. `sparkmirror.queries` does the
work.
"""

from __future__ import annotations

from typing import Protocol

from pyspark import SparkContext

from sparkmirror.mirror.engine.flow_driver import FlowDriver

SLOTS = 1
"""Spark slots that pumps leave to queries at least."""


class Queries(Protocol):
    """The queries of a mirror's flows."""

    def keep(self, driver: FlowDriver, spark: SparkContext) -> None:
        """Begin a flow's queries, unless they are at work."""

    def are_done(self, driver: FlowDriver) -> bool:
        """True if the queries have copied all records up to the ends that `once` wants."""

    def close(self) -> None:
        """End all queries in order."""
