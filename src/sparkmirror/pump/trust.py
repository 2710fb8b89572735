"""Trust in the target leader's state and answers, the bound on batches in flight.

The rules are R2, R3, R4, R6 and R19.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from sparkmirror.pump.batch import Batch

MAX_CONFIRMATION_AGE_S = 3.0
"""Greatest age of a position; an older position is read again before sending (R6)."""

ASK_AGAIN_S = 300.0
"""Interval of asking again for settings that the target has not told."""


STAMPING = "message.timestamp.type"
"""The target topic's setting that tells a `Stamping`."""


class Freshness(NamedTuple):
    """Timestamp limit that the leader's state is sure to outlive (R4).

    Records with timestamps before `after_ms` may take the state with them; the limit holds for the time `since`, and
    rises with time, because fresh records grow old while the pump runs.
    """

    after_ms: int
    since: float

    def covers(self, timestamp_ms: int, now: float) -> bool:
        """True if the leader's state is sure to outlive a record with that timestamp."""
        return timestamp_ms >= self.after_ms + (now - self.since) * 1000


class Pace(Enum):
    """Reason for the number of batches in flight."""

    FIRST = "one batch alone: it is the first since a reading, look-ups not counted (R3)"
    ALONE = "one batch alone: the last acknowledged records were old (R4)"
    FULL = "as many as the settings allow"


class ClaimProof(Enum):
    """Proof by acknowledgements that the newest claim's batches are no duplicates."""

    PROVEN = "each acknowledgement so far shows that this pump has appended the batch"
    LACKING = "a batch may be a rival's"


class NextReading(Enum):
    """Purpose of the next position reading."""

    START = "the place to continue from"
    LOOK_UP = "proof that an acknowledged batch is there"


class Stamping(Enum):
    """The target's record timestamps (`message.timestamp.type`)."""

    CREATE_TIME = "records keep their timestamps, as far as known"
    LOG_APPEND_TIME = "the target stamps records; answers hide duplicates (R2)"
    UNKNOWN = "an answer had a time, from a rival's batch or from a target that stamps records (R2)"


_STAMPINGS = {"CreateTime": Stamping.CREATE_TIME, "LogAppendTime": Stamping.LOG_APPEND_TIME}


class Trust:
    """Trust of one partition's copy in the target leader."""

    def __init__(self, fresh: Freshness, max_in_flight: int) -> None:
        self.fresh = fresh
        self.pace = Pace.FIRST
        self.claim_proof = ClaimProof.PROVEN
        self.next_reading = NextReading.START
        self.stamping = Stamping.CREATE_TIME
        self.confirmed_at = 0.0
        """Time at which the target was last known to be at the position."""
        self._state_ms: int | None = None
        """Timestamp of the leader's state after all sent batches; None: unknown."""
        self._max_in_flight = max_in_flight
        self._ask_again_at = 0.0

    def is_stale(self, now: float) -> bool:
        """True if the position must be read before anything is sent (R6)."""
        return now - self.confirmed_at > MAX_CONFIRMATION_AGE_S

    def is_guarded(self, head: Batch, now: float) -> bool:
        """True if the leader's state is sure to outlive the next batch's request (R5).

        The state is there before the batch, and stays there after it.
        """
        covers, state_ms = self.fresh.covers, self._state_ms
        return state_ms is not None and covers(state_ms, now) and covers(head.max_timestamp, now)

    def allows(self, head: Batch, in_flight: int, now: float, *, compacted: bool) -> bool:
        """True if the next batch may be sent next to so many in flight."""
        if now - self.confirmed_at > MAX_CONFIRMATION_AGE_S:
            return False
        if not in_flight:
            return True
        return in_flight < self._max_in_flight and in_flight < self.most_in_flight(head, now, compacted=compacted)

    def most_in_flight(self, head: Batch, now: float, *, compacted: bool) -> int:
        """Return the most batches that may be in flight now: 1, or as the settings say.

        More than 1 is safe only if the leader is sure to keep the flow's state until the leader has answered. At the
        broker's next check the leader forgets old records' state. Then the leader refuses one batch, and appends the
        next batch all the same (R3, R4). In a compacted log a rival pump may have seen other records (R19): if the
        rival has appended as many records, this pump's batch is a duplicate to the broker, but the next batch would be
        appended.
        """
        if self.pace is not Pace.FULL or compacted or not self.fresh.covers(head.max_timestamp, now):
            return 1
        if self.stamping is Stamping.UNKNOWN or (head.claim and self.tells_nothing(head)):
            return 1
        return self._max_in_flight

    def usually_in_flight(self, *, compacted: bool) -> int:
        """Return how many batches in flight the records' age and the log allow."""
        return 1 if compacted or self.pace is Pace.ALONE else self._max_in_flight

    @property
    def is_claim_proven(self) -> bool:
        """True if acknowledgements prove the newest claim's batches no duplicates."""
        return self.claim_proof is ClaimProof.PROVEN

    def tells_nothing(self, batch: Batch) -> bool:
        """True if a batch's acknowledgement can't tell a duplicate (docs/exactness.md)."""
        return self.stamping is not Stamping.CREATE_TIME or batch.max_timestamp < 0

    def must_ask(self, now: float) -> bool:
        """True if settings should be asked for again; then False for a while."""
        if self.stamping is not Stamping.UNKNOWN or now < self._ask_again_at:
            return False
        self._ask_again_at = now + ASK_AGAIN_S
        return True

    def learn(self, settings: Mapping[str, str]) -> None:
        """Take the target topic's settings.

        The target may not tell: DESCRIBE_CONFIGS is missing, or the topic is not known yet.
        """
        self.stamping = _STAMPINGS.get(settings.get(STAMPING, ""), self.stamping)

    def start(self, read_at: float, state_ms: int | None) -> None:
        """Continue from a position, or from a look-up, with the state's timestamp."""
        is_fresh = state_ms is not None and self.fresh.covers(state_ms, read_at)
        looked_up = Pace.FULL if is_fresh else Pace.ALONE
        self.pace = looked_up if self.next_reading is NextReading.LOOK_UP else Pace.FIRST
        self.next_reading = NextReading.START
        self.confirmed_at = read_at
        self._state_ms = state_ms

    def confirm(self, read_at: float, state_ms: int | None) -> None:
        """Take a reading that agrees with the copy under way."""
        self.pace = Pace.FIRST
        self.confirmed_at = read_at
        self._state_ms = state_ms

    def sent(self, batch: Batch) -> None:
        """Note a batch on its way: the next batch finds the state that it leaves."""
        self._state_ms = batch.max_timestamp

    def note(self, batch: Batch, now: float, *, timed: bool = False) -> bool:
        """Note an appended batch; return True if a reading must look the batch up.

        `timed` is True if the acknowledgement has an append time. A target that stamps records gives each
        acknowledgement a time, so without a time the batch was appended, and the records keep their timestamps.
        """
        if self.stamping is Stamping.UNKNOWN and not timed:
            self.stamping = Stamping.CREATE_TIME
        claim, silent = batch.claim, self.tells_nothing(batch)
        heals = claim is not None and claim.claim.heals
        unsure = self.pace is Pace.FIRST or claim is not None or self.stamping is Stamping.UNKNOWN
        look_up = heals or (silent and unsure)
        self.pace = Pace.FULL if self.fresh.covers(batch.max_timestamp, now) else Pace.ALONE
        self.confirmed_at = batch.sent_at
        if silent or heals:
            self.claim_proof = ClaimProof.LACKING
        elif claim is not None:
            self.claim_proof = ClaimProof.PROVEN
        return look_up
