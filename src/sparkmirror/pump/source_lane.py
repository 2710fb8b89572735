"""Connections of one flow to one source broker in one lane.

The partitions are dealt between the connections.

Each connection has a fetch session of its own, so that several fetches are in flight at one broker. A partition moves
only to a lighter connection, and never while an answer with its records may be under way.
"""

from __future__ import annotations

from collections.abc import Callable

from sparkmirror.pump.limits import Lane
from sparkmirror.pump.source_connection import SourceConnection
from sparkmirror.pump.window import LineMeter, LineWindow, WindowReason, connections_for
from sparkmirror.wire.topic_partition import TopicPartition


class SourceLane:
    """Connections of one lane; `connect` makes one more."""

    def __init__(
        self, lane: Lane, clock: Callable[[], float], connect: Callable[[SourceLane], SourceConnection]
    ) -> None:
        self.lane = lane
        self.meter = LineMeter(clock)
        self.window = LineWindow(0, WindowReason.SHORT)
        """Bytes in flight at present."""
        self.connections: list[SourceConnection] = []
        self._connect = connect
        self._wanted = 1
        """Number of connections for the window."""

    @property
    def partitions(self) -> int:
        """Number of partitions of all connections."""
        return sum(len(connection.dealt) for connection in self.connections)

    def open_to(self, window: LineWindow, each: int) -> None:
        """Take the number of connections from a window.

        Each connection carries `each` bytes.
        """
        self.window = window
        self._wanted = connections_for(window.size, each, partitions=self.partitions, before=self._wanted)

    def deal(self, key: TopicPartition) -> SourceConnection:
        """Return the connection for a partition that has none."""
        connection = self._lightest()
        connection.dealt.add(key)
        return connection

    def deal_again(self, key: TopicPartition, connection: SourceConnection) -> SourceConnection:
        """Return the connection for a partition, another one if that is much lighter."""
        if self._wanted == 1 == len(self.connections) or connection.asks_for(key):
            return connection
        lightest = self._lightest()
        is_surplus = connection in self.connections[self._wanted :]
        if len(connection.dealt) - len(lightest.dealt) < 2 and not is_surplus:
            return connection
        connection.forget(key)
        connection.dealt.discard(key)
        lightest.dealt.add(key)
        return lightest

    def lost(self, connection: SourceConnection) -> None:
        """Do without a connection."""
        if connection in self.connections:
            self.connections.remove(connection)

    def _lightest(self) -> SourceConnection:
        if len(self.connections) < self._wanted and all(connection.dealt for connection in self.connections):
            self.connections.append(self._connect(self))
        return min(self.connections[: self._wanted], key=lambda connection: len(connection.dealt))
