"""State machine of one partition's copy, without any I/O.

`stage` has the diagram. The owner tells the copy each event, and begins the work of `PartitionCopy.ready` afterwards
(`copy_state`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from sparkmirror.exact.durable.losses import LossKind
from sparkmirror.exact.position.cause import Cause, cause_of_error
from sparkmirror.exact.position.loss_detection import TELL_US
from sparkmirror.exact.position.route import PartitionReading, Refusal
from sparkmirror.kafka.wire.buffers import Frame
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.produce import Ack
from sparkmirror.pump.backlog import Outcome
from sparkmirror.pump.batch import Batch
from sparkmirror.pump.copy_end import CopyEnd
from sparkmirror.pump.copy_state import CopyState
from sparkmirror.pump.quiet import WAITS
from sparkmirror.pump.ready import Question
from sparkmirror.pump.refused import LIMITS, refused
from sparkmirror.pump.stage import TRANSITIONS, Stage, StageEvent
from sparkmirror.pump.trouble import NO_TROUBLE, UNREPLICATED, Trouble
from sparkmirror.pump.trust import STAMPING, NextReading, Stamping
from sparkmirror.pump.verdicts import ErrorAction, verdict


class PartitionCopy(CopyState):
    """One partition's copy, with the events that change it."""

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
        # After an unclean takeover a predecessor may continue from the same claim. If both pumps do, nothing tells the
        # writer of records that the log no longer shows (`arbitration`). So the first batch is claimed.
        due = position.claim_due or (self._quiet.unclean and not self.progress.records)
        self._claimer.start(reading, follows, due=due)
        self.trust.start(reading.read_at, position.newest_timestamp_ms)
        self.trouble = NO_TROUBLE
        self._on(StageEvent.STARTED)
        self._start_claim = None
        if position.source_topic_id is None and self.source.from_latest:
            # The start must be durable before there is anything to send: the next round would see another end.
            self._start_claim = self._claimer.claim_start(position.sequence, position.downstream)
            self.backlog.claims.append(self._start_claim)
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

    def _be_quiet(self) -> None:
        self.trouble = Trouble(WAITS, Cause.PREDECESSOR)
        self.retry.at = self._quiet.look_at
        self._leave_running(StageEvent.WITHHELD)

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

    def lost_in_flight(self, now: float, reason: str, *, pipelined: bool) -> None:
        """Doubt after a broken connection: batches in flight may be in the log or not.

        They may also arrive yet; `pipelined` ones were sent while others were in flight, and may arrive late.
        """
        if self.in_flight:
            self._quiet.begin(now, pipelined=pipelined)
        self._release_in_flight()
        if self.stage is Stage.RUNNING or self.stage is Stage.DRAINING:
            self.doubt(reason, now, Cause.UNREACHABLE)

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

    def claimed(self, now: float) -> None:
        """Note that claims are durable."""
        if self.stage is Stage.RUNNING and self._start_claim is not None:
            self._finish_once_confirmed(now)

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
            start = self._start_claim
            waits = start is not None and start in self.backlog.claims
            self.drop_queue()
            if start is not None and waits:  # else the other task would begin at another end
                self.backlog.claims.append(start)
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
