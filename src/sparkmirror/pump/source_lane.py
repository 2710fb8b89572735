"""One flow's connections to one source broker in one lane.

The partitions are dealt between the connections.

Each connection has its own fetch session, so that several fetches are in flight at one broker. A partition moves only
to a lighter connection, and never while an answer with its records may be under way.
"""

from __future__ import annotations

from collections.abc import Callable

from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.pump.dealt_connections import DealtConnections
from sparkmirror.pump.limits import Lane
from sparkmirror.pump.source_connection import SourceConnection
from sparkmirror.pump.window import LineMeter, LineWindow, WindowReason


class SourceLane:
    """One lane's connections; `connect` makes one more."""

    def __init__(
        self, lane: Lane, clock: Callable[[], float], connect: Callable[[SourceLane], SourceConnection]
    ) -> None:
        self.lane = lane
        self.meter = LineMeter(clock)
        self.window = LineWindow(0, WindowReason.SHORT)
        """Bytes in flight at present."""
        self._dealt = DealtConnections[SourceConnection](lambda: connect(self), lambda each: len(each.dealt))

    @property
    def connections(self) -> list[SourceConnection]:
        return self._dealt.all

    @property
    def partitions(self) -> int:
        return sum(len(connection.dealt) for connection in self.connections)

    @property
    def is_single(self) -> bool:
        """True if one connection carries all partitions."""
        return self._dealt.is_single

    def open_to(self, window: LineWindow, each: int) -> None:
        """Take the connection count from a window.

        Each connection carries `each` bytes.
        """
        self.window = window
        self._dealt.want(window.size, each, self.partitions)

    def deal(self, key: TopicPartition) -> SourceConnection:
        """Return the connection for a partition that has none."""
        connection = self._dealt.lightest()
        connection.dealt.add(key)
        return connection

    @property
    def is_prompt(self) -> bool:
        """True if all connections can ask for another partition at once."""
        return bool(self.connections) and all(connection.is_prompt for connection in self.connections)

    def dial_ahead(self) -> None:
        """Connect now, since a partition will be fetched soon."""
        self._dealt.lightest().dial_ahead()

    def deal_again(self, key: TopicPartition, connection: SourceConnection) -> SourceConnection:
        """Return the connection for a partition, another one if that is much lighter."""
        if connection.asks_for(key):
            return connection
        better = self._dealt.better_than(connection)
        if better is not connection:
            connection.forget(key)
            connection.dealt.discard(key)
            better.dealt.add(key)
        return better

    def lost(self, connection: SourceConnection) -> None:
        self._dealt.lost(connection)
