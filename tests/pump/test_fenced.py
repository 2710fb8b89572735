"""A pump that is told that it has no right to write any more sends nothing more, to no broker, and says why (R1)."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from kafka.protocol.consumer import FetchRequest, FetchResponse
from kafka.protocol.producer import ProduceRequest, ProduceResponse
from model_broker import FRESH_MS, SOURCE_ID, TARGET_ID, Source
from model_pump import World

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.durable.claim_log import SegmentLog
from sparkmirror.messages.control import ControlState
from sparkmirror.messages.orders import FlowOrder, FlowReport, PumpOrder, Receipt, RouteOrder
from sparkmirror.position.reader import PositionReader
from sparkmirror.position.route import PartitionPair, PartitionReading, Refusal
from sparkmirror.pump import flow_reports
from sparkmirror.pump import pump as pump_module
from sparkmirror.pump.dialer import Dialer
from sparkmirror.pump.loop import Loop
from sparkmirror.pump.pump import _PumpRun
from sparkmirror.pump.receipt_of import receipt_of
from sparkmirror.pump.source_connection import SourceConnection
from sparkmirror.pump.target_connection import TargetConnection
from sparkmirror.pump.verdicts import explanation
from sparkmirror.wire.buffers import FramePool
from sparkmirror.wire.channel import Channel
from sparkmirror.wire.fetch_session import FetchSession

FETCH_VERSION, PRODUCE_VERSION = 13, 13
LEADERS = {0: 1, 1: 1, 2: 2}
"""Of each partition, at the target."""

FetchAnswer = FetchResponse.FetchableTopicResponse
ProduceAnswer = ProduceResponse.TopicProduceResponse


class Broker:
    """The far end of one connection."""

    def __init__(self) -> None:
        self.near, self._far = socket.socketpair()
        self._far.setblocking(False)
        self._came = b""
        self.correlation_ids: list[int] = []
        """Of the requests that are not answered."""

    def requests(self, kind: Any, version: int) -> list[Any]:
        """Those that have come since the last look."""
        try:
            self._came += self._far.recv(1 << 20)
        except BlockingIOError:
            return []
        found = []
        while len(self._came) >= 4 and len(self._came) >= 4 + (size := struct.unpack_from(">i", self._came)[0]):
            found.append(kind.decode(self._came[4 : 4 + size], version=version, header=True))
            self.correlation_ids.append(found[-1].header.correlation_id)
            self._came = self._came[4 + size :]
        return found

    def answer(self, response: Any, version: int) -> None:
        """The oldest request."""
        response.API_VERSION = version
        response.with_header(correlation_id=self.correlation_ids.pop(0))
        data = bytes(response.encode(header=True))
        self._far.sendall(struct.pack(">i", len(data)) + data)


class PlayedControlChannel:
    """What is told the driver."""

    def __init__(self, reports: list[FlowReport]) -> None:
        self.report = reports.append

    def close(self, _: float) -> None:
        """Nothing is on its way."""


class Running:
    """A run of three partitions, of which two brokers lead the targets; the test answers what they are sent."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.loop = Loop()
        self.pool = FramePool(1 << 20, keep=2)
        self.source = Source([(10, FRESH_MS)] * 4)
        self.source_broker = Broker()
        self.brokers = {leader: Broker() for leader in set(LEADERS.values())}
        self.in_flight: dict[int, list[list[int]]] = {leader: [] for leader in self.brokers}
        """The partitions of each request that is not answered."""
        self.reports: list[FlowReport] = []
        monkeypatch.setattr(PositionReader, "read", lambda _, routes, ready: self._read(routes, ready))
        monkeypatch.setattr(SegmentLog, "claim", lambda *_: None)
        monkeypatch.setattr(Dialer, "dial_source", lambda _, connection: self._dial_source(connection))
        monkeypatch.setattr(Dialer, "dial_target", lambda _, connection: self._dial_target(connection))
        monkeypatch.setattr(pump_module, "ControlChannel", lambda *_: PlayedControlChannel(self.reports))
        source, target = (ClusterConfig(alias=alias, bootstrap_servers=("127.0.0.1:1",)) for alias in "AB")
        flow = FlowConfig(source=source, target=target)
        routes = tuple(RouteOrder(source_topic="t", target_topic="A.t", partition=number) for number in LEADERS)
        order = FlowOrder(flow=flow, cluster_id="c", producer_id=1, producer_epoch=0, leader_rank=-1, routes=routes)
        whole = PumpOrder(epoch=1, task=0, incarnation="i", seconds=60, flows=(order,))
        self.run = _PumpRun(whole, order, self.loop, "a pump", 8 << 20)
        self.pump = self.run.flow_pump
        self.pump.control(ControlState())
        self.closed = False

    def _read(
        self,
        routes: Mapping[PartitionPair, object],
        ready: Callable[[Mapping[PartitionPair, PartitionReading | Refusal]], None],
    ) -> None:
        found = World(self.source).target.partition_reading(self.source, self.loop.now)
        assert isinstance(found, PartitionReading)
        ready({route: replace(found, target_leader=LEADERS[route.partition]) for route in routes})

    def _dial_source(self, connection: SourceConnection) -> None:
        session = FetchSession(
            FETCH_VERSION, client_id="us", max_wait_ms=500, min_bytes=1, max_bytes=1 << 20, partition_max_bytes=1 << 20
        )
        self.loop.post(lambda: connection.connected(Channel(self.source_broker.near, self.pool), session, 0.001))

    def _dial_target(self, connection: TargetConnection) -> None:
        self.loop.post(
            lambda: connection.connected(
                Channel(self.brokers[connection.broker].near, self.pool), PRODUCE_VERSION, 0.001
            )
        )

    def turn(self) -> None:
        self.pump.flush()
        self.loop.turn(0.02)
        for request in self.source_broker.requests(FetchRequest, FETCH_VERSION):
            self._serve_fetch(request)
        for leader, broker in self.brokers.items():
            for request in broker.requests(ProduceRequest, PRODUCE_VERSION):
                self.in_flight[leader].append([part.index for part in request.topic_data[0].partition_data])

    def turn_until(self, reached: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 20
        while not reached():
            assert time.monotonic() < deadline
            self.turn()

    def _serve_fetch(self, request: Any) -> None:
        """All that there is; of what there is not, the broker waits for more."""
        parts = [
            FetchAnswer.PartitionData(
                partition_index=part.partition,
                error_code=0,
                high_watermark=self.source.end,
                last_stable_offset=self.source.end,
                log_start_offset=0,
                records=self.source.fetch(part.fetch_offset, 4),
            )
            for topic in request.topics
            for part in topic.partitions
            if part.fetch_offset < self.source.end
        ]
        if parts:
            topic = FetchAnswer(topic_id=UUID(bytes=SOURCE_ID), partitions=parts)
            self.source_broker.answer(FetchResponse(session_id=0, error_code=0, responses=[topic]), FETCH_VERSION)

    def acknowledge(self, leader: int, errors: Mapping[int, int]) -> None:
        """All that is in flight to this broker: with these partitions' errors, the others as appended."""
        asked, self.in_flight[leader] = self.in_flight[leader], []
        for partitions in asked:
            parts = [
                ProduceAnswer.PartitionProduceResponse(
                    index=number,
                    error_code=errors.get(number, 0),
                    base_offset=-1 if number in errors else self.pump.copies[number].in_flight[0].downstream,
                    log_append_time_ms=-1,
                    log_start_offset=0,
                )
                for number in partitions
            ]
            topic = ProduceAnswer(topic_id=UUID(bytes=TARGET_ID), partition_responses=parts)
            self.brokers[leader].answer(ProduceResponse(responses=[topic]), PRODUCE_VERSION)

    @property
    def sent(self) -> set[int]:
        return {number for asked in self.in_flight.values() for partitions in asked for number in partitions}

    def records(self) -> list[int]:
        return [one.records for one in self.pump.receipts()]

    def close(self) -> list[Receipt]:
        """Once is enough."""
        if self.closed:
            return []
        self.closed = True
        receipts = self.run.close()
        self.loop.close()
        return receipts


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    made = Running(monkeypatch)
    yield made
    made.close()


@pytest.mark.parametrize("error", [47, 48, 90])
def test_a_fenced_pump_sends_nothing_more_to_any_broker(running: Running, error: int) -> None:
    """Its other partitions have more to send, at the broker that said so and at another one."""
    running.turn_until(lambda: running.sent == set(LEADERS))
    running.acknowledge(1, {0: error})
    running.turn_until(lambda: running.records()[1] == 10)
    running.acknowledge(2, {})
    running.turn_until(lambda: running.records()[2] == 10)
    for _ in range(10):
        running.turn()
    assert running.sent == set()
    assert running.records() == [0, 10, 10]
    assert all(copy.queue for copy in running.pump.copies[1:]), "there was more to send"

    why = f"A.t-0: {explanation(error)}"
    assert running.pump.fenced == why
    assert running.pump.receipts()[0].state == "parked"
    running.run.check()
    running.turn_until(lambda: running.pump.ended)
    running.run.tell_end()
    assert (running.reports[-1].ended, running.reports[-1].ended_because) == (True, why)
    assert all(one.in_doubt for one in running.close()), "who has fenced it may be alive"


def test_a_pump_that_is_not_fenced_goes_on_with_the_others(running: Running) -> None:
    """Another error is one partition's alone."""
    running.turn_until(lambda: running.sent == set(LEADERS))
    running.acknowledge(1, {0: 29})
    running.acknowledge(2, {})
    running.turn_until(lambda: running.sent == {1, 2})
    assert running.pump.fenced == ""
    assert [one.in_doubt for one in running.close()] == [False, True, True], "what is in flight"


def test_partitions_at_rest_are_neither_reported_nor_looked_at(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thousands of them would take a large part of a core."""
    looks: list[str] = []

    def look(flow: str, *given: Any) -> Receipt:
        looks.append(flow)
        return receipt_of(flow, *given)

    monkeypatch.setattr(flow_reports, "receipt_of", look)
    while not all(number == 40 for number in running.records()):
        running.turn_until(lambda: bool(running.sent))
        for leader in running.brokers:
            running.acknowledge(leader, {})
        running.turn()
    running.run.report()
    assert {one.records for one in running.reports[-1].receipts} == {40}
    running.run.report()
    looks.clear()
    running.run.report()
    assert (running.reports[-1].receipts, looks) == ((), [])
    assert (running.reports[-1].partitions, running.reports[-1].lag) == (3, 0)
    running.pump.control(ControlState())
    running.run.report()
    assert len(looks) == 3, "an operator's word may change each of them"
