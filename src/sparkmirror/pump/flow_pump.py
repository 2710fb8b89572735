"""Pump of one flow: connections to source and target, and each partition's steps.

All code runs in the loop's thread, and blocking work goes to `Background`.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import chain

from sparkmirror.clock import now_s, wall_ms
from sparkmirror.cluster.client import ClusterClient
from sparkmirror.cluster.error_codes import error_name
from sparkmirror.cluster.topic_configs import topic_configs
from sparkmirror.cluster.topic_log import TopicLog
from sparkmirror.config import ClusterConfig
from sparkmirror.durable.claim_log import SegmentLog
from sparkmirror.durable.claims import Segment, segments_topic
from sparkmirror.durable.losses import LossLedger, losses_topic
from sparkmirror.messages.control import ControlState
from sparkmirror.messages.figures import PartitionFigures
from sparkmirror.messages.orders import FlowOrder, Receipt, RouteOrder
from sparkmirror.position.cause import Cause
from sparkmirror.position.reader import PositionReader
from sparkmirror.position.route import Bearings, PartitionPair, Refusal, Remembered
from sparkmirror.position.settling import Superseded
from sparkmirror.pump.background import Background
from sparkmirror.pump.batch import Claim
from sparkmirror.pump.broker_connection import BrokerConnection
from sparkmirror.pump.dialer import Dialer
from sparkmirror.pump.intake import Intake
from sparkmirror.pump.limits import FETCH_BYTES, SMALLEST_FETCH_BYTES, Lane, Limits
from sparkmirror.pump.loop import Loop
from sparkmirror.pump.partition import PartitionCopy, Stage
from sparkmirror.pump.receipt_of import STATES, receipt_of
from sparkmirror.pump.refused import LIMITS, Refused
from sparkmirror.pump.source_connection import SourceConnection
from sparkmirror.pump.tally import Tally
from sparkmirror.pump.target_connection import TargetConnection
from sparkmirror.pump.verdicts import ErrorAction, explanation, verdict
from sparkmirror.wire.batches import CODECS
from sparkmirror.wire.buffers import Frame, FramePool
from sparkmirror.wire.fetch import FetchedPartition
from sparkmirror.wire.produce import Ack

ANSWER_OVERHEAD_BYTES = 256 << 10
"""Room in a buffer beside the records; a larger answer's memory is never reused."""

MOST_IN_FLIGHT = 5
"""Brokers recognise a repeat only of the last five batches (docs/exactness.md)."""

QUEUE_BYTES = 2 << 20
"""Bytes queued for sending at which fetching of a partition stops."""

STAMPING = "message.timestamp.type"

CONFIRM_S = 1.0
"""Interval of writing confirmed claims, their greatest distance behind the copy."""

SLOW_S = 5.0
"""Time after which a reading, connection or throttle is worth telling as a reason."""

PREPARE_S = 0.2
"""Time for making batches ready, as answers come and once more after sending.

Then comes another turn of the loop. A step that has begun, mostly one batch, is finished.
"""

POLICIES_S = 300.0
"""Interval of reading cleanup policies again: a newly compacted topic needs R19."""


class FlowPump:
    """Pump of one flow in one task, from the order to the receipts."""

    def __init__(self, order: FlowOrder, loop: Loop, *, memory_bytes: int) -> None:
        flow = order.flow
        self.order = order
        self.name = flow.name
        self.tally = Tally()
        self.fenced = ""
        """Reason why the pump may never write again; empty: the pump may write."""
        self._loop = loop
        self._memory_bytes = memory_bytes
        block = min(FETCH_BYTES, max(SMALLEST_FETCH_BYTES, memory_bytes // 2)) + ANSWER_OVERHEAD_BYTES
        self._pool = FramePool(block, keep=max(2, memory_bytes // 2 // block))
        source, target = flow.source.for_copying, flow.target.for_copying
        self._source = ClusterClient(_as(source, flow.fetch.client_id), f"{self.name}|sparkmirror-fetch")
        self._target = ClusterClient(_as(target, flow.produce.client_id), f"{self.name}|sparkmirror-produce")
        segments_client = ClusterClient(flow.target, f"{self.name}|sparkmirror-segments")
        self._segments = SegmentLog(TopicLog(segments_client, segments_topic(flow.source.alias)))
        ledger = LossLedger(TopicLog(segments_client, losses_topic(flow.source.alias)))
        claims_client = ClusterClient(flow.target, f"{self.name}|sparkmirror-claims")
        self._claims = SegmentLog(TopicLog(claims_client, segments_topic(flow.source.alias)))
        self._claiming = Background(loop, f"sparkmirror claims {self.name}", (claims_client,))
        """Thread for claims only, since a live tail with gaps waits for claims."""
        clients = (self._source, self._target, segments_client)
        self._background = Background(loop, f"sparkmirror {self.name}", clients)
        self._dialer = Dialer(flow, loop, self._source, self._target, self._pool, self._fetch_bytes)
        self._reader = PositionReader(
            self._source, self._target, self._segments, ledger, flow.loss, order.identity, now_s
        )
        self._refused: dict[PartitionPair, Refusal] = {}
        self._source_connections: dict[Lane, SourceConnection] = {}
        self._target_connections: dict[int, TargetConnection] = {}
        self._to_read: list[PartitionCopy] = []
        self._to_claim: dict[PartitionCopy, None] = {}
        self._to_confirm: dict[PartitionCopy, list[Segment]] = {}
        self._confirm_at = 0.0
        self._policies_at = loop.now + POLICIES_S
        self._fetching: dict[PartitionCopy, SourceConnection] = {}
        self._unprepared: dict[PartitionCopy, None] = {}
        """Partitions with an answer not wholly made ready, in the order of their turns."""
        self._waking: set[Lane] = set()
        """Lanes with a running timer until the caps allow a fetch."""
        self._alarms: dict[PartitionCopy, float] = {}
        """Time of the next look at each waiting partition."""
        self._control: ControlState | None = None  # pauses and caps last over restarts
        """State of the control topic; None: not read, so nothing is fetched yet."""
        self._began = loop.now
        self._limits = Limits(self._pool, memory_bytes, order.share)
        self._ending = False
        self._end_deadline = 0.0
        self._incarnation = random.getrandbits(62)
        self.copies: list[PartitionCopy] = []
        self._by_source: dict[tuple[str, int], PartitionCopy] = {}
        self._unfinished: set[PartitionCopy] = set()
        loop.on_suspended.append(self._on_suspended)
        self._reader.moved = {route.source_topic for route in order.routes if route.done_at is not None}
        self._take_on(order.routes)

    def add(self, routes: Iterable[RouteOrder], share: float) -> None:
        """Copy more partitions, if not copied yet; `share` is the new share of the caps."""
        self._limits.share = share
        if not self._ending:
            self._take_on([route for route in routes if route.route.source not in self._by_source])

    def _take_on(self, routes: Iterable[RouteOrder]) -> None:
        flow = self.order.flow
        for route in routes:
            if route.refused:
                self._refused[route.route] = Refusal(route.refused, cause=Cause.TAKEOVER)
            copy = PartitionCopy(
                route.route,
                self.order.identity,
                self._incarnation,
                until=route.until,
                from_latest=flow.fetch.auto_offset_reset == "latest",
                unclean=self.order.unclean,
                fresh_after_ms=wall_ms() - self.order.state_lifetime_ms // 2,
                intake=Intake(
                    read_committed=flow.fetch.isolation_level == "read_committed",
                    codec=CODECS.index(flow.produce.compression_type) or None,
                    merge_tiny=flow.merge_tiny_batches,
                ),
                max_in_flight=min(flow.produce.max_in_flight_requests_per_connection, MOST_IN_FLIGHT),
                now=self._loop.now,
                done_at=route.done_at,
                remembered=Remembered(route.passed, (bytes.fromhex(route.target_topic_id), route.appended)),
            )
            self.copies.append(copy)
            self._by_source[copy.route.source] = copy
            self._settle(copy)

    # --- one turn of the loop -------------------------------------------------------------------

    def flush(self) -> None:
        """Start the work that the last turn has brought up; keep the connections busy."""
        if self._to_read:
            copies, self._to_read = self._to_read, []
            self._read_positions(copies)
        if self._to_claim:
            claims = [(copy, claim) for copy in self._to_claim for claim in copy.backlog.claims]
            for copy in self._to_claim:
                copy.backlog.claims.clear()
            self._to_claim.clear()
            self._claiming.do(
                lambda: self._claims.claim([claim.segment for _, claim in claims]),
                lambda _: self._on_claimed(claims),
                lambda error: self._on_unclaimed(claims, error),
            )
        if self._to_confirm and self._loop.now >= self._confirm_at:
            self._confirm()
        for target_connection in list(self._target_connections.values()):  # a broken one leaves the dict
            target_connection.pump()
        if not self._ending:
            for source_connection in list(self._source_connections.values()):
                source_connection.pump()
        if self._unprepared:
            self._prepare_more()

    def _read_positions(self, copies: Sequence[PartitionCopy]) -> None:
        refused = {copy: self._refused[copy.route] for copy in copies if copy.route in self._refused}
        self._on_read(refused)
        by_route = {copy.route: copy for copy in copies if copy not in refused}
        remembered = {route: copy.remembered for route, copy in by_route.items()}

        def hand_out(results: Mapping[PartitionPair, Bearings | Refusal]) -> None:
            self._loop.post(lambda: self._on_read({by_route.pop(route): result for route, result in results.items()}))

        self._background.do(
            lambda: self._reader.read(remembered, hand_out),
            lambda _: None,
            lambda error: self._on_unread(list(by_route.values()), error),
        )

    def check(self) -> None:
        """Look now and then for overdue answers, and for newly compacted topics."""
        if self._loop.now >= self._policies_at:
            self._policies_at = self._loop.now + POLICIES_S
            self._background.do(self._reader.changed_policies, self._on_changed_policies, lambda _: None)
        fetch_timeout = (self.order.flow.fetch.fetch_max_wait_ms + self.order.flow.fetch.request_timeout_ms) / 1000
        for source_connection in list(self._source_connections.values()):
            source_connection.check(fetch_timeout)
        for target_connection in list(self._target_connections.values()):
            target_connection.check(self.order.flow.produce.request_timeout_ms / 1000)

    def _settle(self, copy: PartitionCopy) -> None:
        """Start the steps that a partition's stage asks for."""
        now = self._loop.now
        if copy.until is not None and copy.stage in (Stage.DONE, Stage.PARKED):
            self._unfinished.discard(copy)
        else:
            self._unfinished.add(copy)
        if self._ending:
            self._stop_fetching(copy)
            return
        if copy.wants_reading(now):
            copy.ask(now)
            self._to_read.append(copy)
        elif copy.stage in (Stage.SEEKING, Stage.PARKED) and self._alarms.get(copy) != copy.seek_at:
            self._alarms[copy] = copy.seek_at
            self._loop.at(copy.seek_at, lambda: self._look_again(copy))
        if copy.backlog.claims:
            self._to_claim[copy] = None
        if copy.confirmed:
            self._to_confirm.setdefault(copy, []).extend(copy.confirmed)
            copy.confirmed.clear()
        if copy.may_be_stamped:
            copy.may_be_stamped = False
            self._ask_stamping(copy)
        if copy.refused is not None:
            self._ask_limits(copy, copy.refused)
            copy.refused = None
        if copy.sendable(now) and copy.bearings is not None:
            self._target_connection(copy.bearings.target_leader).offer(copy)
        self._settle_fetching(copy)

    def _look_again(self, copy: PartitionCopy) -> None:
        if copy.wants_reading(self._loop.now):
            self._settle(copy)

    def _settle_fetching(self, copy: PartitionCopy) -> None:
        position = copy.fetch_position()
        connection = self._fetching.get(copy)
        held = self._control is None or self._control.is_paused(copy.route.source_topic)
        if held or (position is None and not copy.backlog.unprepared):
            self._stop_fetching(copy)
            return
        if position is None:
            if connection is not None:
                connection.hold_back(copy.route.source)
            return
        assert copy.bearings is not None  # noqa: S101 - a fetch position comes from bearings
        broker = copy.bearings.source_leader if copy.read_from is None else copy.read_from
        lane = Lane(broker, copy.backfilling)
        if connection is not None and connection.lane != lane:
            self._stop_fetching(copy)
            connection = None
        if connection is None:
            connection = self._fetching[copy] = self._source_connection(lane)
        if copy.backlog.bytes < QUEUE_BYTES:
            connection.want(copy.route.source, copy.bearings.source_topic_id, position)
        else:
            connection.hold_back(copy.route.source)

    def _stop_fetching(self, copy: PartitionCopy) -> None:
        connection = self._fetching.pop(copy, None)
        if connection is not None:
            connection.forget(copy.route.source)

    # --- what comes back ------------------------------------------------------------------------

    def _on_read(self, results: Mapping[PartitionCopy, Bearings | Refusal]) -> None:
        for copy, result in results.items():
            if isinstance(result, Refusal):
                copy.refuse(result, self._loop.now)
            else:
                self._confirm_only(copy, result.position.sequence)
                copy.take(result, self._loop.now)
            self._settle(copy)

    def _on_changed_policies(self, topics: Set[str]) -> None:
        for copy in self.copies:
            if copy.route.source_topic in topics and copy.stage is Stage.RUNNING:
                copy.doubt("the source topic's cleanup.policy has changed", self._loop.now)
                self._settle(copy)

    def _confirm_only(self, copy: PartitionCopy, end: int) -> None:
        """Keep for confirmation only claims up to `end`; records beyond may be lost since."""
        claims = self._to_confirm.pop(copy, ())
        if kept := [claim for claim in claims if claim.sequence + claim.announced <= end]:
            self._to_confirm[copy] = kept

    def _on_unread(self, copies: Sequence[PartitionCopy], error: Exception) -> None:
        if isinstance(error, Superseded):
            self.fenced = str(error)
        for copy in copies:
            copy.refuse(Refusal(str(error), transient=True, cause=Cause.UNREACHABLE), self._loop.now)
            self._settle(copy)

    def _on_claimed(self, claims: Iterable[tuple[PartitionCopy, Claim]]) -> None:
        for copy, claim in claims:
            claim.durable = True
            self._settle(copy)

    def _confirm(self) -> None:
        """Write acknowledged claims again, confirmed; failures cost a look at the log."""
        segments = list(chain.from_iterable(self._to_confirm.values()))
        self._to_confirm.clear()
        self._confirm_at = self._loop.now + CONFIRM_S
        self._claiming.do(lambda: self._claims.claim(segments), lambda _: None, lambda _: None)

    def _ask_stamping(self, copy: PartitionCopy) -> None:
        """Ask for the timestamp type; the same thread reads the position afterwards."""

        topic = copy.route.target_topic

        def then(settings: Mapping[str, Mapping[str, str]]) -> None:
            if settings[topic].get(STAMPING) == "LogAppendTime":
                copy.stamped()

        self._background.do(lambda: topic_configs(self._target, (topic,), (STAMPING,)), then, lambda _: None)

    def _ask_limits(self, copy: PartitionCopy, why: Refused) -> None:
        self._background.do(
            lambda: topic_configs(self._target, (why.target_topic,), LIMITS[why.error]),
            lambda settings: copy.limited(why, settings[why.target_topic]),
            lambda _: None,
        )

    def _on_unclaimed(self, claims: Iterable[tuple[PartitionCopy, Claim]], error: Exception) -> None:
        for copy in {copy: None for copy, _ in claims}:
            copy.doubt(f"its claim could not be written: {error}", self._loop.now)
            self._settle(copy)

    def _on_fetched(self, part: FetchedPartition, frame: Frame) -> None:
        copy = self._by_source.get((part.topic, part.partition))
        if copy is None or copy not in self._fetching:
            return
        position = copy.fetch_position()
        if position is None or part.asked_offset != position.offset:
            self._settle(copy)
            return
        if part.error:
            reason = f"source: {error_name(part.error)}, {explanation(part.error)}"
            copy.read_from = None
            copy.act_on(part.error, reason, self._loop.now)
        elif part.preferred_replica >= 0:
            copy.read_from = part.preferred_replica
            self._stop_fetching(copy)
        elif part.diverging is not None:
            copy.doubt(f"the source's log was cut at {part.diverging[1]}", self._loop.now)
        else:
            self._limits.passed(len(part.records), backfill=copy.backfilling)
            copy.feed(frame, part.records, part.high_watermark, part.aborted)
            until_s = self._loop.now + PREPARE_S
            its_turn = not (copy.backfilling and self._unprepared) and now_s() < until_s
            if its_turn and self._may_prepare(copy):
                self._prepare(copy, until_s)
            if copy.backlog.unprepared:
                self._unprepared[copy] = None
        self._settle(copy)

    def _prepare(self, copy: PartitionCopy, until_s: float) -> None:
        try:
            copy.prepare(self._loop.now, lambda: now_s() >= until_s or not self._may_prepare(copy))
        except ValueError as error:
            copy.park(f"source: the fetched data can't be read: {error}", self._loop.now, Cause.UNREADABLE)

    def _may_prepare(self, copy: PartitionCopy) -> bool:
        """True if memory allows making batches of the answer, which may be far larger."""
        idle = not copy.queue and not copy.in_flight
        if self._limits.may_prepare(backfill=copy.backfilling, idle=idle):
            return True
        return idle and not any(other.queue or other.in_flight for other in self.copies)

    def _prepare_more(self) -> None:
        """Prepare more of the last answers: live tail first, some backfill in each turn."""
        until_s = min(now_s(), self._loop.now + PREPARE_S) + PREPARE_S
        went_on = self._go_on([copy for copy in self._unprepared if not copy.backfilling], until_s)
        went_on += self._go_on([copy for copy in self._unprepared if copy.backfilling], until_s)
        if went_on:
            self._loop.at(self._loop.now, lambda: None)  # the next turn must not wait, to send the ready batches

    def _go_on(self, copies: Sequence[PartitionCopy], until_s: float) -> int:
        """Prepare at least a step if memory allows; return how many partitions went on."""
        number = 0
        for copy in copies:
            if number and now_s() >= until_s:
                break
            if not self._may_prepare(copy):
                continue
            number += 1
            del self._unprepared[copy]
            self._prepare(copy, until_s)
            if copy.backlog.unprepared:
                self._unprepared[copy] = None
            self._settle(copy)
        return number

    def _on_ack(self, copy: PartitionCopy, ack: Ack) -> None:
        if verdict(ack.error) is ErrorAction.STOP:
            self.fenced = f"{copy.route.target_topic}-{copy.route.partition}: {explanation(ack.error)}"
        batch = copy.acknowledge(ack, self._loop.now)
        if batch is not None:
            self.tally.acknowledged(copy.route.source, batch, self._loop.now)
        self._settle(copy)

    def _on_fetch_refused(self, connection: SourceConnection, error: int) -> None:
        """Apply the repeated refusal of whole requests to each partition of the connection."""
        for copy in [copy for copy, its_connection in self._fetching.items() if its_connection is connection]:
            copy.read_from = None
            copy.act_on(error, connection.refusal, self._loop.now)
            self._settle(copy)

    def _on_source_lost(self, connection: SourceConnection, reason: str) -> None:
        self._source_connections.pop(connection.lane, None)
        for copy in [copy for copy, its_connection in self._fetching.items() if its_connection is connection]:
            self._fetching.pop(copy)
            copy.read_from = None
            copy.doubt(reason, self._loop.now, Cause.UNREACHABLE)
            self._settle(copy)

    def _on_target_lost(self, connection: TargetConnection, reason: str, copies: list[PartitionCopy]) -> None:
        self._target_connections.pop(connection.broker, None)
        # Another pump may look at the next leader's log before this pump.
        for copy in [copy for copy in self._to_confirm if copy.is_led_by(connection.broker)]:
            del self._to_confirm[copy]
        for copy in copies:
            copy.lost_in_flight(self._loop.now, reason)
            self._settle(copy)
        # A partition with nothing to send may have lost acknowledged records: the next leader may lack these.
        for copy in self.copies:
            if copy.stage is Stage.RUNNING and copy.is_led_by(connection.broker) and not copy.in_flight:
                copy.doubt(reason, self._loop.now, Cause.UNREACHABLE)
                self._settle(copy)

    def _on_suspended(self, busy: bool) -> None:
        """Give up all target connections; if only `busy`, those with unsent bytes."""
        for connection in list(self._target_connections.values()):
            if connection.unsent or not busy:  # unsent bytes are too old by now
                connection.failed("this process was too busy to send" if busy else "this process was suspended")

    # --- connections ----------------------------------------------------------------------------

    def _source_connection(self, lane: Lane) -> SourceConnection:
        connection = self._source_connections.get(lane)
        if connection is None:
            connection = self._source_connections[lane] = SourceConnection(
                lane,
                self._loop,
                dial=self._dialer.dial_source,
                renew=self._dialer.renew,
                on_fetched=self._on_fetched,
                on_refused=self._on_fetch_refused,
                on_lost=self._on_source_lost,
                may_fetch=self._may_fetch,
                meter=self.tally.source,
                max_wait_ms=self.order.flow.fetch.fetch_max_wait_ms,
            )
            connection.max_bytes = self._limits.fetch_bytes(backfill=lane.backfill)
        return connection

    def _target_connection(self, broker: int) -> TargetConnection:
        connection = self._target_connections.get(broker)
        if connection is None:
            settings = self.order.flow.produce
            connection = self._target_connections[broker] = TargetConnection(
                broker,
                self._loop,
                client_id=self._target.client_id,
                timeout_ms=settings.request_timeout_ms,
                max_request_bytes=settings.max_request_size,
                max_in_flight=min(settings.max_in_flight_requests_per_connection, MOST_IN_FLIGHT),
                dial=self._dialer.dial_target,
                renew=self._dialer.renew,
                on_ack=self._on_ack,
                on_unsendable=self._settle,
                on_lost=self._on_target_lost,
                may_send=self._may_send,
                meter=self.tally.target,
            )
        return connection

    # --- limits ---------------------------------------------------------------------------------

    def _fetch_bytes(self) -> int:
        """Return the bytes for one fetch; all source connections share the memory."""
        share = self._memory_bytes // 2 // max(len(self._source_connections), 1)
        return max(SMALLEST_FETCH_BYTES, min(self.order.flow.fetch.fetch_max_bytes, FETCH_BYTES, share))

    def _may_fetch(self, lane: Lane) -> bool:
        if self._ending or not self._limits.has_memory(backfill=lane.backfill):
            return False
        wait_s = self._limits.wait_s(backfill=lane.backfill)
        if wait_s and lane not in self._waking:
            self._waking.add(lane)
            self._loop.at(self._loop.now + wait_s, lambda: self._waking.discard(lane))  # the flush afterwards fetches
        return not wait_s

    def _may_send(self) -> bool:
        return not self._ending and not self.fenced

    # --- commands -------------------------------------------------------------------------------

    def control(self, state: ControlState) -> None:
        """Act on the control topic: pauses, caps, and topics with moved writers."""
        self._control = state
        self._limits.set_rates(state.bytes_per_second, state.backfill_bytes_per_second)
        for connection in self._source_connections.values():
            connection.max_bytes = self._limits.fetch_bytes(backfill=connection.lane.backfill)
        self._reader.moved = state.done.keys()
        for copy in self.copies:
            copy.end_at(state.end_of(copy.route.source_topic, copy.route.partition), self._loop.now)
            self._settle(copy)

    def end(self, deadline_s: float) -> None:
        """Fetch and send no more; wait for acknowledgements until the deadline."""
        if not self._ending:
            self._ending = True
            self._end_deadline = self._loop.now + deadline_s
            self._unprepared.clear()
            for copy in self.copies:
                self._stop_fetching(copy)

    @property
    def ended(self) -> bool:
        """True if the flow is ending, with no request in flight or the deadline over."""
        in_flight = any(connection.in_flight for connection in self._target_connections.values())
        return self._ending and (self._loop.now > self._end_deadline or not in_flight)

    @property
    def finished(self) -> bool:
        """True if all routes have an end (`until`), and all are done or parked."""
        return not self._unfinished

    def receipts(self) -> list[Receipt]:
        """Return the present receipt of each partition."""
        return [self._receipt(copy) for copy in self.copies]

    def _receipt(self, copy: PartitionCopy) -> Receipt:
        if copy.stage is Stage.RUNNING and self._control and self._control.is_paused(copy.route.source_topic):
            return receipt_of(self.name, copy, "waiting", "paused", Cause.PAUSED)
        reason, cause = (copy.reason, copy.cause) if copy.reason else self._waits_for(copy)
        return receipt_of(self.name, copy, STATES[copy.stage], reason, cause)

    def figures(self, receipts: Iterable[Receipt]) -> list[PartitionFigures]:
        """Return the figures of the receipts' partitions."""
        copies = [self._by_source[receipt.source_topic, receipt.partition] for receipt in receipts]
        return [self.tally.figures(copy.route.source, copy.oldest_ms, self._loop.now) for copy in copies]

    def _waits_for(self, copy: PartitionCopy) -> tuple[str, Cause]:
        """Return the reason and the cause of a long wait, if any."""
        if copy.asked_at is not None and self._loop.now - copy.asked_at > SLOW_S:
            return "its position is being read", Cause.POSITION
        if self._control is None and self._loop.now - self._began > SLOW_S:
            return "what is paused and capped is not known yet: the flow's control topic is being read", Cause.POSITION
        source_connection = self._fetching.get(copy)
        if source_connection is not None and source_connection.refusal:
            return source_connection.refusal, Cause.BROKER
        connections: list[BrokerConnection | None] = [source_connection]
        if copy.queue and copy.bearings is not None:
            connections.insert(0, self._target_connections.get(copy.bearings.target_leader))
        for connection in filter(None, connections):
            if connection.throttled_s > SLOW_S:
                asked = f"it is asked again in {connection.throttled_s:.0f} s"
                return f"{connection.peer} throttles us (a quota there): {asked}", Cause.THROTTLED
            if connection.dialing_s > SLOW_S:
                return f"{connection.peer} is being connected to", Cause.UNREACHABLE
        return "", Cause.NONE

    def close(self) -> None:
        for source_connection in self._source_connections.values():
            source_connection.close()
        for target_connection in self._target_connections.values():
            target_connection.close()
        for copy in self.copies:
            copy.give_up()
        self._pool.clear()
        self._claiming.close()
        self._dialer.close()
        self._background.close()


def _as(cluster: ClusterConfig, client_id: str) -> ClusterConfig:
    return cluster.model_copy(update={"client_id": client_id}) if client_id else cluster
