"""The marker fence (R16), where it is asked for: after it no predecessor can write, so nobody has to wait for one.

The flow becomes another producer, and the old one is fenced: an empty transaction of its transactional id is aborted,
whose markers bear a newer epoch into every partition that it may write to. The sequence stays the count of the
flow's records, for of a new producer a leader takes any. A marker takes an offset, so the target's offsets aren't the
source's any more; it lies in the log as somebody else's record would, and is stepped over in the same way
(`position/foreign.py`).

What can't be fenced waits by the quiet rule (R5), as without a fence.
"""

from __future__ import annotations

import dataclasses
import logging
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from sparkmirror.cluster.client import ClusterClient, TopicLeaders
from sparkmirror.cluster.list_offsets import DEBUG_CONSUMER, LATEST, list_offsets
from sparkmirror.cluster.producers import describe_producers
from sparkmirror.cluster.topic_log import TopicLog
from sparkmirror.cluster.transactions import Given, TransactionalId
from sparkmirror.config import FlowConfig
from sparkmirror.durable.claim_log import SegmentLog
from sparkmirror.durable.claims import segments_topic
from sparkmirror.durable.identity import Identity, Producer
from sparkmirror.engine.identity import fenceable
from sparkmirror.errors import SparkMirrorError
from sparkmirror.events import Event
from sparkmirror.wire.topic_partition import TopicPartition

SEEN_S = 3.0
"""How long the markers are waited for. Where a leader is away they come later, and that partition waits (R5)."""

ZOMBIES_MS = 60_000
"""So long after it was succeeded a producer is fenced again: it can't write for longer than the quiet rule's 6 s, and
hosts' clocks differ."""

KEEP_S = 3600.0
"""How often a transactional id is used: the coordinator forgets it after `transactional.id.expiration.ms`, a week."""

_MOST_TRIES = 20
_PAUSE_S = 0.05

log = logging.getLogger(__name__)


def say_no_fence(flow: str, error: Exception) -> None:
    """Log that predecessors of a flow can't be fenced."""
    log.warning("flow %s: no fence, so predecessors are waited for: %s", flow, error, extra=Event.FENCE_FAILED.extra)


def say_fenced(flow: str, fenced: int, partitions: int) -> None:
    """Log in how many of its partitions predecessors of a flow can't write any more."""
    log.info("flow %s: %d of %d partitions are fenced", flow, fenced, partitions, extra=Event.PARTITIONS_FENCED.extra)


class Fenced(NamedTuple):
    """Who the flow is now, and where nobody who it was before can write any more."""

    identity: Identity
    partitions: frozenset[TopicPartition]


class Fence:
    """For one flow, by whoever holds its lease, if it is `leased`.

    Methods raise `ConnectionError` and `SparkMirrorError`.
    """

    def __init__(self, flow: FlowConfig, *, leased: bool) -> None:
        self._flow = flow
        self._leased = leased
        self._client = ClusterClient(flow.target, f"{flow.name}|sparkmirror-fence")
        self._segments = SegmentLog(TopicLog(self._client, segments_topic(flow.source.alias)))
        self._kept_at: dict[str, float] = {}

    def succeed(self, present: Identity, targets: Iterable[TopicPartition]) -> Fenced:
        """Have a new identity follow, and fence those before it in these partitions.

        The new one is agreed first: if the rest fails nobody is left with a fenced one.
        """
        self._client.metadata([])
        proposal = fenceable(self._client, self._flow.source.alias)
        agreed = self._segments.succeed(present, proposal)
        # Somebody else takes over as well, and is the same producer as we would be. Who holds the lease is the one
        # who works, so it is enough to wait; without a lease nobody gives way, and each is fenced in turn.
        tries = 0 if self._leased else _MOST_TRIES
        while agreed and agreed[-1].producer != proposal.producer and tries:
            agreed = self._segments.succeed(agreed[-1], proposal)
            tries -= 1
        if not agreed or agreed[-1].producer != proposal.producer:
            return Fenced(agreed[-1] if agreed else present, frozenset())
        present = agreed[-1]
        self._kept_at[present.transactional_id] = time.monotonic()
        fenced = frozenset(self._begun(targets, present))
        for number, before in enumerate(agreed[:-1], 1):
            if agreed[number].agreed_ms > present.agreed_ms - ZOMBIES_MS:
                fenced &= self._fence(before, fenced)
        return Fenced(present, fenced)

    def upgrade(self, present: Identity) -> Identity:
        """After an end that was in order: one that can be fenced later follows one that can't, and needn't be."""
        self._client.metadata([])
        proposal = fenceable(self._client, self._flow.source.alias)
        agreed = self._segments.succeed(present, dataclasses.replace(proposal, agreed_ms=0))
        return agreed[-1] if agreed else present

    def keep(self, present: Identity) -> None:
        """See to it that the coordinator doesn't forget the transactional id: a marker in our own segments topic."""
        name = present.transactional_id
        if name and time.monotonic() - self._kept_at.get(name, float("-inf")) > KEEP_S:
            self._client.metadata([])
            TransactionalId(self._client, name).mark(Given(*present.producer), [(self._segments.topic, 0)])
            self._kept_at[name] = time.monotonic()

    def close(self) -> None:
        self._client.close()

    def _begun(self, targets: Iterable[TopicPartition], identity: Identity) -> list[TopicPartition]:
        """Where we have claimed anything: into others a marker would look as if somebody else had begun them."""
        targets = list(targets)
        ids = {name: topic.topic_id for name, topic in self._client.metadata({topic for topic, _ in targets}).items()}
        self._segments.refresh((ids[topic], index) for topic, index in targets)
        return [(topic, index) for topic, index in targets if identity.own(self._segments.claims(ids[topic], index))]

    def _fence(self, before: Identity, partitions: Collection[TopicPartition]) -> frozenset[TopicPartition]:
        """Where that producer is known to be fenced."""
        if not before.transactional_id or not partitions:
            return frozenset()
        transactional_id = TransactionalId(self._client, before.transactional_id)
        done: frozenset[TopicPartition] = frozenset()
        try:
            done = self._seen(before.producer, partitions, 0.0)  # by another takeover, a moment ago
            left = set(partitions) - done
            if not left:
                return done
            given = transactional_id.begin()
            if given.producer_id != before.producer_id:
                log.warning(
                    "flow %s: the coordinator has forgotten %s: what it wrote can't be fenced, and is waited for",
                    self._flow.name,
                    before.transactional_id,
                    extra=Event.FENCE_FAILED.extra,
                )
                return done
            refused = transactional_id.mark(given, left)
            return done | self._seen(before.producer, left - refused.keys(), SEEN_S)
        except (ConnectionError, SparkMirrorError) as error:
            say_no_fence(self._flow.name, error)
            return done

    def _seen(
        self, before: Producer, partitions: Collection[TopicPartition], patience_s: float
    ) -> frozenset[TopicPartition]:
        """Those whose leaders know that a newer epoch has come, and whose replicas have it too."""
        seen: set[TopicPartition] = set()
        deadline = time.monotonic() + patience_s
        while True:
            left = [where for where in partitions if where not in seen]
            topics = self._client.metadata({topic for topic, _ in left})
            for leader, some in _by_leader(topics, left).items():
                try:
                    seen |= self._seen_at(leader, some, before)
                except ConnectionError as error:
                    log.debug("flow %s: %s", self._flow.name, error)
            if len(seen) == len(partitions) or time.monotonic() >= deadline:
                return frozenset(seen)
            time.sleep(_PAUSE_S)

    def _seen_at(self, leader: int, partitions: Mapping[str, list[int]], before: Producer) -> set[TopicPartition]:
        described = describe_producers(self._client, leader, partitions)
        # Any replica answers that, from what is not replicated as well; these only the leader does.
        ends = list_offsets(self._client, leader, partitions, LATEST, replica_id=DEBUG_CONSUMER)
        marks = list_offsets(self._client, leader, partitions, LATEST)
        return {
            where
            for where, one in described.items()
            if not (one.error or ends[where].error or marks[where].error)
            and marks[where].offset >= ends[where].offset
            and any(
                entry.producer_id == before.producer_id and entry.producer_epoch > before.producer_epoch
                for entry in one.producers
            )
        }


def _by_leader(
    topics: Mapping[str, TopicLeaders], partitions: Iterable[TopicPartition]
) -> dict[int, dict[str, list[int]]]:
    found: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for topic, index in partitions:
        led = topics[topic].partitions.get(index)
        if led is not None and led.leader >= 0:
            found[led.leader][topic].append(index)
    return found
