"""State machine of one partition's copy, without any I/O.

    SEEKING ──take()──> RUNNING ──doubt()──> DRAINING ──(nothing in flight)──> SEEKING
       │                   │                                      park() from anywhere
       └──(quiet rule)─────┘──(until reached)──> DONE

Any doubt has one answer: drop the queue, drain the batches in flight, read the position, send ONE batch alone until the
batch is acknowledged, go on (invariant 5, R3).
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from enum import Enum

from sparkmirror.durable.claims import Segment
from sparkmirror.durable.identity import Identity
from sparkmirror.durable.losses import LossKind
from sparkmirror.position.cause import Cause, cause_of_error
from sparkmirror.position.loss_detection import TELL_US
from sparkmirror.position.route import NOTHING_KNOWN, PartitionPair, PartitionReading, Refusal, Remembered
from sparkmirror.pump.backlog import Backlog, Outcome
from sparkmirror.pump.batch import Batch
from sparkmirror.pump.claimer import Claimer
from sparkmirror.pump.intake import Intake
from sparkmirror.pump.quiet import WAITS, QuietRule
from sparkmirror.pump.refused import LIMITS, Refused, refused
from sparkmirror.pump.verdicts import ErrorAction, verdict
from sparkmirror.wire.buffers import Frame
from sparkmirror.wire.error_codes import ErrorCode
from sparkmirror.wire.fetch_session import FetchPosition
from sparkmirror.wire.produce import Ack

MAX_CONFIRMATION_AGE_S = 3.0
"""Greatest age of a position; an older position is read again before sending (R6)."""

PATIENCE_S = 60.0
"""Longest time without progress for a partition with an end (`until`).

Then the partition is parked, because `--once` must end.
"""

BACKFILL_BYTES = 256 << 10
"""Size of an answer short of the log's end that shows a partition far behind."""

BACKFILL_OFFSETS = 5_000
"""Distance in offsets from the log's end at which a partition is far behind.

The size of an answer does not matter then. Under a cap, each partition of a topic full of history would otherwise take
one fetch's bytes from the live tail before an answer shows the distance.
"""

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 5.0
_SHORTEST_RETRY_S = 0.5
_FIRST_PARK_S, _LONGEST_PARK_S = 5.0, 300.0


class Stage(Enum):
    """Stage of a partition's copy."""

    SEEKING = "the position must be read"
    RUNNING = "the partition is copied"
    DRAINING = "batches in flight come back before the position is read"
    PARKED = "the partition can't be copied now"
    DONE = "all records up to the goal are copied"


class PartitionCopy:
    """Copy of one partition; each `now` is from `clock.now_s()`.

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
        remembered: Remembered = NOTHING_KNOWN,
        done_at: int | None = None,
    ) -> None:
        self.route = route
        self.until = until
        self.done_at = done_at
        """Source offset at which writers moved to the target; None: no move."""
        self.stage = Stage.SEEKING
        self.reason = ""
        self.cause = Cause.POSITION
        """Cause behind `reason` if the partition is not copied."""
        self.seek_at = now
        """Time of the next reading of the position, while SEEKING or PARKED."""
        self.asked_at: float | None = None
        """Time at which the present reading was asked for; None: no reading under way."""
        self.bearings: PartitionReading | None = None
        self._intake = intake
        self._was_fenced = bool(identity.former)
        self._claimer = Claimer(route, identity, incarnation)
        self.backlog = Backlog(identity, intake, self._claimer, self.goal)
        self.queue = self.backlog.queue
        self.in_flight: deque[Batch] = deque()
        self.confirmed: list[Segment] = []
        """Claims with all batches acknowledged, to be written again behind the copy."""
        self.refused: Refused | None = None
        """Refusal of a batch, if the target's limits explain more."""
        self.halted: LossKind | None = None
        """Loss that halts the PARKED partition, if any."""
        self.records = 0
        self.bytes = 0
        self.acked_upstream = -1
        self.acked_downstream = -1
        self._last_upstream = self._last_downstream = -1
        self._passed, self.appended = remembered
        self.acked_timestamp_ms = -1
        """Own timestamp of the last record known to be copied; -1: unknown."""
        self.source_end = -1
        self._oldest = -1, -1
        """Upstream position, and timestamp of the next record, when the queue was dropped."""
        self._answered_bytes = 0
        """Bytes of records in the last answer."""
        self.backfilling = False
        """True if the partition is far behind, so belongs to the backfill."""
        self.read_from: int | None = None
        """Follower nearby to fetch from (KIP-392); None: the leader."""
        self._from_latest = from_latest
        self._fresh_after_ms, self._fresh_since = fresh_after_ms, now
        self._max_in_flight = max_in_flight
        self._latest: int | None = None
        self._alone = True
        """True if the next batch must be the only batch in flight (R3, R4)."""
        self._first = True
        """True if no batch was acknowledged since a reading; look-ups don't count."""
        self._claim_proven = True
        """True if acknowledgements so far prove the newest claim's batches no duplicates."""
        self.may_be_stamped = False
        """True if the owner should read the target's timestamp type, to call `stamped`."""
        self._stamped = False
        """True if the target stamps records (LogAppendTime); answers hide duplicates (R2)."""
        self._verifying = False
        """True if the next reading only looks up an acknowledged batch."""
        self._confirmed_at = 0.0
        self._failures = 0
        self._troubled_since: float | None = None
        self._unclean = unclean
        self._quiet = QuietRule(unclean, now)

    @property
    def goal(self) -> int | None:
        """Source offset at which the copy ends; None: no end."""
        return min((end for end in (self.until, self.done_at) if end is not None), default=None)

    def end_at(self, done_at: int | None, now: float) -> None:
        """Set the source offset at which the partition's writers moved; None: no move."""
        if done_at == self.done_at:
            return
        self.done_at = done_at
        self.backlog.until = self.goal
        if self.stage is Stage.DONE:
            self.stage, self.seek_at, self.reason = Stage.SEEKING, now, ""
        elif self.stage is Stage.RUNNING and not self.queue:
            self._finish_if_done()

    @property
    def oldest_ms(self) -> int:
        """Timestamp of the first unacknowledged record; -1: not fetched, or no timestamp."""
        for waiting in (self.in_flight, self.queue):
            if waiting:
                return waiting[0].base_timestamp
        upstream, timestamp_ms = self._oldest
        return timestamp_ms if upstream == self.acked_upstream else -1

    @property
    def waiting_records(self) -> int:
        """Number of records fetched and not yet acknowledged."""
        return sum(batch.count for waiting in (self.in_flight, self.queue) for batch in waiting)

    @property
    def last_copied(self) -> tuple[int, int]:
        """Upstream and downstream offset of the last acknowledged record; -1: unknown.

        The positions need not follow these offsets directly: a gap, a marker or a foreign record may lie before a
        position.
        """
        if self._verifying:
            return -1, -1
        return self._last_upstream, self._last_downstream

    @property
    def remembered(self) -> Remembered:
        """Knowledge for the next reading of the position, also in later epochs."""
        passed = (self.acked_upstream, self.acked_downstream) if self.acked_upstream >= 0 else self._passed
        return Remembered(passed, self.appended)

    # --- position -------------------------------------------------------------------------------

    def ask(self, now: float) -> None:
        """Note that a reading begins; no batch is sent until `take` or `refuse`."""
        self.asked_at = now

    def take(self, bearings: PartitionReading, now: float) -> None:
        """Take a position that was read: start there, or confirm the present position.

        A position counts from the time when the leader was asked, because the answer may have waited while this process
        was suspended.
        """
        self.asked_at = None
        position = bearings.position
        upstream = self._resume_at(bearings)
        if (upstream, position.downstream) != (self._last_upstream + 1, self._last_downstream + 1):
            self._last_upstream = self._last_downstream = -1
        follows = upstream if position.upstream is None else position.upstream
        before = self.bearings
        self.bearings = bearings
        self.source_end = bearings.source_end
        if self.stage is Stage.RUNNING and before is not None:
            same_leaders = (before.target_leader, before.target_topic_id) == (
                bearings.target_leader,
                bearings.target_topic_id,
            )
            confirms = self.queue and not position.lost and _leads_to(self.queue[0], position.sequence, follows)
            leads_here = upstream >= follows or bearings.resume_at == before.resume_at
            # An id known only now does not mean another topic, but the next batch must be claimed with the id.
            same_source = bearings.source_topic_id == before.source_topic_id
            if same_leaders and same_source and leads_here and confirms:
                self._confirmed_at = bearings.read_at
                self._alone = self._first = True
                return
            self.drop_queue()
        if not self._makes_sense(bearings, now) or self._must_stay_quiet(bearings, now):
            return
        self.backlog.start(position, upstream)
        self.backfilling = self.backfilling or bearings.source_end - upstream >= BACKFILL_OFFSETS
        self.acked_upstream = upstream
        self.acked_downstream = position.downstream
        if position.newest_timestamp_ms is not None:
            self.acked_timestamp_ms = position.newest_timestamp_ms
        # After an unclean takeover a predecessor may go on from the same claim. If both pumps do, nothing tells the
        # writer of records that the log no longer shows (`arbitration`). So the first batch is claimed.
        self._claimer.start(bearings, follows, due=position.claim_due or (self._unclean and not self.records))
        self._alone = self._first = not self._verifying
        self._verifying = False
        self._confirmed_at = bearings.read_at
        self.reason = ""
        self.halted = None
        self.stage = Stage.RUNNING
        if position.source_topic_id is None and self._from_latest:
            # The start must be durable before there is anything to send: the next epoch would see another end.
            self.backlog.claims.append(self._claimer.claim_start(position.sequence, position.downstream))
        if self.goal is not None and upstream >= self.goal and not bearings.replicated:
            self.doubt("all is in the target leader's log, but its replicas have not confirmed it yet", now)
        else:
            self._finish_if_done()

    def _makes_sense(self, bearings: PartitionReading, now: float) -> bool:
        """True if earlier knowledge agrees with a position; else wait or park."""
        position, (topic_id, end) = bearings.position, self.appended
        if bearings.target_topic_id != topic_id:
            end = -1
            if topic_id and self._from_latest and position.source_topic_id is None:
                reason = "its target topic is a new one: the start of the copy into the old topic is looked up"
                self.refuse(Refusal(reason, transient=True), now)
                return False
        if reason := self._is_not_known(position.end, end) if position.supposed else "":
            self.park(f"the target has deleted all records, and {reason}: {TELL_US}", now, Cause.TARGET_TRUNCATED)
            return False
        if not position.supposed and bearings.replicated and position.sequence:
            self.appended = bearings.target_topic_id, position.end
        return True

    def _is_not_known(self, end: int, appended: int) -> str:
        """Return the reason why an emptied log's `end` does not tell the end of the copy.

        `appended` is the offset up to which the target had acknowledged records of this flow; -1: unknown. An empty
        reason means that the end is believed.
        """
        if appended < 0:
            return "no note tells how many of its offsets were markers of a fence" if self._was_fenced else ""
        if appended < end:
            return f"offsets {appended} to {end - 1} may have been a foreign producer's"
        return ""

    def _resume_at(self, bearings: PartitionReading) -> int:
        """Return the source offset to fetch next.

        If no record was ever copied and `latest` is asked for, the source's end at the first reading counts.
        """
        if bearings.resume_at is not None:
            return bearings.resume_at
        if not self._from_latest or bearings.position.lost:
            return bearings.source_start
        if self._latest is None:
            self._latest = bearings.source_end
        return self._latest

    def refuse(self, refusal: Refusal, now: float) -> None:
        """Take a refusal to tell the position now: read again later, or park."""
        self.asked_at = None
        if self.stage is Stage.RUNNING:
            self.drop_queue()
        if refusal.transient and not self._out_of_patience(now):
            self.stage = Stage.SEEKING
            self.reason, self.cause = refusal.reason, refusal.cause
            self.seek_at = max(now + self._pause(), self._quiet.look_at)
        else:
            self.park(refusal.reason, now, refusal.cause)
            self.halted = refusal.loss
            self._last_upstream = self._last_downstream = -1

    def _must_stay_quiet(self, bearings: PartitionReading, now: float) -> bool:
        """Start a wait and return True if the quiet rule (R5) holds a position back.

        The append check guards only if a predecessor sees the same records as this pump. So no partition is guarded
        after the source has lost records.
        """
        newest_ms = bearings.position.newest_timestamp_ms
        guarded = newest_ms is not None and self._is_fresh(newest_ms, now)
        guarded = guarded and bearings.resume_at == bearings.position.upstream
        if self._quiet.allows_position(bearings.position.sequence, bearings.read_at, now, guarded=guarded):
            return False
        self._be_quiet()
        return True

    def _be_quiet(self) -> None:
        self.stage = Stage.DRAINING if self.in_flight else Stage.SEEKING
        self.reason, self.cause = WAITS, Cause.PREDECESSOR
        self.seek_at = self._quiet.look_at

    # --- doubt ----------------------------------------------------------------------------------

    def doubt(self, reason: str, now: float, cause: Cause = Cause.POSITION) -> None:
        """Drop the queue, drain, and read the position after a pause; or park."""
        if self.stage in (Stage.PARKED, Stage.DONE):
            return
        if self._out_of_patience(now) and not self.in_flight:
            self.park(reason, now, cause)
            return
        self.drop_queue()
        self.reason, self.cause = reason, cause
        self.seek_at = max(now + self._pause(), self._quiet.look_at)
        self.stage = Stage.DRAINING if self.in_flight else Stage.SEEKING

    def park(self, reason: str, now: float, cause: Cause) -> None:
        """Set the partition aside, and look again after a pause that grows each time."""
        self.drop_queue()
        self.reason, self.cause = reason, cause
        self.stage = Stage.PARKED
        self.seek_at = now + min(_FIRST_PARK_S * 2**self._failures, _LONGEST_PARK_S)
        self._failures += 1

    def lost_in_flight(self, now: float, reason: str) -> None:
        """Doubt after a broken connection: batches in flight may be in the log or not."""
        for batch in self.in_flight:
            batch.frame.release()
        self.in_flight.clear()
        if self.stage is Stage.RUNNING or self.stage is Stage.DRAINING:
            self.stage = Stage.RUNNING
            self.doubt(reason, now, Cause.UNREACHABLE)

    def wants_reading(self, now: float) -> bool:
        """True if the position should be read now."""
        if self.asked_at is not None:
            return False
        if self.stage is Stage.SEEKING or self.stage is Stage.PARKED:
            return now >= self.seek_at and not self.in_flight
        return self.stage is Stage.RUNNING and bool(self.queue) and not self.in_flight and self._stale(now)

    def _out_of_patience(self, now: float) -> bool:
        if self._troubled_since is None:
            self._troubled_since = now
        return self.until is not None and now - self._troubled_since > PATIENCE_S

    def _stale(self, now: float) -> bool:
        return now - self._confirmed_at > MAX_CONFIRMATION_AGE_S

    def _pause(self) -> float:
        pause = min(_FIRST_PAUSE_S * 2 ** min(self._failures, 8), _LONGEST_PAUSE_S) if self._failures else 0.0
        self._failures += 1
        return pause

    # --- in -------------------------------------------------------------------------------------

    def fetch_position(self) -> FetchPosition | None:
        """Return the position to fetch from; None if nothing should be fetched now."""
        if self.stage is not Stage.RUNNING or self.bearings is None or not self.backlog.wants_more:
            return None
        return FetchPosition(self.backlog.upstream, self.bearings.source_leader_epoch, self.backlog.leader_epoch)

    def feed(
        self, frame: Frame, records: memoryview, high_watermark: int, aborted: Sequence[tuple[int, int]] = ()
    ) -> None:
        """Take the batches of one fetch answer, for `prepare`."""
        self.source_end = high_watermark
        self._answered_bytes = len(records)
        self.backlog.feed(frame, records, aborted)

    def prepare(self, now: float, enough: Callable[[], bool]) -> None:
        """Make fetched batches ready until `enough`; raises ValueError as `Backlog` does."""
        if not self.backlog.unprepared:
            return
        outcome = self.backlog.prepare(lambda batch: self._may_be_sent(batch, now), enough)
        if outcome is Outcome.UNWANTED:
            sequence = self.backlog.sequence
            self.drop_queue()
            self._quiet.wait(sequence, now)
            self._be_quiet()
            return
        if outcome is Outcome.DONE:
            behind = self.source_end - self.backlog.upstream
            if behind <= 0:
                self.backfilling = False
            elif self._answered_bytes >= BACKFILL_BYTES or behind >= BACKFILL_OFFSETS:
                self.backfilling = True
        self._pass_over(now)

    def _may_be_sent(self, batch: Batch, now: float) -> bool:
        return self._quiet.allows_batch(now, guarded=self._is_fresh(batch.max_timestamp, now))

    def _pass_over(self, now: float) -> None:
        """Count passed-over records if no batch is on the way; park at an obstacle."""
        if self.queue or self.in_flight:
            return
        self.acked_upstream = self.backlog.upstream
        if self.backlog.obstacle:
            self.park(self.backlog.obstacle, now, Cause.UNREADABLE)
        else:
            self._finish_if_done()

    # --- out ------------------------------------------------------------------------------------

    def sendable(self, now: float) -> bool:
        """True if the head of the queue may be sent now."""
        return (
            self.stage is Stage.RUNNING
            and bool(self.queue)
            and (self.queue[0].claim is None or self.queue[0].claim.durable)
            and self.asked_at is None
            and len(self.in_flight) < self._most_in_flight(now)
            and not self._stale(now)
        )

    def _most_in_flight(self, now: float) -> int:
        """Return 1 unless the leader's state is sure to outlive the answers.

        Old records take the state with them at the broker's next tick. Without state the leader would accept a batch
        although the leader has refused the batch before (R3, R4). In a compacted log a rival pump may have seen other
        records (R19): if the rival has appended as many records, this pump's batch is a duplicate to the broker, but
        the next batch would be appended.
        """
        head = self.queue[0]
        if self._alone or not self._is_fresh(head.max_timestamp, now) or (self._tells_nothing(head) and head.claim):
            return 1
        if self.bearings is not None and self.bearings.compacted:
            return 1
        return self._max_in_flight

    def _is_fresh(self, timestamp_ms: int, now: float) -> bool:
        """True if the leader's state is sure to outlive a record of that timestamp (R4).

        Fresh records grow old while the pump runs.
        """
        return timestamp_ms >= self._fresh_after_ms + (now - self._fresh_since) * 1000

    def send(self, now: float) -> Batch:
        """Return the batch to send, which is in flight from now on."""
        batch = self.backlog.take()
        batch.sent_at = now
        self.in_flight.append(batch)
        return batch

    def acknowledge(self, ack: Ack, now: float) -> Batch | None:
        """Take the answer for the oldest batch in flight.

        Returns the batch if this pump has appended the batch exactly once, else None.
        """
        batch = self.in_flight.popleft()
        try:
            return self._on_ack(batch, ack, now)
        finally:
            batch.frame.release()

    def _on_ack(self, batch: Batch, ack: Ack, now: float) -> Batch | None:
        if self.stage is Stage.DRAINING:
            if not self.in_flight:
                self.stage = Stage.SEEKING
            return None
        if self.stage is not Stage.RUNNING:
            return None
        if ack.error:
            self._on_error(batch, ack, now)
            return None
        if ack.log_append_time_ms >= 0 and not self._stamped:
            # Instead of a rival, the target may stamp records itself: the topic's configuration tells.
            self.may_be_stamped = True
            self.doubt(f"a rival had already written source offset {batch.upstream}", now, Cause.RIVAL)
        elif ack.base_offset != batch.downstream:
            where_to = f"source offset {batch.upstream} landed at {ack.base_offset}, not at {batch.downstream}"
            self.doubt(where_to, now, Cause.RIVAL)
        else:
            self._note_appended(batch, now)
            return batch
        return None

    def _tells_nothing(self, batch: Batch) -> bool:
        """True if a batch's acknowledgement can't tell a duplicate (docs/exactness.md)."""
        return self._stamped or batch.max_timestamp < 0

    def _note_appended(self, batch: Batch, now: float) -> None:
        unproven = self._tells_nothing(batch)
        heals = batch.claim is not None and batch.claim.segment.heals
        verify = heals or (unproven and (self._first or batch.claim is not None))
        self._first = False
        self._alone = not self._is_fresh(batch.max_timestamp, now)
        self._confirmed_at = batch.sent_at
        self._failures = 0
        self._troubled_since = None
        self.records += batch.count
        self.bytes += len(batch.view)
        self.acked_upstream = batch.next_upstream
        self.acked_downstream = batch.downstream + batch.count
        last = batch.runs[-1]
        self._last_upstream = last.upstream + last.length - 1
        self._last_downstream = self.acked_downstream - 1
        if self.bearings is not None:
            self.appended = self.bearings.target_topic_id, self.acked_downstream
        self.acked_timestamp_ms = batch.max_timestamp
        self._claim_proven = not (unproven or heals) and (batch.claim is not None or self._claim_proven)
        if batch.completes is not None and self._claim_proven:
            self.confirmed.append(dataclasses.replace(batch.completes.segment, confirmed=True))
        self._pass_over(now)
        if verify and self.stage is Stage.RUNNING:
            why = "the target had lost records" if heals else "its acknowledgements can't tell a rival's batch"
            self.doubt(f"{why}: the appended batch is looked up", now)
            self.seek_at, self._failures, self._verifying = now, 0, True

    def _on_error(self, batch: Batch, ack: Ack, now: float) -> None:
        why = refused(batch, ack, self.route.target_topic)
        if ack.error == ErrorCode.MESSAGE_TOO_LARGE and batch.count > 1:
            self._intake.split(len(batch.view))
            self.doubt(f"{why.words}: it is split", now)
            self.seek_at = now
        else:
            self.refused = why if ack.error in LIMITS else None
            self.act_on(ack.error, why.words, now)

    def stamped(self) -> None:
        """Take note that the target stamps records itself."""
        self._stamped = True

    def limited(self, why: Refused, settings: Mapping[str, str]) -> None:
        """Add the target's limits, now known, to the reason of a refusal."""
        if self.reason == why.words:
            self.reason = why.with_limits(settings)

    def act_on(self, error: int, reason: str, now: float) -> None:
        """Do as the table of verdicts says about an error."""
        if verdict(error) in (ErrorAction.PARK, ErrorAction.STOP):
            self.park(reason, now, cause_of_error(error))
            return
        self.doubt(reason, now, cause_of_error(error))
        if verdict(error) is ErrorAction.RETRY:
            self.seek_at = max(self.seek_at, now + _SHORTEST_RETRY_S)

    def _finish_if_done(self) -> None:
        if self.goal is not None and self.acked_upstream >= self.goal and not self.in_flight:
            self.drop_queue()
            self.stage = Stage.DONE

    def is_led_by(self, broker: int) -> bool:
        """True if the target partition's leader is this broker, as far as known."""
        return self.bearings is not None and self.bearings.target_leader == broker

    def give_up(self) -> None:
        """Release all batches at the epoch's end; batches still in flight are in doubt."""
        self.drop_queue()
        for batch in self.in_flight:
            batch.frame.release()
        self.in_flight.clear()

    def drop_queue(self) -> None:
        """Forget fetched and unsent batches, to be fetched again later."""
        self._oldest = self.acked_upstream, self.oldest_ms
        self.backlog.drop()


def _leads_to(head: Batch, sequence: int, upstream: int) -> bool:
    """True if a position is the next batch's place; a gap may lie before the batch."""
    return (head.sequence, head.follows) == (sequence, upstream)
