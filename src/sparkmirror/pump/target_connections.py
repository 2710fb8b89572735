"""Connections of one flow to the target's brokers."""

from __future__ import annotations

from collections.abc import Callable

from sparkmirror.config import FlowConfig
from sparkmirror.pump.copies import most_in_flight
from sparkmirror.pump.dialer import Dialer
from sparkmirror.pump.loop import Loop
from sparkmirror.pump.partition import PartitionCopy
from sparkmirror.pump.tally import TrafficMeter
from sparkmirror.pump.target_connection import TargetConnection
from sparkmirror.wire.produce import Ack


class TargetConnections:
    """Connections of one flow to the target's brokers.

    `on_lost` is called for a lost connection with the broker, the reason, and the partitions in flight or waiting.
    """

    def __init__(
        self,
        flow: FlowConfig,
        loop: Loop,
        dialer: Dialer,
        client_id: str,
        meter: TrafficMeter,
        *,
        on_ack: Callable[[PartitionCopy, Ack], None],
        on_unsendable: Callable[[PartitionCopy], None],
        on_lost: Callable[[int, str, list[PartitionCopy]], None],
        may_send: Callable[[], bool],
    ) -> None:
        self._flow = flow
        self._loop = loop
        self._dialer = dialer
        self._client_id = client_id
        self._meter = meter
        self._on_ack = on_ack
        self._on_unsendable = on_unsendable
        self._on_lost = on_lost
        self._may_send = may_send
        self._connections: dict[int, TargetConnection] = {}

    def offer(self, copy: PartitionCopy, broker: int) -> None:
        """Take note that a partition has a batch to send to a broker."""
        connection = self._connections.get(broker)
        if connection is None:
            connection = self._connections[broker] = self._connect(broker)
        connection.offer(copy)

    def of(self, broker: int) -> TargetConnection | None:
        """Return the connection to a broker, if any."""
        return self._connections.get(broker)

    def flush(self) -> None:
        """Send all batches that may be sent."""
        for connection in list(self._connections.values()):  # a connection that breaks now leaves the dict
            connection.pump()

    def check(self) -> None:
        """Give connections with overdue answers up."""
        for connection in list(self._connections.values()):
            connection.check(self._flow.produce.request_timeout_ms / 1000)

    def suspended(self, busy: bool) -> None:
        """Give up all connections; if only `busy`, connections with unsent bytes."""
        for connection in list(self._connections.values()):
            if connection.unsent or not busy:  # unsent bytes are too old by now
                connection.failed("this process was too busy to send" if busy else "this process was suspended")

    def is_any_slow(self, slow_s: float) -> bool:
        """True if a connection has waited so long for its broker or its channel."""
        return any(connection.is_slow(slow_s) for connection in self._connections.values())

    @property
    def in_flight(self) -> bool:
        """True if a request is not answered yet."""
        return any(connection.in_flight for connection in self._connections.values())

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()

    def _connect(self, broker: int) -> TargetConnection:
        settings = self._flow.produce
        return TargetConnection(
            broker,
            self._loop,
            client_id=self._client_id,
            timeout_ms=settings.request_timeout_ms,
            max_request_bytes=settings.max_request_size,
            max_in_flight=most_in_flight(self._flow),
            dial=self._dialer.dial_target,
            renew=self._dialer.renew,
            on_ack=self._on_ack,
            on_unsendable=self._on_unsendable,
            on_lost=self._lost,
            may_send=self._may_send,
            meter=self._meter,
        )

    def _lost(self, connection: TargetConnection, reason: str, copies: list[PartitionCopy]) -> None:
        self._connections.pop(connection.broker, None)
        self._on_lost(connection.broker, reason, copies)
