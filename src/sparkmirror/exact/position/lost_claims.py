"""Claims that the segments topic has lost, as the logs on both sides show it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

from sparkmirror.exact.durable.claim_log import ClaimLog
from sparkmirror.exact.durable.claims import TargetPartition
from sparkmirror.exact.position.cause import Cause
from sparkmirror.exact.position.decision import SEGMENTS_LOST, Doubt, Position, TargetReading
from sparkmirror.exact.position.last_records import Likeness, LogSide, Tail, compare, tail_of
from sparkmirror.exact.position.loss_detection import TELL_US
from sparkmirror.exact.position.route import PartitionPair, Refusal
from sparkmirror.kafka.wire.topic_ids import NO_ID, same_topic
from sparkmirror.kafka.wire.topic_partition import TopicPartition

LOOKS = 2
"""Looks at different last records before the newest claim is ended."""
OWN_LOOKS = 8
"""Looks where this process has copied.

The process may know the lost claims, and write them again.
"""


class _Comparison(NamedTuple):
    """Last records compared, and how many looks had the same result."""

    tail: Tail
    likeness: Likeness
    number: int

    @property
    def is_copy(self) -> bool:
        return self.likeness is Likeness.SAME or self.likeness is Likeness.ALIKE


class LostClaims:
    """Examiner for positions that only a claim's endless last run tells."""

    def __init__(self, claim_log: ClaimLog) -> None:
        self.last: Mapping[PartitionPair, tuple[int, int] | None] = {}
        """Source and target offset of the last record that this process has copied."""
        self._claim_log = claim_log
        self._compared: dict[TargetPartition, _Comparison] = {}
        """Each partition's newest comparison."""

    def compare(
        self,
        source: LogSide,
        target: LogSide,
        positions: Mapping[PartitionPair, Position | Doubt],
        read: Mapping[TopicPartition, TargetReading],
    ) -> dict[PartitionPair, Likeness]:
        """Tell whether these copies end with the source's records.

        A place that was compared before, or that this process itself has come to, is not compared again.
        """
        results: dict[PartitionPair, Likeness] = {}
        tails: dict[PartitionPair, Tail] = {}
        for route, position in positions.items():
            if isinstance(position, Doubt) or (tail := tail_of(position)) is None:
                continue
            key = target.topic_ids[route.target_topic], route.partition
            is_known = (tail.upstream, tail.downstream) == self.last.get(route)
            before = self._compared.get(key)
            is_known = is_known or (before is not None and before.tail == tail and before.is_copy)
            same_source = same_topic(position.source_topic_id or NO_ID, source.topic_ids[route.source_topic])
            if is_known or not same_source:
                continue
            if read[route.target].high_watermark > tail.downstream:
                tails[route] = tail
            else:
                results[route] = Likeness.NOT_YET
        return results | compare(source, target, tails)

    def refusal(
        self, topic_id: bytes, route: PartitionPair, position: Position, likeness: Likeness | None, cut_at: int | None
    ) -> Refusal | None:
        """Return a refusal if the copy's last records show that claims were lost.

        The source's log is the copied log up to `cut_at`, if known. The first looks may have met moving logs, or
        claims that this process is about to write again. At the last look the newest claim that is left is ended, so
        that nobody takes it for true after its announced records.
        """
        tail, claim = tail_of(position), position.last_claim
        if tail is None or claim is None:
            return None
        if likeness is Likeness.NOT_YET:
            reason = "its last copied record is compared with the source's once the target's replicas have it"
            return Refusal(reason, transient=True, cause=Cause.POSITION)
        look = self._look((topic_id, route.partition), tail, likeness)
        is_cut = cut_at is not None and cut_at <= tail.upstream
        if likeness is Likeness.SAME and cut_at is not None and tail.upstream - tail.records < cut_at <= tail.upstream:
            return Refusal(_newer_epoch(tail), cause=Cause.CLAIMS_LOST)
        if not claim.ended and (likeness is not Likeness.DIFFERENT or is_cut):
            return None
        is_surely_the_copied_log = claim.source_leader_epoch >= 0 and claim.source_topic_id != NO_ID
        reason = _no_copy(tail, may_be_another_log=not is_surely_the_copied_log)
        if not claim.ended and look < (OWN_LOOKS if self.last.get(route) is not None else LOOKS):
            return Refusal(reason, transient=True, cause=Cause.CLAIMS_LOST)
        if not claim.ended:
            self._claim_log.revise([dataclasses.replace(claim, ended=True)], ())
        return Refusal(reason, cause=Cause.CLAIMS_LOST)

    def _look(self, partition: TargetPartition, tail: Tail, likeness: Likeness | None) -> int:
        """Note a comparison; return how many looks had its result."""
        if likeness is None:
            return 0
        before = self._compared.get(partition)
        number = before.number + 1 if before is not None and before[:2] == (tail, likeness) else 1
        self._compared[partition] = _Comparison(tail, likeness, number)
        return number


def _no_copy(tail: Tail, *, may_be_another_log: bool) -> str:
    otherwise = ", or the source's log is not the copied log any more" if may_be_another_log else ""
    return (
        f"target offset {tail.downstream} is no copy of source offset {tail.upstream}, as the newest claim says: the "
        f"segments topic has lost newer claims (an unclean leader election?){otherwise}; {TELL_US} ({SEGMENTS_LOST})"
    )


def _newer_epoch(tail: Tail) -> str:
    return (
        f"source offset {tail.upstream} was copied, but has a newer leader epoch than the newest claim says: the "
        "segments topic has lost newer claims, or the source's log was cut and written again alike; "
        f"{TELL_US} ({SEGMENTS_LOST})"
    )


def claims_gone(target: TargetReading, appended: int) -> str:
    """Return the reason for a partition with the flow's records, and no claim."""
    return (
        f"the target partition holds offsets {target.log_start} to {target.log_end_after - 1}, and this flow's notes "
        f"say that it wrote there up to offset {appended - 1}; but the segments topic has none of its claims any more: "
        f"{TELL_US} ({SEGMENTS_LOST})"
    )
