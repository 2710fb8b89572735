"""Connections to one broker between which partitions are dealt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from sparkmirror.pump.broker_connection import BrokerConnection
from sparkmirror.pump.window import connections_for

Dealt = TypeVar("Dealt", bound=BrokerConnection)


class DealtConnections(Generic[Dealt]):
    """Connections to one broker; `connect` makes one more.

    `load` returns how many partitions are dealt to a connection.
    """

    def __init__(self, connect: Callable[[], Dealt], load: Callable[[Dealt], int]) -> None:
        self.all: list[Dealt] = []
        self._connect = connect
        self._load = load
        self._wanted = 1
        """Number of connections for the window."""
        self.is_single = False
        """True if one connection is there, and one is wanted."""

    def want(self, window_bytes: int, each: int, partitions: int) -> None:
        """Take the number of connections from a window; each carries `each` bytes."""
        self._wanted = connections_for(window_bytes, each, partitions=partitions, before=self._wanted)
        self._count()

    def lightest(self) -> Dealt:
        """Return the connection for a partition that has none."""
        if len(self.all) < self._wanted and all(map(self._load, self.all)):
            self.all.append(self._connect())
            self._count()
        return min(self.all[: self._wanted], key=self._load)

    def better_than(self, present: Dealt) -> Dealt:
        """Return another connection if that is much lighter, or `present` is one too many."""
        lightest = self.lightest()
        is_surplus = present in self.all[self._wanted :]
        return lightest if is_surplus or self._load(present) - self._load(lightest) >= 2 else present

    def lost(self, connection: Dealt) -> None:
        if connection in self.all:
            self.all.remove(connection)
            self._count()

    def _count(self) -> None:
        self.is_single = self._wanted == 1 == len(self.all)
