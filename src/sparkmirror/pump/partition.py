"""One partition on its way: a state machine without any I/O.

    SEEKING ──take()──> RUNNING ──doubt()──> DRAINING ──(nothing in flight)──> SEEKING
       │                   │                                      park() from anywhere
       └──(quiet rule)─────┘──(until reached)──> DONE

After any doubt there is one answer: drop what is queued, drain what is in flight, read the position,
send ONE batch alone until it is acknowledged, go on (invariant 5, R3).
"""

from __future__ import annotations

from collections import deque
from enum import Enum

from sparkmirror.cluster.error_codes import error_name
from sparkmirror.offsets.reading import Bearings, Route
from sparkmirror.offsets.segments import Identity, Segment
from sparkmirror.pump.verdicts import Verdict, explanation, verdict
from sparkmirror.wire.batches import TRANSACTIONAL_BIT, batch_headers, rewrite, slow_path_reason
from sparkmirror.wire.buffers import Frame
from sparkmirror.wire.fetch import FetchPosition
from sparkmirror.wire.produce import Ack

MAX_CONFIRMATION_AGE_S = 3.0
"""A position older than this is read again before anything is sent (R6)."""

GRACE_S = 6.0
"""The quiet rule's wait (R5): a killed predecessor lives 2 s on (Spark's kill delay), then may send for R6's 3 s."""

NOTHING_SENT_CRC = 0
"""In a claim that is made before its first batch is known."""

PATIENCE_S = 60.0
"""How long a partition that has an end (`until`) may get nowhere before it is parked: `--once` must end."""

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 5.0
_FIRST_PARK_S, _LONGEST_PARK_S = 5.0, 300.0


class Stage(Enum):
    """Where a partition is."""

    SEEKING = "its position must be read"
    RUNNING = "it is copied"
    DRAINING = "what is in flight comes back before its position is read"
    PARKED = "it can't be copied now"
    DONE = "all that was asked for is copied"


class Batch:
    """A batch on its way, already rewritten; `view` is what is sent."""

    __slots__ = (
        "count",
        "crc",
        "downstream",
        "frame",
        "leader_epoch",
        "max_timestamp",
        "next_upstream",
        "sent_at",
        "sequence",
        "upstream",
        "view",
    )

    def __init__(
        self,
        frame: Frame,
        view: memoryview,
        upstream: int,
        count: int,
        sequence: int,
        downstream: int,
        max_timestamp: int,
        crc: int,
    ) -> None:
        self.frame = frame
        self.view = view
        self.upstream = upstream
        self.count = count
        self.next_upstream = upstream + count
        self.sequence = sequence
        self.downstream = downstream
        self.max_timestamp = max_timestamp
        self.crc = crc
        self.sent_at = 0.0
        self.leader_epoch = -1


class PartitionCopy:
    """The copy of one partition. `now` is always `clock.now_s()`."""

    def __init__(
        self,
        route: Route,
        identity: Identity,
        incarnation: int,
        *,
        until: int | None,
        from_latest: bool,
        unclean: bool,
        fresh_after_ms: int,
        max_in_flight: int,
        now: float,
        read_committed: bool = False,
    ) -> None:
        self.route = route
        self.until = until
        self.stage = Stage.SEEKING
        self.reason = ""
        self.seek_at = now
        """When to read the position next, while SEEKING or PARKED."""
        self.asked_at: float | None = None
        """When the reading of the position was asked for that is under way."""
        self.bearings: Bearings | None = None
        self.queue: deque[Batch] = deque()
        self.queued_bytes = 0
        self.in_flight: deque[Batch] = deque()
        self.claim: Segment | None = None
        """A claim that must be durable before the first batch of the queue is sent."""
        self.claim_asked = False
        self.records = 0
        self.bytes = 0
        self.acked_upstream = -1
        self.acked_downstream = -1
        self.source_end = -1
        self._identity = identity
        self._incarnation = incarnation
        self._from_latest = from_latest
        self._fresh_after_ms = fresh_after_ms
        self._max_in_flight = max_in_flight
        self._read_committed = read_committed
        self._upstream = -1
        self._sequence = -1
        self._downstream = -1
        self._fetched_epoch = self._acked_epoch = -1
        self._latest: int | None = None
        self._segment: Segment | None = None
        self._alone = True
        self._confirmed_at = 0.0
        self._failures = 0
        self._troubled_since: float | None = None
        self._quiet = unclean
        self._quiet_until = now + GRACE_S
        self._quiet_sequence: int | None = None
        self._quiet_at = 0.0

    # --- position -------------------------------------------------------------------------------

    def ask(self, now: float) -> None:
        """Its position is being read from now on; nothing is sent until `take` or `refuse`."""
        self.asked_at = now

    def take(self, bearings: Bearings, now: float) -> None:
        """The position was read: start there, or confirm that it is where we think.

        It holds from when the leader was asked: the answer may have lain there while this process was suspended.
        """
        self.asked_at = None
        position = bearings.position
        upstream = position.upstream
        if upstream is None:
            upstream = self._start(bearings)
        same_leaders = self.bearings is not None and (
            self.bearings.target_leader,
            self.bearings.target_topic_id,
        ) == (bearings.target_leader, bearings.target_topic_id)
        self.bearings = bearings
        self.source_end = bearings.source_end
        if self.stage is Stage.RUNNING:
            if same_leaders and self.queue and _leads_to(self.queue[0], position.sequence, upstream):
                self._confirmed_at = bearings.read_at
                self._alone = True
                return
            self.drop_queue()
        if self._must_stay_quiet(position.newest_timestamp_ms, position.sequence, now):
            return
        self._upstream = upstream
        self._sequence = position.sequence
        self._downstream = position.downstream
        self._segment = position.segment
        self._fetched_epoch = self._acked_epoch if upstream == self.acked_upstream else -1
        self.acked_upstream = upstream
        self.acked_downstream = position.downstream
        self._alone = True
        self._confirmed_at = bearings.read_at
        self.reason = ""
        self.stage = Stage.RUNNING
        if self._segment is None and self._from_latest:
            # Durable before there is anything to send: in the next epoch the latest would be another one.
            self.claim = self._claim_at(upstream, position.sequence, position.downstream, NOTHING_SENT_CRC)
        self._finish_if_done()

    def _start(self, bearings: Bearings) -> int:
        """Where a partition begins of which nothing was ever copied; `latest` is that of the first look."""
        if not self._from_latest:
            return bearings.source_start
        if self._latest is None:
            self._latest = bearings.source_end
        return self._latest

    def refuse(self, reason: str, *, transient: bool, now: float) -> None:
        """The position can't be told now."""
        self.asked_at = None
        if self.stage is Stage.RUNNING:
            self.drop_queue()
        if transient and not self._out_of_patience(now):
            self.stage = Stage.SEEKING
            self.reason = reason
            self.seek_at = max(now + self._pause(), self._quiet_at)
        else:
            self.park(reason, now)

    def _must_stay_quiet(self, state_timestamp_ms: int | None, sequence: int, now: float) -> bool:
        """The quiet rule (R5): unguarded after an unclean takeover, wait until nobody moves the position."""
        if not self._quiet:
            return False
        guarded = state_timestamp_ms is not None and state_timestamp_ms >= self._fresh_after_ms
        if guarded and self._quiet_sequence is None:
            return False
        if self._quiet_sequence == sequence:
            self._quiet = False
            return False
        self._be_quiet(sequence, now)
        return True

    def _be_quiet(self, sequence: int, now: float) -> None:
        self._quiet_sequence = sequence
        self.stage = Stage.SEEKING
        self.reason = "waits until no predecessor can be writing any more (records too old to be guarded)"
        self.seek_at = self._quiet_at = now + GRACE_S

    # --- doubt ----------------------------------------------------------------------------------

    def doubt(self, reason: str, now: float) -> None:
        """Something is unsure: drop, drain, read the position again after a pause."""
        if self.stage in (Stage.PARKED, Stage.DONE):
            return
        if self._out_of_patience(now) and not self.in_flight:
            self.park(reason, now)
            return
        self.drop_queue()
        self.reason = reason
        self.seek_at = max(now + self._pause(), self._quiet_at)
        self.stage = Stage.DRAINING if self.in_flight else Stage.SEEKING

    def park(self, reason: str, now: float) -> None:
        """Leave it, and look again after a while; the pause grows with each time."""
        self.drop_queue()
        self.reason = reason
        self.stage = Stage.PARKED
        self.seek_at = now + min(_FIRST_PARK_S * 2**self._failures, _LONGEST_PARK_S)
        self._failures += 1

    def lost_in_flight(self, now: float, reason: str) -> None:
        """The connection broke: what was in flight on it may or may not be in the log."""
        for batch in self.in_flight:
            batch.frame.release()
        self.in_flight.clear()
        if self.stage is Stage.RUNNING or self.stage is Stage.DRAINING:
            self.stage = Stage.RUNNING
            self.doubt(reason, now)

    def wants_reading(self, now: float) -> bool:
        """Whether its position should be read now."""
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
        """Where to fetch from, or None while nothing should be fetched."""
        if self.stage is not Stage.RUNNING or self.bearings is None:
            return None
        if self.until is not None and self._upstream >= self.until:
            return None
        return FetchPosition(self._upstream, self.bearings.source_leader_epoch, self._fetched_epoch)

    def feed(self, frame: Frame, records: memoryview, high_watermark: int, now: float) -> None:
        """Take the batches of one fetch answer; they are rewritten in place and queued."""
        self.source_end = high_watermark
        for position, header in batch_headers(records):
            if header.is_corrupt(records, position):
                self._stop_at(f"the batch at source offset {self._upstream} is corrupt (its CRC does not match)", now)
                return
            reason = slow_path_reason(header)
            if reason is None and self._read_committed and header.attributes & TRANSACTIONAL_BIT:
                reason = "a transactional batch (isolation.level=read_committed)"
            if reason is None and header.base_offset != self._upstream:
                if header.next_offset <= self._upstream:
                    continue
                reason = (
                    f"the wanted offset {self._upstream} inside a batch"
                    if header.base_offset < self._upstream
                    else f"a gap in the log ({self._upstream} to {header.base_offset - 1} are missing)"
                )
            if reason is not None:
                self._stop_at(f"{reason} at source offset {header.base_offset} needs the slow path", now)
                return
            if self._quiet and self._breaks_quiet(header.max_timestamp, now):
                return
            size = header.size
            crc = rewrite(
                records,
                position,
                size,
                header.attributes,
                self._identity.producer_id,
                self._identity.producer_epoch,
                self._sequence,
            )
            batch = Batch(
                frame,
                records[position : position + size],
                self._upstream,
                header.records,
                self._sequence,
                self._downstream,
                header.max_timestamp,
                crc,
            )
            frame.hold()
            self.queue.append(batch)
            self.queued_bytes += size
            self._upstream = batch.next_upstream
            self._sequence += header.records
            self._downstream += header.records
            self._fetched_epoch = batch.leader_epoch = header.leader_epoch
            if self._segment is None and self.claim is None:
                self.claim = self._claim_at(batch.upstream, batch.sequence, batch.downstream, batch.crc)
            if self.until is not None and self._upstream >= self.until:
                return

    def _stop_at(self, reason: str, now: float) -> None:
        """Park before a batch that can't be copied, once everything before it is."""
        if not self.queue and not self.in_flight:
            self.park(reason, now)

    def _breaks_quiet(self, max_timestamp: int, now: float) -> bool:
        if now >= self._quiet_until and self._quiet_sequence is None:
            self._quiet = False
            return False
        if max_timestamp >= self._fresh_after_ms:
            return False
        sequence = self.queue[0].sequence if self.queue else self._sequence
        self.drop_queue()
        self._be_quiet(sequence, now)
        if self.in_flight:
            self.stage = Stage.DRAINING
        return True

    def _claim_at(self, upstream: int, sequence: int, downstream: int, crc: int) -> Segment:
        assert self.bearings is not None  # noqa: S101 - RUNNING implies bearings
        return Segment(
            target_topic_id=self.bearings.target_topic_id,
            partition=self.route.partition,
            sequence=sequence,
            incarnation=self._incarnation,
            producer_id=self._identity.producer_id,
            producer_epoch=self._identity.producer_epoch,
            source_topic_id=self.bearings.source_topic_id,
            source_leader_epoch=self.bearings.source_leader_epoch,
            upstream=upstream,
            downstream=downstream,
            crc=crc,
        )

    def claimed(self, claim: Segment) -> None:
        """The claim is durable: its first batch may be sent."""
        self.claim_asked = False
        if self.claim is claim:
            self._segment, self.claim = claim, None

    # --- out ------------------------------------------------------------------------------------

    def sendable(self, now: float) -> bool:
        """Whether the head of the queue may be sent now."""
        return (
            self.stage is Stage.RUNNING
            and bool(self.queue)
            and self.claim is None
            and self.asked_at is None
            and len(self.in_flight) < self._most_in_flight()
            and not self._stale(now)
        )

    def _most_in_flight(self) -> int:
        """One, unless the leader's state is sure to outlive the answers.

        Old records take the state with them at the broker's next tick; then a batch would be accepted though its
        predecessor was refused (`exactness.md` section 0, 3).
        """
        if self._alone or self.queue[0].max_timestamp < self._fresh_after_ms:
            return 1
        return self._max_in_flight

    def send(self, now: float) -> Batch:
        """The batch to send; it is in flight from now on."""
        batch = self.queue.popleft()
        batch.sent_at = now
        self.queued_bytes -= len(batch.view)
        self.in_flight.append(batch)
        return batch

    def acknowledge(self, ack: Ack, now: float) -> Batch | None:
        """An answer for the oldest batch in flight; returns the batch if it is now appended, once, by us."""
        batch = self.in_flight.popleft()
        batch.frame.release()
        if self.stage is Stage.DRAINING:
            if not self.in_flight:
                self.stage = Stage.SEEKING
            return None
        if self.stage is not Stage.RUNNING:
            return None
        if ack.error:
            self._on_error(batch, ack, now)
        elif ack.log_append_time_ms >= 0 and ack.log_append_time_ms != batch.max_timestamp:
            self.park("the target topic stamps records itself (message.timestamp.type=LogAppendTime)", now)
        elif ack.log_append_time_ms >= 0:
            self.doubt(f"a rival had already written source offset {batch.upstream}", now)
        elif ack.base_offset != batch.downstream:
            self.doubt(f"source offset {batch.upstream} landed at {ack.base_offset}, not at {batch.downstream}", now)
        else:
            self._alone = batch.max_timestamp < self._fresh_after_ms
            self._confirmed_at = batch.sent_at
            self._acked_epoch = batch.leader_epoch
            self._failures = 0
            self._troubled_since = None
            self.records += batch.count
            self.bytes += len(batch.view)
            self.acked_upstream = batch.next_upstream
            self.acked_downstream = batch.downstream + batch.count
            self._finish_if_done()
            return batch
        return None

    def _on_error(self, batch: Batch, ack: Ack, now: float) -> None:
        words = explanation(ack.error)
        detail = ack.record_errors[0][1] if ack.record_errors else ack.message
        reason = f"source offset {batch.upstream}: {error_name(ack.error)}"
        reason += f", {words}" if words else ""
        reason += f" ({len(batch.view)} bytes)" if ack.error == 10 else ""
        reason += f": {detail}" if detail else ""
        if verdict(ack.error) is Verdict.SEEK:
            self.doubt(reason, now)
        else:
            self.park(reason, now)

    def _finish_if_done(self) -> None:
        if self.until is not None and self.acked_upstream >= self.until and not self.in_flight:
            self.drop_queue()
            self.stage = Stage.DONE

    def is_led_by(self, broker: int) -> bool:
        """Whether the target's leader is this broker, as far as is known."""
        return self.bearings is not None and self.bearings.target_leader == broker

    def give_up(self) -> None:
        """The epoch is over: hold nothing any more. What is still in flight is in doubt."""
        self.drop_queue()
        for batch in self.in_flight:
            batch.frame.release()
        self.in_flight.clear()

    def drop_queue(self) -> None:
        """Forget what was fetched and not sent; it is fetched again when its turn comes."""
        for batch in self.queue:
            batch.frame.release()
        self.queue.clear()
        self.queued_bytes = 0
        self.claim = None


def _leads_to(head: Batch, sequence: int, upstream: int) -> bool:
    """Whether a position is that of the batch that would be sent next."""
    return (head.sequence, head.upstream) == (sequence, upstream)
