"""Write one flow's claims, before their batches, and again once acknowledged."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import NamedTuple

from sparkmirror.config import FlowConfig
from sparkmirror.exact.durable.claim_log import TOO_LARGE, ClaimLog
from sparkmirror.exact.durable.claims import Claim, ClaimKey, claim_record, segments_topic
from sparkmirror.exact.position.cause import Cause
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.pump.background import Background
from sparkmirror.pump.batch import PendingClaim
from sparkmirror.pump.loop import Loop
from sparkmirror.pump.partition import PartitionCopy

CONFIRM_S = 1.0
"""Interval of writing confirmed claims, their greatest distance behind the copy."""
CUTS_S = 60.0
"""Interval of asking whether the segments topic still has the written claims."""


class _Unwritten(NamedTuple):
    """Reason why a partition's claims are not known to be durable."""

    reason: str
    cause: Cause


def _failure(error: Exception) -> _Unwritten:
    return _Unwritten(f"its claim could not be written: {error}", Cause.POSITION)


class ClaimWriter:
    """Write one flow's claims.

    The thread is for claims only, since a live tail with gaps waits for claims. Claims that come while others are being
    written are written next, all at once. `on_claimed` is called for each partition with a claim that has become
    durable, `on_unclaimed` with the reason and its cause, and `on_confirmed` after its confirmed claims were written,
    or could not be. Claims in a partition of the segments topic that takes none now (without a leader, say) fail alone,
    and so does a claim that is too large for the topic. `on_cut` is called with the segments topic's
    partitions that have lost claims, after as many as are remembered were written again.
    """

    def __init__(
        self,
        flow: FlowConfig,
        loop: Loop,
        client: ClusterClient,
        *,
        on_claimed: Callable[[PartitionCopy], None],
        on_unclaimed: Callable[[PartitionCopy, str, Cause], None],
        on_confirmed: Callable[[PartitionCopy], None],
        on_cut: Callable[[Set[int]], None],
        homes: int,
    ) -> None:
        self._loop = loop
        self._log = ClaimLog(TopicLog(client, segments_topic(flow.source.alias)), homes, remembers=True)
        self._background = Background(loop, f"sparkmirror claims {flow.name}", (client,))
        self._on_claimed = on_claimed
        self._on_unclaimed = on_unclaimed
        self._on_confirmed = on_confirmed
        self._on_cut = on_cut
        self._look_at = loop.now + CUTS_S
        self.wanted: dict[PartitionCopy, tuple[PendingClaim, ...]] = {}
        """Claims to write at the next `flush`."""
        self.writing: frozenset[PartitionCopy] = frozenset()
        """Partitions with claims that are being written."""
        self._confirming: list[dict[PartitionCopy, list[Claim]]] = []
        """Confirmed claims that are being written, by request."""
        self._to_confirm: dict[PartitionCopy, list[Claim]] = {}
        self._unconfirmed: dict[PartitionCopy, set[ClaimKey]] = defaultdict(set)
        """Acknowledged claims that are not known to be durable as confirmed."""
        self._confirm_at = 0.0

    def reach(self) -> None:
        """Connect, since a partition that comes may need a claim at once."""
        self._background.do(self._log.reach, lambda _: None, lambda _: None)

    def want(self, copy: PartitionCopy, claims: tuple[PendingClaim, ...]) -> None:
        """Have these claims for a partition written next, and no others."""
        if claims:
            self.wanted[copy] = claims
        elif copy in self.wanted:
            del self.wanted[copy]

    def confirm(self, copy: PartitionCopy, claims: Iterable[Claim]) -> None:
        """Have acknowledged claims written again, soon."""
        claims = tuple(claims)
        self._to_confirm.setdefault(copy, []).extend(claims)
        self._unconfirmed[copy].update(claim.key for claim in claims)

    def confirm_only(self, copy: PartitionCopy, end: int) -> None:
        """Keep for confirmation only claims up to `end`; records beyond may be lost since.

        The position's reader has confirmed all that the log shows.
        """
        claims = self._to_confirm.pop(copy, ())
        self._unconfirmed.pop(copy, None)
        self._forget_written(copy, end)
        if kept := [claim for claim in claims if claim.sequence + claim.announced <= end]:
            self._to_confirm[copy] = kept

    def settle(self, copy: PartitionCopy) -> bool:
        """Confirm a partition's claims now; True if none is being written."""
        if copy in self._to_confirm:
            self._confirm_at = self._loop.now
            return False
        is_confirming = any(copy in copies for copies in self._confirming)
        return not is_confirming and copy not in self.wanted and copy not in self.writing

    def is_confirmed(self, copy: PartitionCopy) -> bool:
        """True if all a partition's acknowledged claims are durable as confirmed."""
        return not self._unconfirmed.get(copy)

    def forget(self, copy: PartitionCopy) -> None:
        """Forget a settled partition, which another task copies from now on."""
        self._unconfirmed.pop(copy, None)
        self._forget_written(copy, 0)

    def _forget_written(self, copy: PartitionCopy, end: int) -> None:
        """Have no claim beyond a sequence written again after a cut.

        The claim's records may be lost since.
        """
        if copy.reading is not None:
            partition = copy.reading.target_topic_id, copy.route.partition
            self._background.do(lambda: self._log.forget(partition, end), lambda _: None, lambda _: None)

    def check(self) -> None:
        """Look now and then whether the segments topic was cut."""
        if self._loop.now >= self._look_at:
            self._look_at = self._loop.now + CUTS_S
            self._background.do(self._log.look_for_cuts, lambda _: self._tell_cut(), lambda _: self._tell_cut())

    def look_now(self) -> None:
        """Look soon whether the segments topic was cut.

        A reading has found claims missing.
        """
        self._look_at = self._loop.now

    def _tell_cut(self) -> None:
        if cut := self._log.take_cut():
            self._on_cut(cut)

    def confirm_none_at(self, broker: int) -> None:
        """Keep no claims on a target broker's partitions: their leader may change."""
        for copy in [copy for copy in self._to_confirm if copy.is_led_by(broker)]:
            del self._to_confirm[copy]

    def flush(self) -> None:
        """Begin to write what is wanted."""
        if self.wanted and not self.writing:
            begun, self.wanted = self.wanted, {}
            self.writing = frozenset(begun)
            for copy, pending in begun.items():
                copy.claiming(len(pending))
            claims = [(copy, each.claim) for copy, pending in begun.items() for each in pending]
            self._background.do(
                lambda: self._write(claims),
                lambda failed: self._claimed(begun, failed),
                lambda error: self._claimed(begun, dict.fromkeys(begun, _failure(error))),
            )
        if self._to_confirm and self._loop.now >= self._confirm_at:
            self._write_confirmed()

    def _write_confirmed(self) -> None:
        """Write acknowledged claims again, confirmed; failures cost a look at the log."""
        begun, self._to_confirm = self._to_confirm, {}
        claims = [(copy, claim) for copy, wanted in begun.items() for claim in wanted]
        self._confirming.append(begun)
        self._confirm_at = self._loop.now + CONFIRM_S
        self._background.do(
            lambda: self._write(claims),
            lambda failed: self._confirmed(begun, failed),
            lambda _: self._written(begun),
        )

    def _write(self, claims: Sequence[tuple[PartitionCopy, Claim]]) -> dict[PartitionCopy, _Unwritten]:
        """Make claims durable, in order; return why they may not be, by partition.

        Nothing is written behind such a claim in its partition. Claims that are too large together are halved.
        """
        failed: dict[PartitionCopy, _Unwritten] = {}
        for home, error in self._log.claim_each([claim for _, claim in claims]).items():
            theirs = [(copy, claim) for copy, claim in claims if self._home(claim) == home]
            if getattr(error, "code", 0) not in TOO_LARGE:
                failed |= {copy: _failure(error) for copy, _ in theirs}
            elif len(theirs) == 1:
                failed |= {copy: self._too_large(claim) for copy, claim in theirs}
            else:
                middle = len(theirs) // 2
                first = self._write(theirs[:middle])
                rest = [claim for claim in theirs[middle:] if claim[0] not in first]
                failed |= first | (self._write(rest) if rest else {})
        return failed

    def _home(self, claim: Claim) -> int:
        return self._log.home((claim.target_topic_id, claim.partition))

    def _too_large(self, claim: Claim) -> _Unwritten:
        size = len(claim_record(claim)[1] or b"")
        limit = f"topic {self._log.topic} takes: raise max.message.bytes of that topic at the target"
        return _Unwritten(f"its claim of {size} bytes is larger than {limit}", Cause.TOO_LARGE)

    def _confirmed(self, claims: dict[PartitionCopy, list[Claim]], failed: Mapping[PartitionCopy, _Unwritten]) -> None:
        for copy, written in claims.items():
            if copy in self._unconfirmed and copy not in failed:
                self._unconfirmed[copy] -= {claim.key for claim in written}
        self._written(claims)

    def _written(self, claims: dict[PartitionCopy, list[Claim]]) -> None:
        self._confirming.remove(claims)
        self._tell_cut()
        for copy in claims:
            self._on_confirmed(copy)

    def _claimed(
        self, claims: dict[PartitionCopy, tuple[PendingClaim, ...]], failed: Mapping[PartitionCopy, _Unwritten]
    ) -> None:
        self.writing = frozenset()
        self._tell_cut()
        for copy, written in claims.items():
            if copy in failed:
                continue
            for pending in written:
                pending.durable = True
            self._on_claimed(copy)
        for copy, failure in failed.items():
            self._on_unclaimed(copy, failure.reason, failure.cause)

    def close(self) -> None:
        self._background.close()
