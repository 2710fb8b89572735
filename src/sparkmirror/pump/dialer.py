"""One flow's connection maker, with a separate thread to connect and to sign in.

Position readings have another thread: in a common thread, readings would wait for a broker that doesn't answer, and
connections would wait for a long reading.
"""

from __future__ import annotations

from sparkmirror.config import FlowConfig
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.wire import fetch_session as fetch
from sparkmirror.kafka.wire import produce
from sparkmirror.kafka.wire.buffers import FramePool
from sparkmirror.kafka.wire.channel import Channel
from sparkmirror.kafka.wire.fetch_session import FetchSession
from sparkmirror.kafka.wire.rpc import RpcConnection
from sparkmirror.kafka.wire.tls import open_channel
from sparkmirror.pump.background import Background
from sparkmirror.pump.broker_connection import BrokerConnection
from sparkmirror.pump.loop import Loop
from sparkmirror.pump.source_connection import SourceConnection
from sparkmirror.pump.target_connection import TargetConnection
from sparkmirror.pump.window import SHORT_S

ISOLATION = {"read_uncommitted": 0, "read_committed": 1}


class Dialer:
    """Open the channels for one flow's connections.

    Takes only addresses from the clients `source` and `target`, as any thread may do.
    """

    def __init__(
        self,
        flow: FlowConfig,
        loop: Loop,
        source: ClusterClient,
        target: ClusterClient,
        pool: FramePool,
    ) -> None:
        self._flow = flow
        self._source = source
        self._target = target
        self._pool = pool
        self._background = Background(loop, f"sparkmirror connections {flow.name}", ())

    def dial_source(self, connection: SourceConnection) -> None:
        """Make a channel to fetch over.

        The connection tells its session the sizes before each request.
        """
        settings = self._flow.fetch

        def dial() -> tuple[Channel, FetchSession, float]:
            dialed = self._source.dial(connection.lane.broker, receive_buffer=settings.receive_buffer_bytes)
            session = FetchSession(
                dialed.version(fetch.API_KEY, fetch.VERSIONS, "Fetch"),
                client_id=self._source.client_id,
                max_wait_ms=settings.fetch_max_wait_ms,
                min_bytes=settings.fetch_min_bytes,
                max_bytes=settings.fetch_max_bytes,
                partition_max_bytes=settings.max_partition_fetch_bytes,
                isolation_level=ISOLATION[settings.isolation_level],
                rack=settings.client_rack,
            )
            round_trip_s = _round_trip_s(dialed)
            return open_channel(dialed.socket, self._pool, dialed), session, round_trip_s

        self._background.do(dial, lambda made: connection.connected(*made), lambda error: connection.failed(str(error)))

    def dial_target(self, connection: TargetConnection) -> None:
        """Make a channel to produce over."""
        settings = self._flow.produce

        def dial() -> tuple[Channel, int, float]:
            dialed = self._target.dial(connection.broker, send_buffer=settings.send_buffer_bytes)
            version = dialed.version(produce.API_KEY, produce.VERSIONS, "Produce")
            round_trip_s = _round_trip_s(dialed)
            return open_channel(dialed.socket, self._pool, dialed), version, round_trip_s

        self._background.do(dial, lambda made: connection.connected(*made), lambda error: connection.failed(str(error)))

    def renew(self, connection: BrokerConnection, channel: Channel) -> None:
        """Sign in again over a channel that the connection leaves alone meanwhile."""

        def failed(error: Exception) -> None:
            channel.close()
            connection.failed(f"signing in again failed: {error}")

        self._background.do(channel.renew, lambda _: connection.renewed(channel), failed)

    def close(self) -> None:
        self._background.close()


def _round_trip_s(dialed: RpcConnection) -> float:
    """Return a new connection's round trip.

    A line that seems long is measured once more: the broker or this process may have been busy. Not for a channel's
    socket: the measurement makes it wait for data, and the pump's loop would wait with it.
    """
    if dialed.round_trip_s >= SHORT_S:
        dialed.ask_versions()
    return dialed.round_trip_s
