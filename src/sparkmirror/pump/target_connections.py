"""One flow's connections to the target's brokers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sparkmirror.config import FlowConfig
from sparkmirror.kafka.wire.produce import Ack
from sparkmirror.pump.copies import most_in_flight
from sparkmirror.pump.dialer import Dialer
from sparkmirror.pump.intake import JOINED_BYTES
from sparkmirror.pump.loop import Loop
from sparkmirror.pump.memory_budget import MemoryBudget
from sparkmirror.pump.messages.figures import LineFigures
from sparkmirror.pump.partition import PartitionCopy
from sparkmirror.pump.tally import TrafficMeter
from sparkmirror.pump.target_broker import TargetBroker
from sparkmirror.pump.target_connection import TargetConnection
from sparkmirror.pump.window import batch_bytes


class TargetConnections:
    """One flow's connections to the target's brokers.

    `on_lost` is called for a lost connection with the broker, the reason, and the partitions in flight or waiting; True
    stands for a partition whose batches were pipelined.
    """

    def __init__(
        self,
        flow: FlowConfig,
        loop: Loop,
        dialer: Dialer,
        client_id: str,
        meter: TrafficMeter,
        memory: MemoryBudget,
        *,
        on_ack: Callable[[PartitionCopy, Ack], None],
        on_unsendable: Callable[[PartitionCopy], None],
        on_lost: Callable[[int, str, Mapping[PartitionCopy, bool]], None],
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
        self._in_flight = most_in_flight(flow)
        self._usual_bytes = self._in_flight * flow.produce.max_request_size
        self._most_bytes = memory.requests
        self._brokers: dict[int, TargetBroker] = {}
        self._led_by: dict[PartitionCopy, TargetBroker] = {}
        """Broker that each partition was last offered to."""

    def offer(self, copy: PartitionCopy, broker: int) -> None:
        """Take note that a partition has a batch to send to a broker."""
        leader = self._led_by.get(copy)
        if leader is None or leader.broker != broker:
            assert not copy.in_flight  # noqa: S101 - a position, and so a leader, is read with nothing in flight
            if leader is not None:
                leader.leave(copy)
            leader = self._led_by[copy] = self._broker(broker)
        leader.offer(copy)

    def dial_ahead(self, broker: int) -> None:
        """Connect to a broker that gets batches soon."""
        self._broker(broker).dial_ahead()

    def is_connected(self, broker: int) -> bool:
        return self._broker(broker).is_connected

    def forget(self, copy: PartitionCopy) -> None:
        """Send no more from a partition, which has nothing in flight."""
        broker = self._led_by.pop(copy, None)
        if broker is not None:
            broker.leave(copy)

    def of(self, copy: PartitionCopy) -> TargetConnection | None:
        broker = self._led_by.get(copy)
        return None if broker is None else broker.connection_of(copy)

    def batch_bytes(self, copy: PartitionCopy) -> int:
        """Return the size up to which a partition's small batches are joined.

        0 on a short line.
        """
        broker = self._led_by.get(copy)
        return 0 if broker is None else self._batch_bytes(broker, copy.most_in_flight)

    def _batch_bytes(self, broker: TargetBroker, in_flight: int) -> int:
        most = min(JOINED_BYTES, self._flow.produce.max_request_size)
        return batch_bytes(broker.window.needed, partitions=broker.busy_partitions, in_flight=in_flight, most=most)

    def lines(self) -> list[LineFigures]:
        return [
            LineFigures(
                side="target",
                broker=broker.broker,
                round_trip_ms=round(round_trip_s * 1000, 1),
                bytes_per_s=int(broker.meter.line.bytes_per_s),
                window_bytes=broker.window.size,
                connections=len(broker.connections),
                batch_bytes=self._batch_bytes(broker, self._in_flight),
                why=broker.window.choice,
            )
            for broker in self._brokers.values()
            if (round_trip_s := broker.meter.round_trip_s) is not None
        ]

    def flush(self) -> None:
        """Send all batches that may be sent."""
        for broker in self._brokers.values():
            broker.look()
        for connection in self._all():
            connection.pump()

    def check(self) -> None:
        """Give connections with overdue answers up."""
        for connection in self._all():
            connection.check(self._flow.produce.request_timeout_ms / 1000)

    def suspended(self, busy: bool) -> None:
        """Give up all connections; if only `busy`, connections with unsent bytes."""
        for connection in self._all():
            if connection.unsent or not busy:  # unsent bytes are too old by now
                connection.failed("this process was too busy to send" if busy else "this process was suspended")

    def is_any_slow(self, slow_s: float) -> bool:
        """True if a connection has waited so long to continue."""
        return any(connection.is_slow(slow_s) for connection in self._all())

    @property
    def in_flight(self) -> bool:
        """True if a request is not answered yet."""
        return any(connection.in_flight for connection in self._all())

    def close(self) -> None:
        for connection in self._all():
            connection.close()

    def _all(self) -> list[TargetConnection]:
        """Return all connections, in a separate list.

        A connection that breaks leaves its broker.
        """
        return [connection for broker in self._brokers.values() for connection in broker.connections]

    def _broker(self, broker: int) -> TargetBroker:
        if broker not in self._brokers:
            self._brokers[broker] = TargetBroker(
                broker,
                lambda: self._loop.now,
                self._connect,
                usual_bytes=self._usual_bytes,
                most_bytes=self._most_bytes,
            )
        return self._brokers[broker]

    def _connect(self, broker: TargetBroker) -> TargetConnection:
        settings = self._flow.produce
        return TargetConnection(
            broker.broker,
            self._loop,
            client_id=self._client_id,
            timeout_ms=settings.request_timeout_ms,
            max_request_bytes=settings.max_request_size,
            max_in_flight=self._in_flight,
            dial=self._dialer.dial_target,
            renew=self._dialer.renew,
            on_ack=self._on_ack,
            on_unsendable=self._on_unsendable,
            on_lost=self._lost,
            may_send=self._may_send,
            meter=self._meter,
            line=broker.meter,
        )

    def _lost(self, connection: TargetConnection, reason: str, copies: Mapping[PartitionCopy, bool]) -> None:
        broker = self._brokers[connection.broker]
        broker.lost(connection)
        if broker.connections and not copies and not connection.dealt:
            return  # a connection that was no longer needed; the others tell whether the broker is there
        self._on_lost(connection.broker, reason, copies)
