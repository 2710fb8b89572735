"""One flow's pump, between partitions and the collaborators that do the work.

Each event goes to a partition, and the partition's `Ready` tells the work for the collaborators. All code runs in the
loop's thread, and blocking work goes to `Background`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

from sparkmirror.exact.durable.claims import home_partition
from sparkmirror.exact.position.cause import Cause
from sparkmirror.exact.position.route import PartitionReading, Refusal
from sparkmirror.kafka.cluster.error_names import error_name
from sparkmirror.kafka.wire.buffers import Frame, FramePool
from sparkmirror.kafka.wire.fetch_session import FetchedPartition
from sparkmirror.kafka.wire.produce import Ack
from sparkmirror.kafka.wire.topic_ids import NO_ID
from sparkmirror.pump.claim_writer import ClaimWriter
from sparkmirror.pump.copies import PartitionCopies
from sparkmirror.pump.dialer import Dialer
from sparkmirror.pump.flow_clients import FlowClients
from sparkmirror.pump.flow_reports import FlowNews, FlowReports
from sparkmirror.pump.idle_watch import IdleWatch
from sparkmirror.pump.limits import Limits
from sparkmirror.pump.look_ahead import LookAhead
from sparkmirror.pump.loop import Loop
from sparkmirror.pump.memory_budget import MemoryBudget
from sparkmirror.pump.messages.control import ControlState, TryNow
from sparkmirror.pump.messages.figures import LineFigures, PartitionFigures
from sparkmirror.pump.messages.orders import FlowOrder, Receipt, RouteOrder
from sparkmirror.pump.moved_routes import MovedRoutes
from sparkmirror.pump.partition import PartitionCopy
from sparkmirror.pump.preparation import Preparation
from sparkmirror.pump.readings import PositionReadings
from sparkmirror.pump.source_connections import SourceConnections
from sparkmirror.pump.stage import Stage
from sparkmirror.pump.tally import Tally
from sparkmirror.pump.target_connections import TargetConnections
from sparkmirror.pump.task_teller import TaskTeller
from sparkmirror.pump.verdicts import ErrorAction, explanation, verdict


class FlowPump:
    """One flow's pump in one task, from the order to the receipts."""

    def __init__(self, order: FlowOrder, loop: Loop, *, memory_bytes: int, task: int = 0, attempt: int = 0) -> None:
        flow = order.flow
        self.name = flow.name
        self.tally = Tally()
        self.fenced = ""
        """Reason why the pump may never write again; empty: the pump may write."""
        self._loop = loop
        memory = MemoryBudget(memory_bytes)
        self._pool = FramePool(memory.block, memory.blocks, most=memory.most)
        self._limits = Limits(self._pool, memory, order.share)
        self.clients = FlowClients(flow)
        self._homes = order.homes
        self._partitions = PartitionCopies(order)
        self._claims = ClaimWriter(
            flow,
            loop,
            self.clients.claims,
            on_claimed=self._on_claimed,
            on_unclaimed=self._on_unclaimed,
            on_confirmed=self._on_confirmed,
            on_cut=self._on_cut,
            homes=order.homes,
        )
        self.readings = PositionReadings(
            order,
            loop,
            self.clients,
            on_read=self._on_read,
            on_superseded=self._on_superseded,
            on_changed_policies=self._on_changed_policies,
        )
        self._dialer = Dialer(flow, loop, self.clients.source, self.clients.target, self._pool)
        self.sources = SourceConnections(
            flow,
            loop,
            self._dialer,
            self._limits,
            self.tally.source,
            memory,
            on_fetched=self._on_fetched,
            on_refused=self._on_fetch_refused,
            on_lost=self._on_source_lost,
        )
        self._targets = TargetConnections(
            flow,
            loop,
            self._dialer,
            self.clients.target.client_id,
            self.tally.target,
            memory,
            on_ack=self._on_ack,
            on_unsendable=self._begin_work,
            on_lost=self._on_target_lost,
            may_send=self._may_send,
        )
        self._preparation = Preparation(loop, self._limits, self._partitions.all, self._begin_work)
        self._idle = IdleWatch(flow.name, loop, self.clients.idle, self._partitions.all, self._on_idle_doubt)
        self._reports = FlowReports(self.name, loop, self._partitions, self.tally, self.sources, self._targets)
        self._ahead = LookAhead(loop, self.readings, self._claims, self.sources, self._targets)
        self._moves = MovedRoutes(
            loop,
            TaskTeller(flow, loop),
            task,
            attempt,
            self._partitions.of,
            unclean=order.unclean,
            on_leaving=self._begin_work,
            on_coming=self._ahead.begin,
            on_released=self._on_released,
            on_passed=self._reports.pass_on,
        )
        self._withheld: tuple[RouteOrder, ...] = ()
        """The order's routes until it is known which ones have moved since."""
        self._held: dict[str, bool] = {}
        """Topics that are paused or not, by the control topic's present state."""
        self._read_committed = flow.fetch.isolation_level == "read_committed"
        self._control: ControlState | None = None
        """The control topic's state; None: not read, so nothing is fetched yet."""
        self._obeyed: TryNow | None = None
        """Newest word to try parked partitions again."""
        self._alarms: dict[PartitionCopy, float] = {}
        """Time of the next look at each waiting partition."""
        self._end_deadline: float | None = None
        """The flow's latest end; None: the flow is not ending."""
        loop.on_suspended.append(self._targets.suspended)
        self.readings.writers_moved(
            {route.route.source: route.done_at for route in order.routes if route.done_at is not None}
        )
        if self._moves.has_begun:
            self._take_on(order.routes)
        else:
            self._withheld = order.routes

    @property
    def copies(self) -> list[PartitionCopy]:
        """All the partitions' copies, in the order of their routes."""
        return [*self._partitions.all]

    def add(self, routes: Iterable[RouteOrder]) -> None:
        """Copy more partitions, if not copied yet and not moved since."""
        if self._end_deadline is None and self._moves.has_begun:
            self._take_on(route for route in routes if not self._moves.is_moved(route.route.source))

    def _take_on(
        self, routes: Iterable[RouteOrder], *, unclean: bool = False, known: PartitionReading | None = None
    ) -> None:
        new = [route for route in routes if self._partitions.of(route.route.source) is None]
        unclean = unclean or self._moves.may_have_rivals
        self.readings.know(new)
        for copy in self._partitions.add(new, self._loop.now, unclean=unclean):
            done_at = None if self._control is None else self._control.end_of(*copy.route.source)
            if done_at is not None:  # the driver may not have heard of it when it made the route
                copy.end_at(done_at, self._loop.now)
            if known is not None:
                copy.ask(self._loop.now)
                copy.take(known, self._loop.now)
            self._begin_work(copy)

    def _on_released(self, route: RouteOrder, unclean: bool, told: PartitionReading | None) -> None:
        self.readings.reader.came()
        known = None if unclean or told is None else self.readings.reader.with_policy(told, route.source_topic)
        self._take_on([route], unclean=unclean, known=known)

    def follow_moves(self, state: ControlState, incarnation: str, round_number: int, task: int) -> None:
        """Release partitions and copy others, as the driver's moves say.

        The task's newest share of the caps counts, too.
        """
        share = state.share_of(task, incarnation, round_number)
        if share is not None:
            self._limits.share = share
        if self._end_deadline is None:
            self._moves.follow(state, incarnation, round_number)
            if self._moves.has_begun:
                withheld, self._withheld = self._withheld, ()
                self.add(withheld)

    @property
    def has_rival(self) -> bool:
        """True if another attempt, or a task that a partition moved from, may be at work."""
        return self._moves.moved_in_doubt

    @property
    def may_be_written_to(self) -> bool:
        """True if other attempts' batches, or unacknowledged ones, may arrive (R5)."""
        return self.has_rival or any(copy.may_be_written_to(self._loop.now) for copy in self._partitions.all)

    # --- one turn of the loop -------------------------------------------------------------------

    def flush(self) -> None:
        """Start the work that the last turn has brought up; keep the connections busy."""
        self.readings.flush()
        self._claims.flush()
        self._targets.flush()
        self.sources.flush()
        self._preparation.flush()
        self._ahead.flush()

    def check(self) -> None:
        """Look now and then for overdue answers, and for newly compacted topics."""
        self.readings.check()
        self._idle.check()
        self._claims.check()
        self.sources.check()
        self._targets.check()

    def _begin_work(self, copy: PartitionCopy) -> None:
        leaving = self._moves.is_leaving(copy)
        if copy.released or (leaving and self._leave_if_idle(copy)):
            return
        self._reports.touched.add(copy)
        ready = copy.ready(self._loop.now)
        unfinished = self._partitions.unfinished
        if ready.over is (copy in unfinished):
            (unfinished.discard if ready.over else unfinished.add)(copy)
        if self._end_deadline is not None:
            self.sources.stop(copy)
            return
        if ready.read:
            copy.ask(self._loop.now)
            self.readings.want(copy)
        elif ready.look_again_at is not None and self._alarms.get(copy) != ready.look_again_at:
            self._alarms[copy] = ready.look_again_at
            self._loop.at(ready.look_again_at, lambda: self._begin_work(copy))
        if ready.claims or copy in self._claims.wanted:
            self._claims.want(copy, ready.claims)
        if ready.confirm:
            self._claims.confirm(copy, ready.confirm)
        if ready.question is not None:
            self.readings.ask(copy, ready.question)
        if copy.trouble.cause is Cause.NOT_AUTHORIZED:
            self.readings.explain_rights(copy)
        if ready.send_to is not None:
            self._targets.offer(copy, ready.send_to)
        held = leaving or self._is_held(copy.route.source_topic)
        self.sources.follow(copy, None if held else ready.fetch)
        if leaving:
            self._leave_if_idle(copy)

    def _is_held(self, topic: str) -> bool:
        """True if a topic is paused, or the control topic is not read yet.

        Pauses last over restarts.
        """
        held = self._held.get(topic)
        if held is None:
            held = self._held[topic] = self._control is None or self._control.is_paused(topic)
        return held

    def _leave_if_idle(self, copy: PartitionCopy) -> bool:
        """Release a partition if none of its batches is on its way; True if released."""
        self.sources.stop(copy)
        is_settled = self._claims.settle(copy)
        if not (is_settled and copy.is_idle and self._may_send()):
            return False
        settled = copy.settled(self._loop.now) if self._claims.is_confirmed(copy) else None
        self._claims.forget(copy)
        self._reports.leave(copy)
        self._alarms.pop(copy, None)
        self._targets.forget(copy)
        self._partitions.remove(copy)
        copy.released = True
        self._moves.left(copy, settled)
        return True

    def _may_send(self) -> bool:
        return self._end_deadline is None and not self.fenced

    # --- events ---------------------------------------------------------------------------------

    def _on_doubt(self, copy: PartitionCopy, reason: str, cause: Cause = Cause.POSITION) -> None:
        copy.doubt(reason, self._loop.now, cause)
        self._begin_work(copy)

    def _on_idle_doubt(self, copy: PartitionCopy, reason: str, cause: Cause) -> None:
        copy.look_again(reason, self._loop.now, cause)
        self._begin_work(copy)

    def _on_claimed(self, copy: PartitionCopy) -> None:
        copy.claimed(self._loop.now)
        self._begin_work(copy)

    def _on_unclaimed(self, copy: PartitionCopy, reason: str, cause: Cause) -> None:
        self._moves.doubted(copy)
        if cause is Cause.TOO_LARGE and copy.stage is Stage.RUNNING:  # at once it would only be too large again
            copy.park(reason, self._loop.now, cause)
            self._begin_work(copy)
        else:
            self._on_doubt(copy, reason, cause)

    def _on_confirmed(self, copy: PartitionCopy) -> None:
        if self._moves.is_leaving(copy):
            self._begin_work(copy)

    def _on_cut(self, cut: Set[int]) -> None:
        """Doubt positions by claims in these partitions of the segments topic."""
        for copy in self.copies:
            if copy.stage is Stage.RUNNING and copy.reading is not None:
                partition = copy.reading.target_topic_id, copy.route.partition
                if not self._homes or home_partition(*partition, self._homes) in cut:
                    self._on_doubt(copy, "the segments topic has lost claims")

    def _on_read(self, copy: PartitionCopy, result: PartitionReading | Refusal) -> None:
        if isinstance(result, Refusal):
            if result.cause is Cause.CLAIMS_LOST:
                self._claims.look_now()
            copy.refuse(result, self._loop.now)
        else:
            self._claims.confirm_only(copy, result.position.sequence)
            if self._control is not None:  # the word may be about an earlier topic of the name
                copy.end_at(self._control.end_of(*copy.route.source, result.source_topic_id), self._loop.now)
            copy.take(result, self._loop.now)
        self._begin_work(copy)

    def _on_superseded(self, reason: str) -> None:
        self.fenced = reason

    def _on_changed_policies(self, topics: Set[str]) -> None:
        for copy in self.copies:
            if copy.route.source_topic in topics and copy.stage is Stage.RUNNING:
                self._on_doubt(copy, "the source topic's cleanup.policy has changed")

    def _on_fetched(self, part: FetchedPartition, frame: Frame) -> None:
        copy = self._partitions.of((part.topic, part.partition))
        if copy is None or copy not in self.sources.fetching:
            return
        position = copy.fetch_position()
        if position is None or part.asked_offset != position.offset:
            self._begin_work(copy)
            return
        if part.error:
            reason = f"source: {error_name(part.error)}, {explanation(part.error)}"
            copy.source.read_from = None
            copy.act_on(part.error, reason, self._loop.now)
        elif part.preferred_replica >= 0:
            copy.source.read_from = part.preferred_replica
            self.sources.stop(copy)
        elif part.diverging is not None:
            copy.doubt(f"the source's log was cut at {part.diverging[1]}", self._loop.now)
        else:
            self._limits.passed(len(part.records), backfill=copy.backfilling)
            copy.backlog.join(self._targets.batch_bytes(copy))
            copy.queue_bytes = self.sources.queue_bytes(copy, len(self._partitions.all))
            copy.feed(frame, part.records, self._readable_end(part), part.aborted)
            self._preparation.fed(copy)
        self._begin_work(copy)

    def _readable_end(self, part: FetchedPartition) -> int:
        """Return the end of what may be read at the source.

        With `read_committed` that is the last stable offset.
        """
        return part.last_stable_offset if self._read_committed and part.last_stable_offset >= 0 else part.high_watermark

    def _on_fetch_refused(self, copy: PartitionCopy, error: int, reason: str) -> None:
        copy.source.read_from = None
        copy.act_on(error, reason, self._loop.now)
        self._begin_work(copy)

    def _on_source_lost(self, copy: PartitionCopy, reason: str) -> None:
        copy.source.read_from = None
        self._on_doubt(copy, reason, Cause.UNREACHABLE)

    def _on_ack(self, copy: PartitionCopy, ack: Ack) -> None:
        if ack.error and verdict(ack.error) is ErrorAction.STOP:
            self.fenced = f"{copy.route.target_topic}-{copy.route.partition}: {explanation(ack.error)}"
        batch = copy.acknowledge(ack, self._loop.now)
        if batch is not None:
            self.tally.acknowledged(copy.source_partition, batch, self._loop.now)
        self._begin_work(copy)

    def _on_target_lost(self, broker: int, reason: str, copies: Mapping[PartitionCopy, bool]) -> None:
        self._moves.lost(broker)
        self._claims.confirm_none_at(broker)  # another pump may look at the next leader's log before this pump
        for copy, pipelined in copies.items():
            self._moves.doubted(copy)
            copy.lost_in_flight(self._loop.now, reason, pipelined=pipelined)
            self._begin_work(copy)
        # A partition with nothing to send may have lost acknowledged records: the next leader may lack these.
        for copy in self.copies:
            if copy.stage is Stage.RUNNING and copy.is_led_by(broker) and not copy.in_flight:
                self._on_doubt(copy, reason, Cause.UNREACHABLE)

    # --- commands -------------------------------------------------------------------------------

    def control(self, state: ControlState) -> None:
        """Act on the control topic: pauses, caps, retries, and topics with moved writers."""
        wanted = state.try_now
        if self._control is None or wanted == self._obeyed:
            wanted = None  # a pump that begins looks at all partitions anyway
        self._control, self._obeyed = state, state.try_now
        self._held.clear()
        self._limits.set_rates(state.bytes_per_second, state.backfill_bytes_per_second)
        self.readings.writers_moved(
            {(topic, partition): end for topic, done in state.done.items() for partition, end in done.ends.items()}
        )
        for copy in self.copies:
            topic_id = NO_ID if copy.reading is None else copy.reading.source_topic_id
            copy.end_at(state.end_of(*copy.route.source, topic_id), self._loop.now)
            if wanted is not None and copy.stage is Stage.PARKED and wanted.is_about(*copy.route.source):
                copy.retry.look_up(self._loop.now)
            self._begin_work(copy)

    def end(self, deadline_s: float) -> None:
        """Fetch and send no more; wait for acknowledgements until the deadline."""
        if self._end_deadline is None:
            self._end_deadline = self._loop.now + deadline_s
            self._preparation.clear()
            self._claims.wanted.clear()  # nothing more is sent, and a partition may drop what it wanted to claim
            self.sources.end()

    @property
    def ended(self) -> bool:
        """True if the flow is ending, with no request in flight or the deadline over."""
        deadline = self._end_deadline
        return deadline is not None and (self._loop.now > deadline or not self._targets.in_flight)

    @property
    def finished(self) -> bool:
        """True if all routes have an end (`until`), and all are done or parked."""
        return self._partitions.finished

    def receipts(self) -> list[Receipt]:
        return self._reports.receipts(self._control)

    def news(self, *, all_again: bool) -> FlowNews:
        """Return what has changed since the last call, as `FlowReports.news` does."""
        return self._reports.news(self._control, all_again=all_again)

    def tell_again(self) -> None:
        """Have the next news tell all, as `FlowReports.tell_again` does."""
        self._reports.tell_again()

    def lines(self) -> list[LineFigures]:
        """Return what is known and chosen about the lines to brokers."""
        return [*self.sources.lines(), *self._targets.lines()]

    def figures(self, receipts: Iterable[Receipt]) -> list[PartitionFigures]:
        return self._reports.figures(receipts)

    def close(self) -> None:
        self.sources.close()
        self._targets.close()
        for copy in self.copies:
            copy.give_up()
        self._pool.clear()
        self._claims.close()
        self._moves.close()
        self._dialer.close()
        self._idle.close()
        self.readings.close()
