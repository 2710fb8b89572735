"""A source that answers each Fetch with an error: it is asked a few times a second at most, and the state tells why."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping

import kafka.errors
import pytest
from kafka.protocol.consumer import FetchRequest, FetchResponse
from model_broker import FRESH_MS, Source
from model_pump import World
from told_receipts import ToldReceipts

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.exact.position.reader import PositionReader
from sparkmirror.exact.position.route import PartitionPair, PartitionReading, Refusal
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.error_names import error_name
from sparkmirror.pump import retry
from sparkmirror.pump.flow_pump import FlowPump
from sparkmirror.pump.loop import Loop
from sparkmirror.pump.messages.control import ControlState
from sparkmirror.pump.messages.orders import FlowOrder, Receipt, RouteOrder
from sparkmirror.pump.source_connection import FIRST_PAUSE_S, SESSION_ERRORS

VERSION = 13
WATCHED_S = 3.0
MOST_A_SECOND = 4.0
CODES = sorted(code for code in kafka.errors.kafka_errors if code)

TopicAnswer = FetchResponse.FetchableTopicResponse


class ModelBroker:
    """A broker that answers every Fetch on its connections with one error, and counts them.

    `whole`: the request is refused, with no word about its partitions; else each of its partitions is.
    """

    renewal_due = False
    round_trip_s = 0.001

    def __init__(self, code: int, *, whole: bool) -> None:
        self.code, self.whole = code, whole
        self.fetches: list[float] = []
        self._session: dict[tuple[uuid.UUID, int], None] = {}
        self.sockets: list[socket.socket] = []

    def dial(self) -> ModelConnection:
        ours, theirs = socket.socketpair()
        self.sockets += [ours, theirs]
        threading.Thread(target=self._serve, args=(theirs,), daemon=True).start()
        return ModelConnection(ours)

    def _serve(self, sock: socket.socket) -> None:
        with contextlib.suppress(OSError), sock.makefile("rb") as requests:
            while size := requests.read(4):
                request = requests.read(struct.unpack(">i", size)[0])
                self.fetches.append(time.monotonic())
                sock.sendall(self._answer(FetchRequest.decode(request, version=VERSION, header=True)))

    def _answer(self, request: FetchRequest) -> bytes:
        if request.session_epoch <= 0:
            self._session.clear()
        self._session |= dict.fromkeys(
            (topic.topic_id, p.partition) for topic in request.topics for p in topic.partitions
        )
        for topic in request.forgotten_topics_data:
            for partition in topic.partitions:
                self._session.pop((topic.topic_id, partition), None)
        refused = [] if self.whole else list(self._session)
        answer = FetchResponse(
            error_code=self.code if self.whole else 0,
            session_id=0 if self.whole else 7,
            responses=[
                TopicAnswer(
                    topic_id=topic_id,
                    partitions=[
                        TopicAnswer.PartitionData(
                            partition_index=partition, error_code=self.code, high_watermark=-1, records=b""
                        )
                    ],
                )
                for topic_id, partition in refused
            ],
        )
        answer.API_VERSION = VERSION
        answer.with_header(correlation_id=request.header.correlation_id)
        frame = bytes(answer.encode(header=True))
        return struct.pack(">i", len(frame)) + frame

    def close(self) -> None:
        for sock in self.sockets:
            sock.close()


class ModelConnection:
    """What a pump's dialer makes of a connection to such a broker."""

    renewal_due = False
    round_trip_s = 0.001

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock

    def version(self, *_: object) -> int:
        return VERSION


class Flow:
    """A pump of three partitions, whose positions can always be read, over a model source broker."""

    def __init__(self, broker: ModelBroker, loop: Loop, until: int | None = None) -> None:
        self.broker = broker
        self.readings = 0
        source, target = (ClusterConfig(alias=alias, bootstrap_servers=("127.0.0.1:1",)) for alias in "AB")
        flow = FlowConfig(source=source, target=target)
        routes = tuple(
            RouteOrder(source_topic="t", target_topic="A.t", partition=number, until=until) for number in range(3)
        )
        order = FlowOrder(flow=flow, cluster_id="c", producer_id=1, producer_epoch=0, leader_rank=-1, routes=routes)
        self.pump = FlowPump(order, loop, memory_bytes=8 << 20)
        self.pump.control(ControlState())
        self._told = ToldReceipts(self.pump)

    def receipts(self) -> list[Receipt]:
        return self._told.receipts()

    def close(self) -> None:
        self.pump.close()
        self.broker.close()


Refusing = Callable[..., list[Flow]]


@pytest.fixture
def loop() -> Iterator[Loop]:
    made = Loop()
    yield made
    made.close()


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch, loop: Loop) -> Iterator[Refusing]:
    """Make flows over brokers that answer with these codes."""
    by_reader: dict[int, Flow] = {}
    flows: list[Flow] = []

    def read(
        reader: PositionReader,
        routes: Mapping[PartitionPair, object],
        ready: Callable[[Mapping[PartitionPair, PartitionReading | Refusal]], None],
    ) -> None:
        by_reader[id(reader)].readings += 1
        world = World(Source([(10, FRESH_MS)] * 4))
        reading = world.target.partition_reading(world.source, loop.now)
        ready(dict.fromkeys(routes, reading))

    def dial(client: ClusterClient, node_id: int, **_: object) -> ModelConnection:
        flow = next(flow for flow in flows if flow.pump.clients.source is client)
        return flow.broker.dial()

    monkeypatch.setattr(PositionReader, "read", read)
    monkeypatch.setattr(ClusterClient, "dial", dial)

    def make(codes: list[int], *, whole: bool, until: int | None = None) -> list[Flow]:
        for code in codes:
            flow = Flow(ModelBroker(code, whole=whole), loop, until)
            by_reader[id(flow.pump.readings.reader)] = flow
            flows.append(flow)
        return flows

    yield make
    for flow in flows:
        flow.close()


def turn(loop: Loop, flows: list[Flow], seconds: float, enough: Callable[[], bool] = lambda: False) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not enough():
        for flow in flows:
            flow.pump.flush()
        loop.turn(0.05)


@pytest.mark.parametrize("whole", [True, False], ids=["the request", "its partitions"])
def test_no_error_makes_a_storm(refusing: Refusing, loop: Loop, whole: bool) -> None:
    flows = refusing(CODES, whole=whole)
    turn(loop, flows, WATCHED_S)
    for flow in flows:
        code, asked = flow.broker.code, len(flow.broker.fetches)
        assert 1 <= asked <= WATCHED_S * MOST_A_SECOND + 3, f"{error_name(code)}: {asked} fetches"
        assert flow.readings <= WATCHED_S * MOST_A_SECOND + 3, f"{error_name(code)}: {flow.readings} positions read"
    named: set[int] = set()

    def all_are_named() -> bool:
        """A partition that is tried again has no reason for a moment."""
        for flow in flows:
            name = error_name(flow.broker.code)
            if all(name in receipt.reason for receipt in flow.receipts()):
                named.add(flow.broker.code)
        return len(named) == len(flows)

    turn(loop, flows, 10.0, all_are_named)
    assert sorted(named) == CODES


def test_a_lost_session_is_begun_again_at_once(refusing: Refusing, loop: Loop) -> None:
    """Brokers forget sessions; only who is refused a second time has to wait."""
    flows = refusing(sorted(SESSION_ERRORS), whole=True)
    turn(loop, flows, 5.0, lambda: all(len(flow.broker.fetches) >= 3 for flow in flows))
    for flow in flows:
        first, second, third = flow.broker.fetches[:3]
        assert second - first < FIRST_PAUSE_S <= third - second


def test_a_run_that_has_an_end_parks_what_is_refused(
    refusing: Refusing, loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--once` must end: patience holds for whole requests too."""
    monkeypatch.setattr(retry, "PATIENCE_S", 1.0)
    (flow,) = refusing([-1], whole=True, until=40)
    turn(loop, [flow], 20.0, lambda: flow.pump.finished)
    assert flow.pump.finished
    assert {(receipt.state, receipt.reason) for receipt in flow.receipts()} == {
        ("parked", f"source broker 1 refuses to be fetched from: {error_name(-1)}, an unexpected error at the broker")
    }
