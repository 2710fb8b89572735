"""One flow's connections to one target broker, and which partition uses which.

Five requests are in flight on each connection, and a partition's batches keep their order because they all go over one
connection. A partition goes over to a lighter connection only when it has no batch in flight.
"""

from __future__ import annotations

from collections.abc import Callable

from sparkmirror.pump.dealt_connections import DealtConnections
from sparkmirror.pump.partition import PartitionCopy
from sparkmirror.pump.target_connection import TargetConnection
from sparkmirror.pump.window import LineMeter, LineWindow, WindowReason, window

LOOK_S = 0.1
"""Time between two looks at a broker's window."""


class TargetBroker:
    """Connections to one broker; `connect` makes one more.

    `usual_bytes` are the bytes in flight on one connection, and `most_bytes` on all connections.
    """

    def __init__(
        self,
        broker: int,
        clock: Callable[[], float],
        connect: Callable[[TargetBroker], TargetConnection],
        *,
        usual_bytes: int,
        most_bytes: int,
    ) -> None:
        self.broker = broker
        self.meter = LineMeter(clock)
        self.window = LineWindow(usual_bytes, WindowReason.SHORT)
        """Bytes in flight at present."""
        self.busy_partitions = 0
        """Number of partitions with a batch in flight at the last look."""
        self._clock = clock
        self._usual_bytes = usual_bytes
        self._most_bytes = max(most_bytes, usual_bytes)
        self._connections = DealtConnections[TargetConnection](lambda: connect(self), lambda each: each.dealt)
        self._look_at = 0.0
        self._dealt: dict[PartitionCopy, TargetConnection] = {}
        """Each partition's connection from its next batch on."""
        self._carriers: dict[PartitionCopy, TargetConnection] = {}
        """Connection that each partition was last offered to.

        So this connection has the batches in flight.
        """

    @property
    def connections(self) -> list[TargetConnection]:
        return self._connections.all

    def look(self) -> None:
        """Take window and connection count from the present measurement."""
        now = self._clock()
        if now < self._look_at:
            return
        self._look_at = now + LOOK_S
        self.window = window(self.meter.line, usual=self._usual_bytes, most=self._most_bytes)
        self._connections.want(self.window.size, self._usual_bytes, len(self._dealt))
        if self.window.follows_line:
            self.busy_partitions = sum(connection.busy_partitions for connection in self.connections)

    def offer(self, copy: PartitionCopy) -> None:
        """Take note that a partition has a batch to send.

        A partition that goes over to another connection is offered there after its last acknowledgement here, when the
        pump offers it again.
        """
        carrier = self._carriers.get(copy)
        if carrier is not None and self._connections.is_single:
            carrier.offer(copy)
            return
        connection = self._deal(copy)
        if carrier is not connection:
            if carrier is not None:
                carrier.withdraw(copy)
                if copy.in_flight:
                    return
            self._carriers[copy] = connection
        connection.offer(copy)

    def dial_ahead(self) -> None:
        """Connect now, since there will be something to send soon."""
        self._connections.lightest().dial_ahead()

    @property
    def is_connected(self) -> bool:
        return any(connection.is_connected for connection in self.connections)

    def leave(self, copy: PartitionCopy) -> None:
        """Forget a partition whose leader, or task, is another one now."""
        connection = self._dealt.pop(copy, None)
        if connection is not None:
            connection.dealt -= 1
        carrier = self._carriers.pop(copy, None)
        if carrier is not None:
            carrier.withdraw(copy)

    def connection_of(self, copy: PartitionCopy) -> TargetConnection | None:
        return self._dealt.get(copy)

    def lost(self, connection: TargetConnection) -> None:
        """Do without a connection; its partitions are dealt again with their next batches."""
        self._connections.lost(connection)
        for dealt in (self._dealt, self._carriers):
            for copy in [copy for copy, own in dealt.items() if own is connection]:
                del dealt[copy]

    def _deal(self, copy: PartitionCopy) -> TargetConnection:
        present = self._dealt.get(copy)
        chosen = self._connections.lightest() if present is None else self._connections.better_than(present)
        if chosen is not present:
            if present is not None:
                present.dealt -= 1
            chosen.dealt += 1
            self._dealt[copy] = chosen
        return chosen
