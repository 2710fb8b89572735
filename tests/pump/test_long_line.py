"""Fetching over a line that the relay plays, from a stand-in for a broker that has always more."""

from __future__ import annotations

import contextlib
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from framed_server import FramedServer
from kafka.protocol.consumer import FetchRequest, FetchResponse
from lab.distance import Distance, DistanceProxy
from model_broker import FRESH_MS, batch_of

from sparkmirror.config import ClusterConfig, FetchConfig, FlowConfig
from sparkmirror.demo.ports import free_ports
from sparkmirror.kafka.wire.buffers import Frame, FramePool
from sparkmirror.kafka.wire.channel import Channel
from sparkmirror.kafka.wire.fetch_session import FetchedPartition, FetchPosition, FetchSession
from sparkmirror.pump.limits import Lane, Limits
from sparkmirror.pump.loop import Loop
from sparkmirror.pump.memory_budget import FETCH_BYTES, MemoryBudget
from sparkmirror.pump.ready import Fetch
from sparkmirror.pump.source_connection import SourceConnection
from sparkmirror.pump.source_connections import SourceConnections
from sparkmirror.pump.tally import TrafficMeter
from sparkmirror.pump.window import WindowReason

VERSION = 13
TOPIC_ID = bytes(15) + b"1"
MB = 1 << 20
BATCH = batch_of(0, tuple(range(5000)), 5000, FRESH_MS)


class StandInBroker:
    """Fills each answer up to what was asked for, and notes the sizes and how many requests it had at once."""

    def __init__(self) -> None:
        self._server = FramedServer(self._answer)
        self.port = self._server.port
        self.asked: list[tuple[int, int]] = []
        self.answered: Counter[int] = Counter()
        """Answers by connection."""

    def _answer(self, data: bytes, connection: int) -> bytes:
        request = FetchRequest.decode(data, version=VERSION, header=True)
        topic, room = FetchResponse.FetchableTopicResponse, request.max_bytes
        parts: list[Any] = []
        for part in (part for asked in request.topics for part in asked.partitions):
            self.asked.append((request.max_bytes, part.partition_max_bytes))
            number = max(min(room, part.partition_max_bytes) // len(BATCH), 0 if parts else 1)
            room -= number * len(BATCH)
            parts.append(
                topic.PartitionData(partition_index=part.partition, high_watermark=1 << 40, records=BATCH * number)
            )
        answer = FetchResponse(responses=[topic(topic_id=asked.topic_id, partitions=parts) for asked in request.topics])
        answer.API_VERSION = VERSION
        answer.with_header(correlation_id=request.header.correlation_id)
        self.answered[connection] += 1
        return bytes(answer.encode(header=True))

    def close(self) -> None:
        self._server.close()


class StandInCopy:
    """A partition that takes all that comes, and wants more at once."""

    def __init__(self, partition: int) -> None:
        self.route = SimpleNamespace(source=("t", partition))
        self.source_partition = self.route.source
        self.offset = 0
        self.fed = 0


class Fetching:
    """Connections to such a broker over a line, in one loop."""

    def __init__(self, broker: StandInBroker, port: int, partitions: int, memory: int, settings: FetchConfig) -> None:
        self.loop = Loop()
        self.pool = FramePool(FETCH_BYTES + (256 << 10), keep=4)
        self._port = port
        self.copies = {("t", number): StandInCopy(number) for number in range(partitions)}
        source, target = (ClusterConfig(alias=alias, bootstrap_servers=("127.0.0.1:1",)) for alias in "AB")
        flow = FlowConfig(source=source, target=target, fetch=settings)
        dialer: Any = SimpleNamespace(dial_source=self._dial, renew=None)
        self.lane = Lane(1, backfill=True)
        self.connections = SourceConnections(
            flow,
            self.loop,
            dialer,
            Limits(self.pool, MemoryBudget(memory), 1.0),
            TrafficMeter(),
            MemoryBudget(memory),
            on_fetched=self._fed,
            on_refused=lambda *_: None,
            on_lost=lambda *_: None,
        )
        self.most_in_use = 0
        self.most_asked = 0
        self.held: Callable[[Frame], None] = lambda frame: None

    def _dial(self, connection: SourceConnection) -> None:
        sock = socket.create_connection(("127.0.0.1", self._port))
        session = FetchSession(
            VERSION, client_id="test", max_wait_ms=500, min_bytes=1, max_bytes=MB, partition_max_bytes=MB
        )
        self.loop.post(lambda: connection.connected(Channel(sock, self.pool), session, 1.0))

    def _fed(self, part: FetchedPartition, frame: Frame) -> None:
        copy = self.copies[part.topic, part.partition]
        assert part.asked_offset == copy.offset, "an answer came twice, or over two connections"
        assert not part.error
        copy.fed += len(part.records)
        copy.offset += len(part.records) // len(BATCH) * 5000
        self.held(frame)
        self.want(copy)

    def want(self, copy: Any) -> None:
        self.connections.follow(copy, Fetch(self.lane, TOPIC_ID, FetchPosition(copy.offset, -1, -1)))

    def run_until(self, true: Callable[[], bool]) -> None:
        """And a moment longer; on a busy machine that may take long."""
        for copy in self.copies.values():
            self.want(copy)
        deadline = time.monotonic() + 60
        became_true_at: float | None = None
        while became_true_at is None or time.monotonic() < became_true_at + 0.5:
            assert time.monotonic() < deadline
            if became_true_at is None and true():
                became_true_at = time.monotonic()
            self.connections.flush()
            asked = [connection.asked_bytes for connection in self.all]
            self.most_asked = max(self.most_asked, sum(asked))
            self.loop.turn(0.05)
            self.most_in_use = max(self.most_in_use, self.pool.in_use)

    @property
    def all(self) -> list[SourceConnection]:
        return self.connections._all()  # noqa: SLF001 - sizes under way are looked at

    def close(self) -> None:
        self.connections.close()
        self.loop.close()


@pytest.fixture
def broker() -> Iterator[StandInBroker]:
    standing_in = StandInBroker()
    yield standing_in
    standing_in.close()


Running = Callable[..., Fetching]


@pytest.fixture
def fetching(broker: StandInBroker) -> Iterator[Running]:
    with contextlib.ExitStack() as stack:

        def running(
            round_trip_ms: float, *, partitions: int = 8, memory: int = 64 * MB, settings: FetchConfig | None = None
        ) -> Fetching:
            (port,) = free_ports(1)
            stack.enter_context(DistanceProxy({port: broker.port}, Distance(round_trip_ms)))
            made = Fetching(broker, port, partitions, memory, settings or FetchConfig())
            stack.callback(made.close)
            return made

        yield running


def test_a_long_line_gets_several_connections_and_every_partition_its_share(
    fetching: Running, broker: StandInBroker
) -> None:
    pump = fetching(150.0)

    def all_connections_bring_records() -> bool:
        lines = pump.connections.lines()
        return bool(lines) and lines[0].window_bytes > FETCH_BYTES and len(broker.answered) == lines[0].connections > 1

    pump.run_until(lambda: all_connections_bring_records() and all(copy.fed for copy in pump.copies.values()))
    (line,) = pump.connections.lines()
    assert line.round_trip_ms >= 150
    assert line.why in {WindowReason.LINE, WindowReason.MEMORY}
    assert line.window_bytes > FETCH_BYTES
    assert all(copy.fed for copy in pump.copies.values())
    assert pump.most_asked <= 32 * MB


def test_one_partition_gets_larger_answers(fetching: Running, broker: StandInBroker) -> None:
    pump = fetching(150.0, partitions=1)
    pump.run_until(lambda: bool(broker.asked) and max(broker.asked) > (FETCH_BYTES, FETCH_BYTES))
    assert len(broker.answered) == 1
    assert max(broker.asked) > (FETCH_BYTES, FETCH_BYTES)
    assert max(size for size, _ in broker.asked) <= 16 * MB


@pytest.mark.alone
@pytest.mark.full
def test_a_short_line_is_asked_as_always(fetching: Running, broker: StandInBroker) -> None:
    pump = fetching(0.0)
    pump.run_until(lambda: len(broker.asked) > 10)
    assert set(broker.asked) == {(FETCH_BYTES, MB)}
    assert len(broker.answered) == 1


def test_what_is_written_in_the_file_is_kept(fetching: Running, broker: StandInBroker) -> None:
    settings = FetchConfig(fetch_max_bytes=2 * MB, max_partition_fetch_bytes=MB // 2)
    pump = fetching(150.0, settings=settings)
    pump.run_until(lambda: len(broker.answered) > 1)
    assert max(size for size, _ in broker.asked) == 2 * MB
    assert {most for _, most in broker.asked} == {MB // 2}
    assert len(broker.answered) > 1


def test_nothing_new_is_asked_for_while_memory_is_held(fetching: Running) -> None:
    """Every answer is kept: what is held and under way stays within the memory."""
    pump = fetching(50.0, memory=32 * MB)

    def hold(frame: Frame) -> None:
        frame.hold()

    pump.held = hold
    pump.run_until(lambda: pump.pool.held >= 12 * MB and not any(connection.asked_bytes for connection in pump.all))
    assert 12 * MB <= pump.pool.held <= 32 * MB
    assert pump.most_in_use <= 32 * MB
    assert all(connection.asked_bytes == 0 for connection in pump.all)
    assert all(connection.held_back == set() for connection in pump.all)
