"""A pump whose target is at the end of a line that the relay plays; both brokers are models, and the pump is whole.

The target's partitions compare and append as `model_broker.TargetLog` does, so that any disorder would be refused.
"""

from __future__ import annotations

import itertools
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import pytest
from framed_server import FramedServer
from kafka.protocol.consumer import FetchRequest, FetchResponse
from kafka.protocol.producer import ProduceRequest, ProduceResponse
from lab.distance import Distance, DistanceProxy
from model_broker import FRESH_MS, IDENTITY, Source, batch_of
from model_pump import World

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.demo.ports import free_ports
from sparkmirror.exact.durable.claim_log import ClaimLog
from sparkmirror.exact.durable.claims import Claim
from sparkmirror.exact.position.reader import PositionReader
from sparkmirror.exact.position.route import PartitionPair, PartitionReading, Refusal
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.pump import source_connections
from sparkmirror.pump.flow_pump import FlowPump
from sparkmirror.pump.loop import Loop
from sparkmirror.pump.messages.control import ControlState
from sparkmirror.pump.messages.orders import FlowOrder, RouteOrder

VERSION = 13
"""Of Fetch and Produce: both with topic ids."""
PARTITIONS, BATCHES, RECORDS = 4, 160, 700
END = BATCHES * RECORDS
BASES = range(0, END, RECORDS)
LOG = [batch_of(base, tuple(range(base, base + RECORDS)), RECORDS, FRESH_MS + base) for base in BASES]
"""Of each partition: 14 kB a batch."""
ANSWERED = 20
"""Batches of a partition in an answer."""
ROUND_TRIP_MS = 80.0


class Dialed:
    """What a pump's dialer makes of a connection."""

    renewal_due = False

    def __init__(self, port: int, round_trip_s: float) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.round_trip_s = round_trip_s

    def version(self, *_: object) -> int:
        return VERSION

    def ask_versions(self) -> None:
        pass


def fetched(data: bytes, _: int) -> bytes:
    """The source's answer."""
    request = FetchRequest.decode(data, version=VERSION, header=True)
    topic = FetchResponse.FetchableTopicResponse
    responses = []
    for asked in request.topics:
        parts = []
        for part in asked.partitions:
            first = part.fetch_offset // RECORDS
            records = b"".join(LOG[first : first + ANSWERED])
            parts.append(topic.PartitionData(partition_index=part.partition, high_watermark=END, records=records))
        responses.append(topic(topic_id=asked.topic_id, partitions=parts))
    answer = FetchResponse(responses=responses)
    answer.API_VERSION = VERSION
    answer.with_header(correlation_id=request.header.correlation_id)
    return bytes(answer.encode(header=True))


class FarTarget:
    """The target's partitions, and over which connection each batch of a partition came."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self.worlds = [World(Source([(RECORDS, FRESH_MS)] * BATCHES)) for _ in range(PARTITIONS)]
        self.came_over: list[list[int]] = [[] for _ in range(PARTITIONS)]
        self.lock = threading.Lock()
        self.refused = 0

    def answer(self, data: bytes, connection: int) -> bytes:
        request = ProduceRequest.decode(data, version=VERSION, header=True)
        topic = ProduceResponse.TopicProduceResponse
        responses = []
        for sent in request.topic_data:
            parts = []
            for part in sent.partition_data:
                with self.lock:
                    ack = self.worlds[part.index].target.append(bytes(part.records), self._loop.now)
                    self.came_over[part.index].append(connection)
                    self.refused += ack.error != 0
                parts.append(
                    topic.PartitionProduceResponse(
                        index=part.index,
                        error_code=ack.error,
                        base_offset=ack.base_offset,
                        log_append_time_ms=ack.log_append_time_ms,
                    )
                )
            responses.append(topic(topic_id=sent.topic_id, partition_responses=parts))
        answer = ProduceResponse(responses=responses)
        answer.API_VERSION = VERSION
        answer.with_header(correlation_id=request.header.correlation_id)
        return bytes(answer.encode(header=True))


class LongFlow:
    """A whole pump from the near source to the far target."""

    def __init__(self, loop: Loop, target: FarTarget, *, merge: bool, old: bool) -> None:
        self.loop, self.target = loop, target
        clusters = [ClusterConfig(alias=alias, bootstrap_servers=("127.0.0.1:1",)) for alias in "AB"]
        flow = FlowConfig(source=clusters[0], target=clusters[1], merge_tiny_batches=merge)
        routes = tuple(
            RouteOrder(source_topic="t", target_topic="A.t", partition=at, until=END) for at in range(PARTITIONS)
        )
        order = FlowOrder(
            flow=flow,
            cluster_id="c",
            producer_id=IDENTITY.producer_id,
            producer_epoch=IDENTITY.producer_epoch,
            leader_rank=-1,
            routes=routes,
            state_lifetime_ms=1 if old else 10**14,
        )
        self.pump = FlowPump(order, loop, memory_bytes=64 << 20)
        self.pump.control(ControlState())
        self.most_connections = 0
        self.largest_joined = 0

    def copy(self, until: Callable[[], bool] | None = None) -> None:
        deadline = time.monotonic() + 60
        while not (self.pump.finished if until is None else until()):
            assert time.monotonic() < deadline, [(each.state, each.reason) for each in self.pump.receipts()]
            self.pump.flush()
            self.loop.turn(0.05)
            for line in self.pump.lines():
                if line.side == "target":
                    self.most_connections = max(self.most_connections, line.connections)
                    self.largest_joined = max(self.largest_joined, line.batch_bytes)


LongFlows = Callable[..., LongFlow]


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[LongFlows, DistanceProxy]]:
    loop = Loop()
    target = FarTarget(loop)
    servers = FramedServer(fetched), FramedServer(target.answer)
    claims: list[Claim] = []
    flows: list[LongFlow] = []
    (port,) = free_ports(1)

    def read(
        _: PositionReader,
        routes: Mapping[PartitionPair, object],
        ready: Callable[[Mapping[PartitionPair, PartitionReading | Refusal]], None],
    ) -> None:
        read_now: dict[PartitionPair, PartitionReading | Refusal] = {}
        for route in routes:
            world = target.worlds[route.partition]
            with target.lock:
                world.target.claims = [
                    replace(claim, partition=0) for claim in claims if claim.partition == route.partition
                ]
                read_now[route] = world.target.partition_reading(world.source, loop.now)
        ready(read_now)

    def claim_each(_: ClaimLog, segments: Sequence[Claim]) -> dict[int, ConnectionError]:
        claims.extend(segments)
        return {}

    def dial(client: ClusterClient, *_: object, **__: object) -> Dialed:
        near = client is flows[0].pump.clients.source
        return Dialed(servers[0].port, 0.0) if near else Dialed(port, ROUND_TRIP_MS / 1000)

    def made(*, merge: bool = True, old: bool = False) -> LongFlow:
        flows.append(LongFlow(loop, target, merge=merge, old=old))
        return flows[0]

    monkeypatch.setattr(source_connections, "QUEUE_BYTES", 1 << 16)  # else all is queued before the line is measured
    monkeypatch.setattr(PositionReader, "read", read)
    monkeypatch.setattr(ClaimLog, "claim_each", claim_each)
    monkeypatch.setattr(ClusterClient, "dial", dial)
    with DistanceProxy({port: servers[1].port}, Distance(ROUND_TRIP_MS)) as proxy:
        yield made, proxy
    for flow in flows:
        flow.pump.close()
    for server in servers:
        server.close()
    loop.close()


def assert_all_is_there(target: FarTarget) -> None:
    for world in target.worlds:
        assert world.target.log == list(range(END))


@pytest.mark.parametrize("old", [False, True])
def test_all_batches_for_a_far_target_arrive_in_order(line: tuple[LongFlows, DistanceProxy], old: bool) -> None:
    flow = line[0](old=old)
    flow.copy()
    assert_all_is_there(flow.target)
    assert flow.target.refused == 0


@pytest.mark.alone
@pytest.mark.full
@pytest.mark.parametrize("old", [False, True])
def test_batches_for_a_far_target_are_joined(line: tuple[LongFlows, DistanceProxy], old: bool) -> None:
    """Old records go one batch at a time, so that they are joined all the more."""
    flow = line[0](old=old)
    flow.copy()
    for world in flow.target.worlds:
        assert len(world.target.stored) < BATCHES, "how many are joined follows what is measured"


def test_batches_stay_as_they_are_if_they_are_to(line: tuple[LongFlows, DistanceProxy]) -> None:
    flow = line[0](merge=False)
    flow.copy()
    assert_all_is_there(flow.target)
    assert [len(world.target.stored) for world in flow.target.worlds] == [BATCHES] * PARTITIONS


def test_connections_that_break_under_way_lose_nothing(line: tuple[LongFlows, DistanceProxy]) -> None:
    make, proxy = line
    flow = make()

    def has_copied(share: float) -> bool:
        return sum(len(world.target.log) for world in flow.target.worlds) > share * END * PARTITIONS

    for share in (0.1, 0.4, 0.6):
        flow.copy(partial(has_copied, share))
        proxy.lose_connections()
    flow.copy()
    assert_all_is_there(flow.target)


def test_a_partition_goes_over_one_connection_at_a_time(
    line: tuple[LongFlows, DistanceProxy], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests are made small here, so that several connections are needed; then the line becomes short again."""
    monkeypatch.setattr("sparkmirror.pump.target_broker.LOOK_S", 0.01)
    make, _ = line
    flow = make()
    targets = flow.pump._targets  # noqa: SLF001 - five requests of this size are one connection's part of the window
    targets._usual_bytes = 5 * len(LOG[0])  # noqa: SLF001
    flow.copy()
    assert_all_is_there(flow.target)
    assert flow.target.refused == 0
    assert flow.most_connections > 1
    for came_over in flow.target.came_over:
        changes = sum(before != after for before, after in itertools.pairwise(came_over))
        assert changes <= flow.most_connections
