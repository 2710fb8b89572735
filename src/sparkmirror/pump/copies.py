"""One flow's partitions in one pump, made from the routes in the flow's order."""

from __future__ import annotations

import random
from collections.abc import Iterable

from sparkmirror.clock import wall_ms
from sparkmirror.config import FlowConfig, ProduceConfig
from sparkmirror.kafka.wire.batches import CODECS
from sparkmirror.kafka.wire.codecs import Codec
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.pump.intake import Intake
from sparkmirror.pump.messages.orders import FlowOrder, RouteOrder
from sparkmirror.pump.partition import PartitionCopy
from sparkmirror.pump.transforming import transform_of

MOST_IN_FLIGHT = 5
"""Brokers recognise a repeat only among the last five batches (docs/exactness.md)."""


def most_in_flight(flow: FlowConfig) -> int:
    """Return the most batches per partition, or requests per broker, in flight."""
    return min(flow.produce.max_in_flight_requests_per_connection, MOST_IN_FLIGHT)


def wanted_codec(produce: ProduceConfig) -> Codec | None:
    """Return every batch's codec at the target; None: each batch keeps its own."""
    number = CODECS.index(produce.compression_type)
    return Codec(number, produce.compression_level) if number else None


class PartitionCopies:
    """Copies of a flow's partitions, in the order of their routes."""

    def __init__(self, order: FlowOrder) -> None:
        self._order = order
        self._codec = wanted_codec(order.flow.produce)
        self._by_source: dict[TopicPartition, PartitionCopy] = {}
        self.moves: dict[PartitionCopy, int] = {}
        """Number of the move that gave the task each copy; 0: its order did."""
        self.unfinished: set[PartitionCopy] = set()
        """Copies without an end (`until`), or neither done nor parked."""
        self.all: list[PartitionCopy] = []

    def add(self, routes: Iterable[RouteOrder], now: float, *, unclean: bool) -> list[PartitionCopy]:
        """Begin to copy partitions that are not copied yet; return their copies.

        `unclean` is True if their predecessors may still be alive.
        """
        self.moves |= (came := {self._copy(route, now, unclean=unclean): route.move for route in routes})
        new = list(came)
        self.all += new
        self._by_source |= {copy.route.source: copy for copy in new}
        return new

    def remove(self, copy: PartitionCopy) -> None:
        self.all.remove(copy)
        del self._by_source[copy.route.source], self.moves[copy]
        self.unfinished.discard(copy)

    def _copy(self, route: RouteOrder, now: float, *, unclean: bool) -> PartitionCopy:
        order, flow = self._order, self._order.flow
        return PartitionCopy(
            route.route,
            order.identity,
            random.getrandbits(62),  # of this stay alone: another task may copy the partition in between
            until=route.until,
            from_latest=flow.fetch.auto_offset_reset == "latest",
            unclean=unclean,
            fresh_after_ms=wall_ms() - order.state_lifetime_ms // 2,
            intake=Intake(
                read_committed=flow.fetch.isolation_level == "read_committed",
                codec=self._codec,
                merge_tiny=flow.merge_tiny_batches,
                change=None if route.untransformed else transform_of(flow.connect_transforms, route.route),
                opposite=route.opposite,
            ),
            max_in_flight=most_in_flight(flow),
            now=now,
            done_at=route.done_at,
            reported=route.reported,
        )

    def of(self, source: TopicPartition) -> PartitionCopy | None:
        return self._by_source.get(source)

    @property
    def finished(self) -> bool:
        """True if there are routes, all have an end (`until`), and all are done or parked."""
        return bool(self.all) and not self.unfinished
