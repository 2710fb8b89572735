"""State of one partition's copy: the work to begin, and what is told of it.

Only the events in `partition` change the state, but that `ready` hands out claims and questions once.
"""

from __future__ import annotations

from collections import deque

from sparkmirror.exact.durable.claims import Claim
from sparkmirror.exact.durable.identity import Identity
from sparkmirror.exact.durable.noted_progress import NOTHING_REPORTED, ReportedProgress
from sparkmirror.exact.position.route import PartitionPair, PartitionReading
from sparkmirror.kafka.wire.fetch_session import FetchPosition
from sparkmirror.pump.acknowledged import AcknowledgedRecords
from sparkmirror.pump.backlog import Backlog
from sparkmirror.pump.batch import Batch, PendingClaim
from sparkmirror.pump.claimer import Claimer
from sparkmirror.pump.copy_end import CopyEnd
from sparkmirror.pump.intake import Intake
from sparkmirror.pump.quiet import QuietRule
from sparkmirror.pump.ready import HOLD_BACK, Fetch, Question, Ready
from sparkmirror.pump.retry import Retry
from sparkmirror.pump.source_side import SourceSide
from sparkmirror.pump.stage import Stage
from sparkmirror.pump.trouble import NO_TROUBLE
from sparkmirror.pump.trust import Freshness, NextReading, Trust

QUEUE_BYTES = 2 << 20
"""Bytes queued for sending at which fetching of a partition stops on a short line."""


class CopyState:
    """One partition's copy between two events; each `now` is from `clock.now_s()`.

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
        self.source = SourceSide(from_latest=from_latest, reported=reported)
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
        self._start_claim: PendingClaim | None = None
        """Claim without which another round would begin at another end; None: not needed."""
        self._confirm: tuple[Claim, ...] = ()
        """Claims with all batches acknowledged, for the next `ready`."""
        self._question: Question | None = None
        self._fetching: tuple[object, Fetch] = None, HOLD_BACK
        """Last state to fetch in, and its `Fetch`."""

    # --- the work to begin ----------------------------------------------------------------------

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

    # --- what is told ---------------------------------------------------------------------------

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

    def settled(self, now: float) -> PartitionReading | None:
        """Return a resting copy's position, as this pump's acknowledgements show it.

        A successor may continue there without a reading. None: the position must be read, for instance because a claim
        announces batches that were never sent: the reader shortens it.
        """
        progress, reading = self.progress, self.reading
        if self.stage is not Stage.RUNNING or not self.is_idle or self.trust.is_stale(now) or reading is None:
            return None
        if progress.newest is None or self._claimer.announced_to > progress.newest.next_sequence:
            return None
        source_end = reading.source_end if self.source.end is None else self.source.end
        return progress.settled(reading, source_end, self.trust.confirmed_at)

    def is_guarded(self, now: float) -> bool:
        """True if the leader is sure to refuse a late repeat of the queue's head."""
        return self.trust.is_guarded(self.queue[0], now)

    def may_be_written_to(self, now: float) -> bool:
        """True while earlier requests may still arrive (R5)."""
        return self._quiet.may_be_written_to(now)

    @property
    def _is_at_goal(self) -> bool:
        goal, upstream = self.end.goal, self.progress.upstream
        # While a position is being read, `take` decides.
        is_settled = not self.in_flight and self.asked_at is None
        is_settled = is_settled and (self._start_claim is None or self._start_claim.durable)
        return goal is not None and upstream is not None and upstream >= goal and is_settled

    def _must_give_up(self, now: float) -> bool:
        """True if a partition with an end (`until`) has had no progress for too long."""
        return self.retry.is_out_of_patience(now) and self.end.until is not None
