"""State machine of one partition's copy, without any I/O.

`stage` has the diagram. The owner tells the copy each event, and begins the work of `PartitionCopy.ready` afterwards.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Sequence

from sparkmirror.exact.durable.claims import Claim
from sparkmirror.exact.durable.identity import Identity
from sparkmirror.exact.durable.losses import LossKind
from sparkmirror.exact.durable.noted_progress import NOTHING_REPORTED, ReportedProgress
from sparkmirror.exact.position.cause import Cause, cause_of_error
from sparkmirror.exact.position.loss_detection import TELL_US
from sparkmirror.exact.position.route import PartitionPair, PartitionReading, Refusal
from sparkmirror.kafka.wire.buffers import Frame
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.fetch_session import FetchPosition
from sparkmirror.kafka.wire.produce import Ack
from sparkmirror.pump.acknowledged import AcknowledgedRecords
from sparkmirror.pump.backlog import Backlog, Outcome
from sparkmirror.pump.batch import Batch
from sparkmirror.pump.claimer import Claimer
from sparkmirror.pump.copy_end import CopyEnd
from sparkmirror.pump.intake import Intake
from sparkmirror.pump.quiet import WAITS, QuietRule
from sparkmirror.pump.ready import HOLD_BACK, Fetch, Question, Ready
from sparkmirror.pump.refused import LIMITS, refused
from sparkmirror.pump.retry import Retry
from sparkmirror.pump.source_side import SourceSide
from sparkmirror.pump.stage import TRANSITIONS, Stage, StageEvent
from sparkmirror.pump.trouble import NO_TROUBLE, UNREPLICATED, Trouble
from sparkmirror.pump.trust import STAMPING, Freshness, NextReading, Stamping, Trust
from sparkmirror.pump.verdicts import ErrorAction, verdict

QUEUE_BYTES = 2 << 20
"""Bytes queued for sending at which fetching of a partition stops on a short line."""


class PartitionCopy:
    """One partition's copy; each `now` is from `clock.now_s()`.

    `unclean` is True if a predecessor may still be alive (R5). Records with timestamps before `fresh_after_ms` may take
    the leader's state with them; the limit holds for the first `now`, and rises with time.
    """

    def __init__(
        self,
        route: PartitionPair,
        identity: Identity,
        incarnation: int,
        *,
        until: int | None,
        from_latest: bool,
        unclean: bool,
        fresh_after_ms: int,
        max_in_flight: int,
        now: float,
        intake: Intake,
        reported: ReportedProgress = NOTHING_REPORTED,
        done_at: int | None = None,
    ) -> None:
        self.route = route
        self.source_partition = route.source
        self.released = False
        """True once another task may copy the partition."""
        self.end = CopyEnd(until, done_at)
        self.stage = Stage.SEEKING
        self.trouble = NO_TROUBLE
        self.retry = Retry(now)
        self.asked_at: float | None = None
        """Time at which the present reading was asked for; None: no reading under way."""
        self.reading: PartitionReading | None = None
        self.progress = AcknowledgedRecords(reported, was_fenced=bool(identity.former))
        self.source = SourceSide(from_latest=from_latest)
        self.trust = Trust(Freshness(fresh_after_ms, now), max_in_flight)
        self._quiet = QuietRule(unclean, now)
        self._changes = intake.changes
        self._claimer = Claimer(route, identity, incarnation, changed=intake.changes)
        self.backlog = Backlog(identity, intake, self._claimer, self.end.goal)
        self.queue = self.backlog.queue
        self.queue_bytes = QUEUE_BYTES
        """Bytes queued for sending at which fetching stops.

        The pump sets the number with each answer.
        """
        self.in_flight: deque[Batch] = deque()
        self._dropped: tuple[int | None, int | None] = None, None
        """Upstream position, and timestamp of the next record, when the queue was dropped."""
        self._confirm: tuple[Claim, ...] = ()
        """Claims with all batches acknowledged, for the next `ready`."""
        self._question: Question | None = None
        self._fetching: tuple[object, Fetch] = None, HOLD_BACK
        """Last state to fetch in, and its `Fetch`."""

    # --- what is to be done, and what is to be told ---------------------------------------------

    def ready(self, now: float) -> Ready:
        """Return the work to begin now; to be asked after each event."""
        confirm, question = self._confirm, self._question
        self._confirm, self._question = (), None
        stage, reading = self.stage, self.reading
        read = not self.in_flight and self._wants_reading(now)
        look_again_at = self.retry.at if stage is Stage.SEEKING or stage is Stage.PARKED else None
        claims = tuple(self.backlog.claims)
        send_to = reading.target_leader if reading is not None and self.sendable(now) else None
        fetch = self._fetch()
        over = self.end.until is not None and (stage is Stage.DONE or stage is Stage.PARKED)
        return Ready(read, look_again_at, claims, confirm, question, send_to, fetch, over)

    def _wants_reading(self, now: float) -> bool:
        """True if the position should be read now, with nothing in flight."""
        if self.asked_at is not None:
            return False
        if self.stage is Stage.RUNNING:
            return bool(self.queue) and self.trust.is_stale(now)
        return (self.stage is Stage.SEEKING or self.stage is Stage.PARKED) and now >= self.retry.at

    def _fetch(self) -> Fetch | None:
        reading, backlog, source = self.reading, self.backlog, self.source
        if reading is None or self.stage is not Stage.RUNNING or not backlog.wants_more:
            return HOLD_BACK if backlog.unprepared else None
        has_room = backlog.bytes < self.queue_bytes
        state = reading, backlog.upstream, backlog.leader_epoch, source.read_from, source.backfilling, has_room
        if state != self._fetching[0]:
            position = self.fetch_position() if has_room else None
            self._fetching = state, Fetch(source.lane(reading), reading.source_topic_id, position)
        return self._fetching[1]

    @property
    def _records_may_differ(self) -> bool:
        """True if a rival pump may have other records at the same sequences (R19).

        The rival may have seen a log before compaction, or may have other transforms.
        """
        return self._changes or (self.reading is not None and self.reading.compacted)

    def sendable(self, now: float) -> bool:
        """True if the queue's head may be sent now."""
        if self.stage is not Stage.RUNNING or not self.queue or self.asked_at is not None:
            return False
        head = self.queue[0]
        if head.claim is not None and not head.claim.durable:
            return False
        compacted = self._records_may_differ
        return self.trust.allows(head, len(self.in_flight), now, compacted=compacted)

    def fetch_position(self) -> FetchPosition | None:
        """Return the position to fetch from; None if nothing should be fetched now."""
        if self.stage is not Stage.RUNNING or self.reading is None or not self.backlog.wants_more:
            return None
        return FetchPosition(self.backlog.upstream, self.reading.source_leader_epoch, self.backlog.leader_epoch)

    @property
    def most_in_flight(self) -> int:
        """Number of batches that may be in flight at once, as far as now known."""
        compacted = self._records_may_differ
        return self.trust.usually_in_flight(compacted=compacted)

    def is_led_by(self, broker: int) -> bool:
        """True if the target partition's leader is this broker, as far as known."""
        return self.reading is not None and self.reading.target_leader == broker

    @property
    def backfilling(self) -> bool:
        """True if the partition is far behind, so belongs to the backfill."""
        return self.source.backfilling

    @property
    def oldest_ms(self) -> int | None:
        """The first unacknowledged record's timestamp, if fetched; None: unknown."""
        for waiting in (self.in_flight, self.queue):
            if waiting:
                return waiting[0].base_timestamp if waiting[0].base_timestamp >= 0 else None
        upstream, timestamp_ms = self._dropped
        return timestamp_ms if upstream == self.progress.upstream else None

    @property
    def is_at_rest(self) -> bool:
        """True if only an event can change what is told about the partition."""
        settled = self.stage is Stage.RUNNING or self.stage is Stage.DONE
        return settled and self.asked_at is None and not (self.queue or self.in_flight or self.backlog.unprepared)

    @property
    def rests_at(self) -> int | None:
        """Offset that the target has acknowledged a copy at rest up to; None: at work.

        The target's high watermark may not be lower (R10).
        """
        return self.progress.downstream if self.is_at_rest and not self.released else None

    @property
    def is_idle(self) -> bool:
        """True if nothing that was fetched, claimed or asked for is on its way."""
        on_its_way = self.queue or self.in_flight or self.backlog.unprepared or self.backlog.claims or self._confirm
        return not on_its_way and self.asked_at is None

    @property
    def waiting_records(self) -> int:
        """Number of records fetched and not yet acknowledged."""
        return sum(batch.count for waiting in (self.in_flight, self.queue) for batch in waiting)

    @property
    def last_copied(self) -> tuple[int, int] | None:
        """The last acknowledged record's upstream and downstream offset; None: unknown."""
        return None if self.trust.next_reading is NextReading.LOOK_UP else self.progress.last

    # --- position -------------------------------------------------------------------------------

    def ask(self, now: float) -> None:
        """Note that a reading begins; no batch is sent until `take` or `refuse`."""
        self._on(StageEvent.ASKED)
        self.asked_at = now

    def take(self, reading: PartitionReading, now: float) -> None:
        """Take a position that was read: start there, or confirm the present position.

        A position counts from the time when the leader was asked, because the answer may have waited while this process
        was suspended. A position above the high watermark is none: an election may take its records away (R10).
        """
        if not reading.replicated:
            self.source.end = reading.source_end
            self.refuse(UNREPLICATED, now)
            return
        self.asked_at = None
        position = reading.position
        upstream = self.source.resume_at(reading)
        self.progress.expect(upstream, position.downstream)
        follows = upstream if position.upstream is None else position.upstream
        before, self.reading = self.reading, reading
        self.source.end = reading.source_end
        if self.stage is Stage.RUNNING and before is not None:
            if self._agrees(before, reading, upstream, follows):
                self._on(StageEvent.CONFIRMED)
                self.trust.confirm(reading.read_at, position.newest_timestamp_ms)
                return
            self.drop_queue()
        if self._makes_sense(reading, now) and not self._must_stay_quiet(reading, now):
            self._start(reading, upstream, follows, now)

    def _agrees(self, before: PartitionReading, reading: PartitionReading, upstream: int, follows: int) -> bool:
        """True if a position is the next batch's place.

        Leaders and topics must be as before.
        """
        position = reading.position
        if (before.target_leader, before.target_topic_id) != (reading.target_leader, reading.target_topic_id):
            return False
        if before.source_topic_id != reading.source_topic_id:
            # An id known only now does not mean another topic, but the next batch must be claimed with the id.
            return False
        if upstream < follows and reading.resume_at != before.resume_at:
            return False
        if not self.queue or position.lost:
            return False
        head = self.queue[0]
        return (head.sequence, head.follows) == (position.sequence, follows)

    def _start(self, reading: PartitionReading, upstream: int, follows: int, now: float) -> None:
        position = reading.position
        self.backlog.start(position, upstream)
        self.source.start(upstream, reading.source_end)
        self.progress.start(upstream, position)
        # After an unclean takeover a predecessor may go on from the same claim. If both pumps do, nothing tells the
        # writer of records that the log no longer shows (`arbitration`). So the first batch is claimed.
        due = position.claim_due or (self._quiet.unclean and not self.progress.records)
        self._claimer.start(reading, follows, due=due)
        self.trust.start(reading.read_at, position.newest_timestamp_ms)
        self.trouble = NO_TROUBLE
        self._on(StageEvent.STARTED)
        if position.source_topic_id is None and self.source.from_latest:
            # The start must be durable before there is anything to send: the next round would see another end.
            self.backlog.claims.append(self._claimer.claim_start(position.sequence, position.downstream))
        self._finish_if_done()

    def _makes_sense(self, reading: PartitionReading, now: float) -> bool:
        """True if earlier knowledge agrees with a position; else wait or park."""
        position, progress, topic_id = reading.position, self.progress, reading.target_topic_id
        if progress.is_of_another_topic(topic_id) and self.source.from_latest and position.source_topic_id is None:
            reason = "its target topic is a new one: the start of the copy into the old topic is looked up"
            self.refuse(Refusal(reason, transient=True), now)
            return False
        if position.supposed:
            if objection := progress.objection_to(position, topic_id):
                reason = f"the target has deleted all records, and {objection}: {TELL_US}"
                self.park(reason, now, Cause.TARGET_TRUNCATED)
                return False
        elif position.sequence:
            progress.appended = topic_id, position.end
        return True

    def refuse(self, refusal: Refusal, now: float) -> None:
        """Take a refusal to tell the position now: read again later, or park."""
        self.asked_at = None
        if self.stage is Stage.RUNNING:
            self.drop_queue()
        if refusal.transient and not self._must_give_up(now):
            self.trouble = Trouble(refusal.reason, refusal.cause)
            self.retry.pause(now, self._quiet.look_at)
            self._leave_running(StageEvent.WITHHELD)
        else:
            self.park(refusal.reason, now, refusal.cause, refusal.loss)
            self.progress.last = None

    def _must_stay_quiet(self, reading: PartitionReading, now: float) -> bool:
        """Start a wait and return True if the quiet rule (R5) holds a position back.

        The append check guards only if a predecessor sees the same records as this pump. So no partition is guarded
        after the source has lost records.
        """
        newest_ms = reading.position.newest_timestamp_ms
        guarded = newest_ms is not None and self.trust.fresh.covers(newest_ms, now)
        guarded = guarded and reading.resume_at == reading.position.upstream
        if self._quiet.allows_position(reading.position.sequence, reading.read_at, now, guarded=guarded):
            return False
        self._be_quiet()
        return True

    def may_be_written_to(self, now: float) -> bool:
        """True while earlier requests may still arrive (R5)."""
        return self._quiet.may_be_written_to(now)

    def _be_quiet(self) -> None:
        self.trouble = Trouble(WAITS, Cause.PREDECESSOR)
        self.retry.at = self._quiet.look_at
        self._leave_running(StageEvent.WITHHELD)

    def settled(self, now: float) -> PartitionReading | None:
        """Return a resting copy's position, as this pump's acknowledgements show it.

        Another pump may go on there as this pump might, without a reading. None: the position must be read, also
        because a claim announces what was not sent: the reader shortens it.
        """
        progress, reading = self.progress, self.reading
        if self.stage is not Stage.RUNNING or not self.is_idle or self.trust.is_stale(now) or reading is None:
            return None
        if progress.newest is None or self._claimer.announced_to > progress.newest.next_sequence:
            return None
        source_end = reading.source_end if self.source.end is None else self.source.end
        return progress.settled(reading, source_end, self.trust.confirmed_at)

    # --- doubt ----------------------------------------------------------------------------------

    def doubt(self, reason: str, now: float, cause: Cause = Cause.POSITION) -> None:
        """Drop the queue, drain, and read the position after a pause; or park."""
        if self.stage is Stage.PARKED or self.stage is Stage.DONE:
            return
        if self._must_give_up(now) and not self.in_flight:
            self.park(reason, now, cause)
            return
        self.drop_queue()
        self.trouble = Trouble(reason, cause)
        self.retry.pause(now, self._quiet.look_at)
        self._leave_running(StageEvent.DOUBTED)

    def park(self, reason: str, now: float, cause: Cause, loss: LossKind | None = None) -> None:
        """Set the partition aside, and look again after a pause that grows each time."""
        self.drop_queue()
        self.trouble = Trouble(reason, cause, loss)
        self.retry.park(now)
        self._on(StageEvent.SET_ASIDE)

    def act_on(self, error: int, reason: str, now: float) -> None:
        """Do as the verdict table says about an error."""
        action = verdict(error)
        if action is ErrorAction.PARK or action is ErrorAction.STOP:
            self.park(reason, now, cause_of_error(error))
            return
        self.doubt(reason, now, cause_of_error(error))
        if action is ErrorAction.RETRY:
            self.retry.pause_at_least_shortly(now)

    def look_again(self, reason: str, now: float, cause: Cause = Cause.POSITION) -> None:
        """Read the position of a copy at rest, also of one that is done, at once."""
        if self.stage is Stage.DONE:
            self._on(StageEvent.REOPENED)
            self.trouble = Trouble(reason, cause)
        else:
            self.doubt(reason, now, cause)
        self.retry.at = now

    def is_guarded(self, now: float) -> bool:
        """True if the leader is sure to refuse a late repeat of the queue's head."""
        return self.trust.is_guarded(self.queue[0], now)

    def lost_in_flight(self, now: float, reason: str, *, pipelined: bool) -> None:
        """Doubt after a broken connection: batches in flight may be in the log or not.

        They may also arrive yet; `pipelined` ones were sent while others were in flight, and may arrive late.
        """
        if self.in_flight:
            self._quiet.begin(now, pipelined=pipelined)
        self._release_in_flight()
        if self.stage is Stage.RUNNING or self.stage is Stage.DRAINING:
            self.doubt(reason, now, Cause.UNREACHABLE)

    def _must_give_up(self, now: float) -> bool:
        """True if a partition with an end (`until`) has had no progress for too long."""
        return self.retry.is_out_of_patience(now) and self.end.until is not None

    # --- in -------------------------------------------------------------------------------------

    def feed(
        self, frame: Frame, records: memoryview, high_watermark: int, aborted: Sequence[tuple[int, int]] = ()
    ) -> None:
        """Take one fetch answer's batches, for `prepare`."""
        self._on(StageEvent.FED)
        self.source.answered(high_watermark, len(records))
        self.backlog.feed(frame, records, aborted)

    def prepare(self, now: float, enough: Callable[[], bool]) -> None:
        """Make fetched batches ready until `enough`; raises ValueError as `Backlog` does."""
        if not self.backlog.unprepared:
            return
        outcome = self.backlog.prepare(lambda batch: self._may_be_sent(batch, now), enough)
        if outcome is Outcome.UNWANTED:
            sequence = self.backlog.sequence
            self.drop_queue()
            self._quiet.wait_for_late(sequence, now)
            self._be_quiet()
            return
        if outcome is Outcome.DONE:
            self.source.prepared(self.backlog.upstream)
        self._pass_over(now)

    def _may_be_sent(self, batch: Batch, now: float) -> bool:
        quiet = self._quiet
        return not quiet.holds or quiet.allows_batch(now, guarded=self.trust.fresh.covers(batch.max_timestamp, now))

    def _pass_over(self, now: float) -> None:
        """Count passed-over records if no batch is on the way; park at an obstacle."""
        if self.queue or self.in_flight:
            return
        self.progress.upstream = self.backlog.upstream
        if self.backlog.obstacle:
            why, cause = self.backlog.obstacle
            self.park(why, now, cause)
        else:
            self._finish_once_confirmed(now)

    def claiming(self, count: int) -> None:
        """Note that the first claims in `Ready.claims` are being written."""
        for _ in range(count):
            self.backlog.claims.popleft()

    # --- out ------------------------------------------------------------------------------------

    def send(self, now: float) -> Batch:
        """Return the batch to send, which is in flight from now on."""
        self.stage = TRANSITIONS[self.stage][StageEvent.SENT]
        batch = self.backlog.take()
        batch.sent_at = now
        self.trust.sent(batch)
        self.in_flight.append(batch)
        return batch

    def acknowledge(self, ack: Ack, now: float) -> Batch | None:
        """Take the answer for the oldest batch in flight.

        Returns the batch if this pump has appended the batch exactly once, else None.
        """
        self.stage = TRANSITIONS[self.stage][StageEvent.ANSWERED]
        batch = self.in_flight.popleft()
        try:
            if self.stage is Stage.RUNNING:
                return self._on_ack(batch, ack, now)
            self._drain()
            return None
        finally:
            batch.frame.release()

    def _on_ack(self, batch: Batch, ack: Ack, now: float) -> Batch | None:
        if ack.error:
            self._on_error(batch, ack, now)
        elif ack.log_append_time_ms >= 0 and self.trust.stamping is Stamping.CREATE_TIME:
            # Instead of a rival, the target may stamp records itself: the topic's configuration tells.
            self.trust.stamping, self._question = Stamping.UNKNOWN, Question((STAMPING,), None)
            self.doubt(f"a rival had already written source offset {batch.upstream}", now, Cause.RIVAL)
        elif ack.base_offset != batch.downstream:
            where_to = f"source offset {batch.upstream} landed at {ack.base_offset}, not at {batch.downstream}"
            self.doubt(where_to, now, Cause.RIVAL)
        else:
            self._note_appended(batch, now, timed=ack.log_append_time_ms >= 0)
            return batch
        return None

    def _note_appended(self, batch: Batch, now: float, *, timed: bool) -> None:
        assert self.reading is not None  # noqa: S101 - a batch is sent to a leader that is known
        look_up = self.trust.note(batch, now, timed=timed)
        if self.trust.must_ask(now):
            self._question = Question((STAMPING,), None)
        self.retry.progressed()
        self.progress.note(batch, self.reading.target_topic_id)
        if batch.completes is not None and self.trust.is_claim_proven:
            self._confirm += (dataclasses.replace(batch.completes.claim, confirmed=True),)
        if look_up:  # before the end is reached, too
            why = "the target had lost records" if batch.heals else "its acknowledgements can't tell a rival's batch"
            self.doubt(f"{why}: the appended batch is looked up", now)
            self.retry.look_up(now)
            self.trust.next_reading = NextReading.LOOK_UP
        else:
            self._pass_over(now)

    def _on_error(self, batch: Batch, ack: Ack, now: float) -> None:
        why = refused(batch, ack, self.route.target_topic)
        if ack.error == ErrorCode.MESSAGE_TOO_LARGE and batch.count > 1:
            self.backlog.split(len(batch.view))
            self.doubt(f"{why.words}: it is split", now)
            self.retry.at = now
        else:
            self._question = Question(LIMITS[ack.error], why) if ack.error in LIMITS else None
            self.act_on(ack.error, why.words, now)

    def explain(self, reason: str, line: str) -> None:
        """Take a line that says more than the reason, if the reason still stands."""
        if self.trouble.reason == reason:
            self.trouble = self.trouble._replace(reason=line, explained=True)

    # --- end ------------------------------------------------------------------------------------

    def end_at(self, done_at: int | None, now: float) -> None:
        """Set the source offset at which the partition's writers moved; None: no move.

        Unsent batches are dropped if any goes beyond. Claims may announce them: the reader shortens these.
        """
        if done_at == self.end.done_at:
            return
        self.end = CopyEnd(self.end.until, done_at)
        goal = self.end.goal
        self.backlog.end_at(goal)
        if self.stage is Stage.DONE:
            self._on(StageEvent.REOPENED)
            self.trouble, self.retry.at = NO_TROUBLE, now
        elif self.stage is Stage.RUNNING and not self.queue:
            self._finish_once_confirmed(now)
        elif (
            self.stage is Stage.RUNNING
            and goal is not None
            and (self.queue[-1].next_upstream > goal or self.backlog.obstacle is not None)
        ):
            self.doubt(f"its writers have moved: it ends at offset {goal}, before what was fetched", now)

    @property
    def _is_at_goal(self) -> bool:
        goal, upstream = self.end.goal, self.progress.upstream
        # While a position is being read, `take` decides.
        is_settled = not self.in_flight and self.asked_at is None
        return goal is not None and upstream is not None and upstream >= goal and is_settled

    def _finish_once_confirmed(self, now: float) -> None:
        """End the copy at its goal; first read a position that was confirmed too long ago.

        The target may have lost acknowledged records since, by an unclean election (R10).
        """
        if self._is_at_goal and self.trust.is_stale(now):
            self.look_again("the position is read once more before the copy counts as done", now)
        else:
            self._finish_if_done()

    def _finish_if_done(self) -> None:
        if self._is_at_goal:
            self.drop_queue()
            self._on(StageEvent.REACHED)

    def give_up(self) -> None:
        """Release all batches at the round's end; batches still in flight are in doubt."""
        self.drop_queue()
        self._release_in_flight()

    def drop_unsent(self) -> None:
        """Send nothing more, and take the acknowledgements that are due.

        For a partition that another task copies from now on: nothing is fetched any more.
        """
        if self.stage is Stage.RUNNING:
            self.drop_queue()
            acknowledged = self.in_flight[-1].next_upstream if self.in_flight else self.progress.upstream
            assert acknowledged is not None  # noqa: S101 - a running copy has a position
            self.backlog.rewind(acknowledged)

    def drop_queue(self) -> None:
        """Forget fetched and unsent batches, to be fetched again later."""
        self._dropped = self.progress.upstream, self.oldest_ms
        self.backlog.drop()

    def _release_in_flight(self) -> None:
        for batch in self.in_flight:
            batch.frame.release()
        self.in_flight.clear()

    # --- stages ---------------------------------------------------------------------------------

    def _on(self, event: StageEvent) -> None:
        self.stage = TRANSITIONS[self.stage][event]

    def _leave_running(self, event: StageEvent) -> None:
        """Wait for the batches in flight, if any, before the position is read."""
        self._on(event)
        self._drain()

    def _drain(self) -> None:
        if self.stage is Stage.DRAINING and not self.in_flight:
            self._on(StageEvent.DRAINED)
