"""A run of a pump whose brokers the test plays: it says when which answer comes."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal
from uuid import UUID

import pytest
from kafka.protocol.consumer import FetchRequest, FetchResponse
from kafka.protocol.producer import ProduceRequest, ProduceResponse
from model_broker import FRESH_MS, SOURCE_ID, TARGET_ID, Source
from model_pump import World

from sparkmirror.config import ClusterConfig, FetchConfig, FlowConfig
from sparkmirror.exact.durable.claim_log import ClaimLog
from sparkmirror.exact.durable.claims import Claim
from sparkmirror.exact.position.reader import PositionReader
from sparkmirror.exact.position.route import PartitionPair, PartitionReading, Refusal
from sparkmirror.kafka.cluster.topic_log import LogUnavailable
from sparkmirror.kafka.wire.buffers import FramePool
from sparkmirror.kafka.wire.channel import Channel
from sparkmirror.kafka.wire.fetch_session import FetchSession
from sparkmirror.pump import pump as pump_module
from sparkmirror.pump.dialer import Dialer
from sparkmirror.pump.loop import Loop
from sparkmirror.pump.messages.control import ControlState
from sparkmirror.pump.messages.moves import TaskWords
from sparkmirror.pump.messages.orders import FlowEnd, FlowOrder, FlowReport, PumpOrder, RouteOrder
from sparkmirror.pump.partition import PartitionCopy
from sparkmirror.pump.pump import _PumpRun
from sparkmirror.pump.source_connection import SourceConnection
from sparkmirror.pump.target_connection import TargetConnection
from sparkmirror.pump.task_teller import TaskTeller

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
        except OSError:  # nothing has come, or it has hung up
            return []
        found = []
        while len(self._came) >= 4 and len(self._came) >= 4 + (size := struct.unpack_from(">i", self._came)[0]):
            found.append(kind.decode(self._came[4 : 4 + size], version=version, header=True))
            self.correlation_ids.append(found[-1].header.correlation_id)
            self._came = self._came[4 + size :]
        return found

    def hang_up(self) -> None:
        self._far.close()

    def answer(self, response: Any, version: int) -> None:
        """The oldest request."""
        response.API_VERSION = version
        response.with_header(correlation_id=self.correlation_ids.pop(0))
        data = bytes(response.encode(header=True))
        self._far.sendall(struct.pack(">i", len(data)) + data)


class PlayedControlChannel:
    """Nothing is heard of the driver."""

    def close(self, _: float) -> None:
        """Nothing is on its way."""


class PlayedReportChannel:
    """What is told the driver."""

    def __init__(self, reports: list[FlowReport]) -> None:
        self.report = reports.append
        self.gap = False

    def take_gap(self) -> bool:
        gap, self.gap = self.gap, False
        return gap

    def close(self, _: float) -> None:
        """All was told."""


class PlayedRun:
    """A run of three partitions, of which two brokers lead the targets; the test answers what they are sent."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        *,
        attempt: int = 0,
        partitions: Sequence[int] = (0, 1, 2),
        isolation: Literal["read_uncommitted", "read_committed"] = "read_uncommitted",
        leader_rank: int = -1,
    ) -> None:
        self.loop = Loop()
        self.pool = FramePool(1 << 20, keep=2)
        self.source = Source([(10, FRESH_MS)] * 4)
        self.source_broker = Broker()
        self.brokers = {leader: Broker() for leader in set(LEADERS.values())}
        self.in_flight: dict[int, list[list[int]]] = {leader: [] for leader in self.brokers}
        """The partitions of each request that is not answered."""
        self.reports: list[FlowReport] = []
        monkeypatch.setattr(PositionReader, "read", lambda _, routes, ready: self._read(routes, ready))
        self.open_offsets = 0
        """Offsets at the source's end of a transaction that is open."""
        self.waits_ms: list[int] = []
        """How long the source may wait, by fetch."""
        self.readings: list[int] = []
        """Partitions of which the position was read."""
        self.ahead: list[PartitionPair] = []
        """What was read ahead."""
        self.claim: Callable[[Sequence[Claim]], None] = lambda _: None
        """What becomes of claims, in their own thread."""
        self.outdated = 0
        """How often the ledger was to be read again."""
        self.words: list[TaskWords] = []
        """What this task has told of moves."""
        monkeypatch.setattr(ClaimLog, "claim_each", lambda _, claims: self._claim_each(claims))
        monkeypatch.setattr(ClaimLog, "home", lambda *_: 0)
        monkeypatch.setattr(ClaimLog, "reach", lambda _: None)
        monkeypatch.setattr(PositionReader, "look_ahead", lambda _, routes: self._look_ahead(routes))
        monkeypatch.setattr(PositionReader, "came", lambda _: self._outdate())
        monkeypatch.setattr(TaskTeller, "reach", lambda _: None)
        monkeypatch.setattr(TaskTeller, "tell", lambda _, words, __: self.words.append(words))
        monkeypatch.setattr(Dialer, "dial_source", lambda _, connection: self._dial_source(connection))
        monkeypatch.setattr(Dialer, "dial_target", lambda _, connection: self._dial_target(connection))
        monkeypatch.setattr(pump_module, "ControlChannel", lambda *_: PlayedControlChannel())
        self.report_channel = PlayedReportChannel(self.reports)
        monkeypatch.setattr(pump_module, "ReportChannel", lambda _: self.report_channel)
        source, target = (ClusterConfig(alias=alias, bootstrap_servers=("127.0.0.1:1",)) for alias in "AB")
        flow = FlowConfig(source=source, target=target, fetch=FetchConfig(isolation_level=isolation))
        routes = tuple(RouteOrder(source_topic="t", target_topic="A.t", partition=number) for number in partitions)
        order = FlowOrder(
            flow=flow, cluster_id="c", producer_id=1, producer_epoch=0, leader_rank=leader_rank, routes=routes
        )
        whole = PumpOrder(epoch=1, task=0, incarnation="i", seconds=60, flows=(order,))
        if attempt:
            whole = whole.again(attempt)
            (order,) = whole.flows
        self.run = _PumpRun(whole, order, self.loop, "a pump", 8 << 20)
        self.pump = self.run.flow_pump
        if not attempt:
            self.pump.control(ControlState())
        self.closed = False

    def _read(
        self,
        routes: Mapping[PartitionPair, object],
        ready: Callable[[Mapping[PartitionPair, PartitionReading | Refusal]], None],
    ) -> None:
        self.readings += [route.partition for route in routes]
        found = World(self.source).target.partition_reading(self.source, self.loop.now)
        assert isinstance(found, PartitionReading)
        ready({route: replace(found, target_leader=LEADERS[route.partition]) for route in routes})

    def _claim_each(self, claims: Sequence[Claim]) -> dict[int, ConnectionError]:
        try:
            self.claim(claims)
        except LogUnavailable as error:
            return {0: error}
        return {}

    def _outdate(self) -> None:
        self.outdated += 1

    def _look_ahead(self, routes: Sequence[PartitionPair]) -> dict[PartitionPair, tuple[int, int]]:
        self.ahead += routes
        return {route: (1, LEADERS[route.partition]) for route in routes}

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
        """All that there is; of what there is not, the broker waits for more, if it may wait for long."""
        self.waits_ms.append(request.max_wait_ms)
        parts = [
            FetchAnswer.PartitionData(
                partition_index=part.partition,
                error_code=0,
                high_watermark=self.source.end + self.open_offsets,
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
        elif request.max_wait_ms < 100:
            self.end_waits()

    def acknowledge(self, leader: int, errors: Mapping[int, int]) -> None:
        """All that is in flight to this broker: with these partitions' errors, the others as appended."""
        asked, self.in_flight[leader] = self.in_flight[leader], []
        for partitions in asked:
            parts = [
                ProduceAnswer.PartitionProduceResponse(
                    index=number,
                    error_code=errors.get(number, 0),
                    base_offset=-1 if number in errors else self.copy_of(number).in_flight[0].downstream,
                    log_append_time_ms=-1,
                    log_start_offset=0,
                )
                for number in partitions
            ]
            topic = ProduceAnswer(topic_id=UUID(bytes=TARGET_ID), partition_responses=parts)
            self.brokers[leader].answer(ProduceResponse(responses=[topic]), PRODUCE_VERSION)

    def end_waits(self) -> None:
        """Answer the oldest fetch: there is nothing more."""
        self.source_broker.answer(FetchResponse(session_id=0, error_code=0, responses=[]), FETCH_VERSION)

    def hear(self, state: ControlState) -> None:
        self.run._hear(state, True)  # noqa: SLF001 - its control channel is not there

    def is_leaving(self, number: int) -> bool:
        return self.pump._moves.is_leaving(self.copy_of(number))  # noqa: SLF001 - nobody else asks

    def copy_of(self, number: int) -> PartitionCopy:
        return next(copy for copy in self.pump.copies if copy.route.partition == number)

    @property
    def sent(self) -> set[int]:
        return {number for asked in self.in_flight.values() for partitions in asked for number in partitions}

    def records(self) -> list[int]:
        return [one.records for one in self.pump.receipts()]

    def close(self) -> FlowEnd:
        """Once is enough."""
        if self.closed:
            return FlowEnd(flow=self.run.flow_pump.name)
        self.closed = True
        end = self.run.close()
        self.loop.close()
        return end
