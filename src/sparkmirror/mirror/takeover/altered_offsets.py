"""The operator's choice where the copy continues: a connector's altered offsets.

A position is read from the target, never remembered, so a stored offset alone would change nothing. Like a takeover,
the operator's choice is claimed: from the next sequence on, the records are those from the chosen upstream offset on.
Earlier claims stay true, so every offset translates exactly before and after. Skipped and repeated records are noted in
the ledger.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import NamedTuple

from sparkmirror.config import FlowConfig
from sparkmirror.errors import SparkMirrorError
from sparkmirror.events import Event
from sparkmirror.exact.durable.claim_log import ClaimLog
from sparkmirror.exact.durable.claims import segments_topic, start_claim
from sparkmirror.exact.durable.identity import Identity
from sparkmirror.exact.durable.known_topics import TopicMemory
from sparkmirror.exact.durable.loss_kinds import LossKind
from sparkmirror.exact.durable.losses import LossLedger, halted_at_target, losses_topic
from sparkmirror.exact.durable.noted_progress import ProgressLog, ReportedProgress, TopicProgress
from sparkmirror.exact.position.decision import Doubt
from sparkmirror.exact.position.led_positions import LedPositions
from sparkmirror.exact.position.loss_detection import LedgerPosition, altered
from sparkmirror.exact.position.route import PartitionPair
from sparkmirror.exact.position.target_reading import Unserved, listed_offset
from sparkmirror.kafka.cluster.client import ClusterClient, TopicLeaders
from sparkmirror.kafka.cluster.list_offsets import EARLIEST, LATEST, ListedOffset, list_offsets
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.policy import ReplicationPolicy
from sparkmirror.pump.quiet import GRACE_S

log = logging.getLogger(__name__)


class NotAltered(SparkMirrorError):
    """An offset that can't be set; the message has the reason."""


class _Partition(NamedTuple):
    """A partition to be set, with its topics at the source and the target."""

    route: PartitionPair
    source: TopicLeaders
    target: TopicLeaders


class _CopiedSoFar(NamedTuple):
    """Start of a partition's further copy, by its position.

    Unlike `OurRecords` it says where the next record lands, foreign records included, and whether it is proven.
    """

    sequence: int
    upstream: int | None
    """Next upstream offset; `None` if no record was ever copied."""
    downstream: int
    unproven: bool = False
    """True if pumps halt at this progress until an operator confirms an offset."""


class AlteredOffsets:
    """Set offsets for one flow, which holds the lease and has no pump at work.

    A context manager; blocking.
    """

    def __init__(self, flow: FlowConfig, policy: ReplicationPolicy, identity: Identity) -> None:
        self._flow = flow
        self._policy = policy
        self._identity = identity
        self._stack = ExitStack()
        self._source = ClusterClient(flow.source, f"{flow.name}|sparkmirror-altered-offsets")
        self._target = ClusterClient(flow.target, f"{flow.name}|sparkmirror-altered-offsets")
        self._stack.callback(self._source.close)
        self._stack.callback(self._target.close)
        alias = flow.source.alias
        self._claim_log = ClaimLog(TopicLog(self._target, segments_topic(alias)))
        ledger = TopicLog(self._target, losses_topic(alias))
        self._ledger, self._memory, self._noted = LossLedger(ledger), TopicMemory(ledger), ProgressLog(ledger)

    def __enter__(self) -> AlteredOffsets:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stack.close()

    def go_on_at(self, wanted: Mapping[TopicPartition, int | None], *, unclean: bool) -> None:
        """Let each source partition's copy continue at the given upstream offset.

        `None` stands for where a partition without a copy starts, as `auto.offset.reset` says now. `unclean` is True if
        pumps may still be alive. Either all offsets are set or none, except if a broker fails meanwhile. Raises
        `NotAltered` and `ConnectionError`s.
        """
        partitions = self._located(wanted)
        due = []
        reached = {partition.route: self._reached(partition) for partition in partitions}
        if unclean and partitions:
            time.sleep(GRACE_S)
            again = {partition.route: self._reached(partition) for partition in partitions}
            if again != reached:
                raise NotAltered(f"flow {self._flow.name}: a pump is still writing; try again in a few seconds")
        for partition in partitions:
            so_far, asked = reached[partition.route], wanted[partition.route.source]
            upstream = self._upstream(partition, asked)
            never_copied = so_far.upstream is None and asked is None
            if (so_far.upstream != upstream or so_far.unproven) and not never_copied:
                due.append((partition, so_far, upstream))
        for partition, so_far, upstream in due:
            self._claim(partition, so_far, upstream)

    def _located(self, wanted: Mapping[TopicPartition, int | None]) -> list[_Partition]:
        """Return the partitions that exist on both sides.

        A partition without a copy needs no reset.
        """
        remote = {topic: self._policy.format_remote_topic(self._flow.source.alias, topic) for topic, _ in wanted}
        sources, targets = self._source.metadata(remote), self._target.metadata(remote.values())
        located = []
        for (topic, index), offset in sorted(wanted.items()):
            route = PartitionPair(topic, remote[topic], index)
            sides = sources[topic], targets[remote[topic]]
            missing = next((side for side in sides if side.error or index not in side.partitions), None)
            if missing is None:
                located.append(_Partition(route, *sides))
            elif offset is not None:
                raise NotAltered(f"{topic}-{index}: {missing.name}-{index} is not there yet: start the connector once")
        return located

    def _upstream(self, partition: _Partition, wanted: int | None) -> int:
        (topic, index), source = partition.route.source, partition.source
        leader = source.partitions[index].leader
        start, end = (
            self._listed(list_offsets(self._source, leader, {topic: [index]}, when)[topic, index], partition)
            for when in (EARLIEST, LATEST)
        )
        if wanted is None:
            return start if self._flow.fetch.auto_offset_reset == "earliest" else end
        if wanted > end:
            raise NotAltered(f"{topic}-{index}: the source ends at offset {end}, and has no offset {wanted - 1} yet")
        return wanted

    def _reached(self, partition: _Partition) -> _CopiedSoFar:
        target, topic_id = partition.route.target, partition.target.topic_id
        positions = LedPositions(
            self._target,
            self._claim_log,
            self._ledger,
            self._identity,
            partition.target.partitions[partition.route.partition].leader,
            [partition.route],
            {partition.target.name: partition.target},
        )
        reading = positions.read([target])[target]
        if isinstance(reading, Unserved):
            raise NotAltered(str(reading))
        if not self._identity.own(self._claim_log.claims(topic_id, target[1])) and reading.last_sequence is None:
            return _CopiedSoFar(0, None, reading.log_end_after)
        position = positions.resolve([target])[target].position
        if isinstance(position, Doubt):
            raise NotAltered(f"{target[0]}-{target[1]}: {position.reason}")
        if not reading.is_replicated(position):
            raise NotAltered(
                f"{target[0]}-{target[1]}: its replicas have confirmed offset {reading.high_watermark}, and the "
                f"leader's log ends at {reading.log_end_after}: are replicas in sync? try again in a few seconds"
            )
        unproven = position.supposed or (position.unseen and self._is_halted(partition))
        return _CopiedSoFar(position.sequence, position.upstream, position.downstream, unproven)

    def _is_halted(self, partition: _Partition) -> bool:
        target_partition = partition.target.topic_id.hex(), partition.route.partition
        losses = [loss for loss in self._ledger.read() if (loss.target_topic_id, loss.partition) == target_partition]
        return bool(halted_at_target(losses))

    def _claim(self, partition: _Partition, so_far: _CopiedSoFar, upstream: int) -> None:
        """Claim the chosen offset, durably before the connector can be started again.

        Claims ahead of the progress are retracted.
        """
        target_topic_id, index = partition.target.topic_id, partition.route.partition
        ahead = [
            claim
            for claim in self._identity.own(self._claim_log.whole(target_topic_id, index))
            if claim.sequence >= so_far.sequence
        ]
        claim = start_claim(
            self._identity,
            (target_topic_id, index),
            partition.source.topic_id,
            sequence=so_far.sequence,
            upstream=upstream,
            downstream=so_far.downstream,
            altered=True,
        )
        if so_far.upstream is not None:
            # Before the claim counts: if this process dies in between, the next attempt writes the same entry.
            at = LedgerPosition(target_topic_id, so_far.downstream)
            loss = altered(partition.route, at, self._copied_to(partition, so_far, so_far.upstream), upstream)
            self._ledger.record(loss)
            log.warning("flow %s: %s", self._flow.name, loss.words, extra=Event.LOSS.extra)
        self._forget_progress(partition, so_far.downstream)
        self._claim_log.revise([claim], ahead)

    def _copied_to(self, partition: _Partition, so_far: _CopiedSoFar, upstream: int) -> int:
        """Return the upstream offset that was copied up to, not one that was only set.

        An offset may be altered again before a record is copied: the ledger's entry of the same place then tells.
        """
        entries = self._ledger.known(partition.target.topic_id.hex(), partition.route.partition)
        for entry in entries:
            if entry.kind is LossKind.ALTERED and entry.downstream == so_far.downstream:
                if entry.action == "restarted":
                    return entry.end
                if entry.action == "continued" or not entry.offsets:
                    return entry.first
        return upstream

    def _forget_progress(self, partition: _Partition, downstream: int) -> None:
        """Forget what the noted progress says about records to be copied again.

        The note says that no record was left at the source below the copy's end, and how far the target acknowledged;
        all below `downstream` is accounted for now.
        """
        known = self._noted.of(partition.route.target)
        if known is not None:
            stood = {partition.route.partition: ReportedProgress(-1, known.downstream, downstream)}
            topic = TopicProgress(
                target_topic=partition.target.name, standing_of=known.target_topic_id, partitions=stood
            )
            self._noted.learn([topic])

    def copied(self) -> set[TopicPartition]:
        sources = {topic.target_topic: topic.source_topic for topic in self._memory.known.values()}
        there = [topic for topic in self._target.metadata(sources).values() if not topic.error]
        source_of = {
            (topic.topic_id, index): (sources[topic.name], index) for topic in there for index in topic.partitions
        }
        self._claim_log.refresh(source_of)
        return {source for target, source in source_of.items() if self._identity.own(self._claim_log.claims(*target))}

    def _listed(self, listed: ListedOffset, partition: _Partition) -> int:
        try:
            return listed_offset(listed, partition.route.source)
        except Unserved as unserved:
            raise NotAltered(str(unserved)) from unserved
