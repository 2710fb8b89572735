"""A flow's topics: which partitions can be pumped, and which have to wait."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from sparkmirror.config import FlowConfig
from sparkmirror.errors import SparkMirrorError
from sparkmirror.events import Event
from sparkmirror.exact.durable.claim_log import ClaimLog
from sparkmirror.exact.durable.claims import segments_topic
from sparkmirror.exact.durable.identity import Identity
from sparkmirror.exact.durable.known_topics import TopicMemory
from sparkmirror.exact.durable.losses import LossLedger, losses_topic
from sparkmirror.exact.position.route import PartitionPair
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.mirror.engine.assignment import PartitionKey
from sparkmirror.mirror.engine.done_topics import DoneTopics
from sparkmirror.mirror.engine.flow_view import FlowView
from sparkmirror.mirror.engine.queried_topics import QueriedTopics
from sparkmirror.mirror.engine.turn_watch import TurnWatch
from sparkmirror.mirror.engine.weaknesses import Weaknesses
from sparkmirror.mirror.sync.first_notes import FirstNotes
from sparkmirror.mirror.sync.other_flows import OtherFlows
from sparkmirror.mirror.sync.pattern_matches import Matches, topic_matches
from sparkmirror.mirror.sync.topic_rules import topic_rules
from sparkmirror.mirror.sync.topic_sentinel import TopicSentinel
from sparkmirror.mirror.sync.topics import TopicDuty, TopicSync
from sparkmirror.mirror.takeover.from_mm1 import GroupTakeover
from sparkmirror.mirror.takeover.from_mm2 import Takeover
from sparkmirror.pump.refused import LIMITS

log = logging.getLogger(__name__)


class _Admins(NamedTuple):
    source: ClusterAdmin
    target: ClusterAdmin


class TargetTopic(NamedTuple):
    """Remote topic of a partition that can be pumped."""

    name: str
    topic_id: bytes


class FlowTopics:
    """One flow's topics: `open`, `begin` with each lease, `sync` at intervals."""

    def __init__(
        self,
        flow: FlowConfig,
        view: FlowView,
        client: ClusterClient,
        done_topics: DoneTopics,
        turns: TurnWatch,
        *,
        once: bool,
    ) -> None:
        self.newest = TopicSync(mirrored=(), created=(), grown=(), refused={})
        """Result of the topic duty's last turn."""
        self.synced = False
        """True once the topic duty has run."""
        self.checked = False
        """True once the topic duty's newest result was checked for foreign copies.

        Getting the lease resets the flag.
        """
        self.matches = Matches()
        """Patterns that match nothing at the source, as of the last `sync`."""
        self.owed: dict[str, str] = {}
        """Topics and partitions left out at the start with `once`, with the reason."""
        self.ends: Mapping[TopicPartition, int] | None = None
        """Ends at the start, up to which `once` copies; None: copy without end."""
        self.done_topics = done_topics
        self.turns = turns
        self.waiting: tuple[str, ...] = ()
        """Topics that wait for the flow's turn, as of the last `sync`."""
        self._named = topic_rules(flow)
        self.rules = dataclasses.replace(
            self._named, left_alone=lambda topic: done_topics.is_released(topic) or turns.waits(topic)
        )
        self.takeover = Takeover(flow) if flow.legacy is None else GroupTakeover(flow, flow.legacy)
        self.weaknesses = Weaknesses(flow)
        self.unsynced: tuple[str, ...] = ()
        """Properties behind refused batches that the mirror leaves alone on copies."""
        self.queried = QueriedTopics(flow.transform_queries, self._named.is_heartbeats)
        self._flow = flow
        self._view = view
        self._client = client
        self._once = once
        self._admins: _Admins | None = None
        self._sentinel: TopicSentinel | None = None
        self._first_notes: FirstNotes | None = None
        self._matched_with: frozenset[str] | None = None
        """Source topics that `matches` is about."""
        self._created: set[str] = set()
        """Target topics that this process has created with the present lease."""
        self._work: tuple[Mapping[PartitionKey, TargetTopic], Mapping[PartitionPair, str]] = {}, {}
        """Partitions to pump, and refused partitions, as of the last `sync`."""

    def open(self, source: ClusterAdmin, target: ClusterAdmin) -> None:
        """Take the connections to both clusters."""
        self._admins = _Admins(source, target)
        limits = dict.fromkeys(name for names in LIMITS.values() for name in names)
        synced = self._flow.topic_sync.sync_topic_configs_enabled
        with suppress(SparkMirrorError):  # of a filter in Python; copying tells what is wrong with it
            self.unsynced = tuple(name for name in limits if not (synced and self.rules.keeps(name)))

    @property
    def waits(self) -> bool:
        """True if something should be looked at again soon."""
        return bool(self.takeover.waiting) or (self._first_notes is not None and self._first_notes.unsettled)

    def begin(self) -> None:
        """Forget earlier knowledge: another mirror may have written before the lease."""
        self.takeover.begin()
        self.checked = False
        self._created.clear()
        self._sentinel = self._first_notes = None

    def _watch(self, admins: _Admins, others: OtherFlows) -> tuple[TopicSentinel, FirstNotes]:
        """Return what looks after whole topics, made again with each lease."""
        if self._sentinel is None or self._first_notes is None:
            alias = self._flow.source.alias
            ledger = TopicLog(self._client, losses_topic(alias))
            memory = TopicMemory(ledger)
            self._sentinel = TopicSentinel(
                *admins,
                ClaimLog(TopicLog(self._client, segments_topic(alias))),
                LossLedger(ledger),
                memory,
                self.rules.wanted,
                from_start=self._flow.fetch.auto_offset_reset != "latest" and self._flow.legacy is None,
            )
            self._first_notes = FirstNotes(self._flow.name, admins.target, others, memory)
        return self._sentinel, self._first_notes

    def sync(self, identity: Identity) -> bool:
        """Run the topic duty; True if the partitions to pump, or the refusals, changed."""
        if not self._flow.copies:
            self.synced = self.checked = True
            return False
        assert self._admins is not None  # noqa: S101 - open came first
        source, target_admin = self._admins
        others = OtherFlows(self._client, self._flow)
        sentinel, first_notes = self._watch(self._admins, others)
        self.checked = self.done_topics.changed = self.turns.changed = False
        newest = TopicDuty(source, target_admin, self.rules, others).sync_once()
        first_notes.expect(newest.mirrored)
        self._view.gone = sentinel.look(newest, identity)
        self.newest = first_notes.give_way(newest)
        self.waiting = tuple(sorted(topic for topic in newest.at_source if self._waits(topic)))
        self._match(newest.at_source)
        self.see_done()
        self.weaknesses.warn([topic.source.name for topic in self.newest.mirrored])
        if self._once and self.ends is None:
            self._note_ends(source)
        targets = self.targets()
        for gone in self._view.partitions.keys() - targets.keys():
            if gone.topic in self.done_topics.topics:
                self._view.partitions[gone].forget()  # an operator may take the move back: counters never fall
            else:
                self._view.partitions.pop(gone, None)
        self._created |= set(self.newest.created)
        routes = [PartitionPair(key.topic, targets[key].name, key.partition) for key in self.pumped()]
        self.takeover.look(identity, routes, made=self._created)
        before, self._work = self._work, (targets, self.takeover.refused)
        self.synced = self.checked = True
        return self._work != before

    def _waits(self, topic: str) -> bool:
        return self.turns.waits(topic) and not self.done_topics.is_released(topic) and self._named.wanted(topic)

    def _match(self, at_source: frozenset[str]) -> None:
        """Find the patterns without a match, and log new ones."""
        if at_source == self._matched_with:
            return
        before, self.matches = self.matches, topic_matches(self._flow, self.rules, at_source)
        self._matched_with = at_source
        for line in self.matches.news(before):
            log.warning("flow %s: topics: %s", self._flow.name, line, extra=Event.PATTERN_UNMATCHED.extra)

    def see_done(self) -> None:
        """Look at the done topics at the source.

        The source may have got partitions, or another topic under the name.
        """
        if self._admins is not None and (moved := self.done_topics.topics):
            self.done_topics.see(self._admins.source.topics(moved))

    def _note_ends(self, source: ClusterAdmin) -> None:
        """Read the ends up to which `once` copies."""
        partitions = [(topic.source.name, index) for topic in self.newest.mirrored for index in topic.partitions]
        ends = source.end_offsets(partitions, isolation=self._flow.fetch.isolation_level)
        self.owed = dict(self.newest.refused) | {
            f"{topic}-{index}": "it had no leader at the start"
            for topic, index in partitions
            if (topic, index) not in ends
        }
        self.ends = ends

    def partitions(self) -> dict[PartitionKey, TopicPartition]:
        """Partitions that can be copied, with remote topic and source leader."""
        pumpable = {}
        for topic in self.newest.mirrored:
            leaders = {partition.partition: partition.leader for partition in topic.source.partitions}
            for index in topic.partitions:
                if self.done_topics.is_reached(topic.source.name, index):
                    continue
                if self.ends is None or (topic.source.name, index) in self.ends:
                    key = PartitionKey(self._flow.name, topic.source.name, index)
                    pumpable[key] = (topic.remote.name, leaders[index])
        return pumpable

    def pumped(self) -> dict[PartitionKey, TopicPartition]:
        """Partitions that pumps copy: all but those that queries do."""
        return {key: place for key, place in self.partitions().items() if not self.queried.query_of(key.topic)}

    def targets(self) -> dict[PartitionKey, TargetTopic]:
        """Partitions that can be copied, with remote topic.

        A remote topic that was created again has another id: running pumps must read its positions.
        """
        ids = {topic.remote.name: topic.remote.topic_id for topic in self.newest.mirrored}
        return {key: TargetTopic(name, ids[name]) for key, (name, _) in self.partitions().items()}

    def close(self) -> None:
        self.takeover.close()
