"""Where a group's offset at the source is at the target, for the duties that look after groups (`mm2.md` 3.7).

By the exact map. Where the copy has not reached an offset it is the copy's end, which is inside the log, and not a
record is skipped.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import NamedTuple

from sparkmirror.cluster.client import ClusterClient
from sparkmirror.cluster.list_offsets import EARLIEST, LATEST, list_offsets
from sparkmirror.config import FlowConfig
from sparkmirror.messages.orders import Receipt
from sparkmirror.policy import ReplicationPolicy
from sparkmirror.position.target_reading import by_topic
from sparkmirror.sync.before_us import BeforeUs
from sparkmirror.translation.map_keeper import NOTHING_YET, MapKeeper, PartitionMap, Reached, Unmapped
from sparkmirror.wire.topic_partition import TopicPartition


class TranslationRoute(NamedTuple):
    """What the target has in place of a partition of the source."""

    remote: TopicPartition
    back: bool
    """The source's topic is the copy, made by the flow in the other direction."""


def route_of(where: TopicPartition, policy: ReplicationPolicy, flow: FlowConfig) -> TranslationRoute:
    """A topic's copy; of what is itself a copy of the target's topic, that topic (`mm2.md` 3.7, "Rename")."""
    topic, partition = where
    original = policy.upstream_topic(topic)
    if policy.topic_source(topic) == flow.target.alias and original is not None:
        return TranslationRoute((original, partition), back=True)
    return TranslationRoute((policy.format_remote_topic(flow.source.alias, topic), partition), back=False)


class TranslatedOffset(NamedTuple):
    """An offset at the target."""

    remote: TopicPartition
    offset: int
    copied: bool
    """Whether the copy has reached it; else it is the copy's end."""
    log_end: int | None
    """The target's, where it is known."""


class NothingThere(NamedTuple):
    """A partition of the source without a record to be copied: who would read any offset up to `end` next goes on."""

    end: int
    """At the source."""
    place: TranslatedOffset
    """At the target's end: the next record lands there."""


class Places:
    """Those of one flow, as of the last `refresh`. For one thread; the clients stay the caller's."""

    def __init__(
        self,
        flow: FlowConfig,
        policy: ReplicationPolicy,
        source: ClusterClient,
        target: ClusterClient,
        receipts: Callable[[], Iterable[Receipt]],
    ) -> None:
        """`receipts`: the newest of each partition."""
        self._flow = flow
        self._policy = policy
        self._receipts = receipts
        self._before_us = BeforeUs(flow, policy, source, target)
        self._copied = MapKeeper(target, flow.source.alias)
        self._copied_back = MapKeeper(source, flow.target.alias)
        self._source = source
        self._target = target
        self._reached: dict[TopicPartition, Reached] = {}
        self._routes: dict[TopicPartition, TranslationRoute] = {}
        self._maps: dict[TopicPartition, PartitionMap | Unmapped] = {}

    def refresh(self, partitions: Iterable[TopicPartition]) -> None:
        """Take in what was copied of these partitions of the source. Raises `ConnectionError`, `SparkMirrorError`.

        Read the groups' offsets before: then the copy has nearly always reached them.
        """
        self._reached = {
            (one.target_topic, one.partition): Reached(one.upstream, one.downstream, one.target_topic_id)
            for one in self._receipts()
            if one.upstream >= 0 and one.downstream >= 0
        }
        routes = {where: route_of(where, self._policy, self._flow) for where in partitions}
        forth = {route.remote: where for where, route in routes.items() if not route.back}
        back = [where for where, route in routes.items() if route.back]
        found = self._copied.refresh({remote: self._reached.get(remote) for remote in forth}) if forth else {}
        self._maps = {forth[remote]: one for remote, one in found.items()}
        if back:
            self._maps |= self._copied_back.refresh(dict.fromkeys(back))
        self._routes = routes

    def of(self, where: TopicPartition, offset: int) -> TranslatedOffset | Unmapped:
        """Where who would read `offset` of a refreshed partition next goes on; or why that can't be told."""
        one, route = self._maps[where], self._routes[where]
        if isinstance(one, Unmapped):
            return one
        if route.back:
            if others := one.by_others(downstream=offset):
                return Unmapped(others.reason)
            original = one.upstream(offset)
            end = one.offsets.copied.upstream
            return TranslatedOffset(route.remote, end if original is None else original, original is not None, None)
        if others := one.by_others(upstream=offset):
            theirs = self._before_us.downstream(where, offset, others.end)
            if theirs is None:
                return Unmapped(others.reason)
            return TranslatedOffset(
                route.remote, max(theirs.downstream, others.first, one.log.start), True, one.log.end
            )
        downstream = one.downstream(offset)
        return TranslatedOffset(
            route.remote, one.end if downstream is None else downstream, downstream is not None, one.log.end
        )

    def without_records(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, NothingThere]:
        """Of these partitions of the source those with no record to be copied, where that is known.

        The log is empty; or a pump has found no record yet, only what it has to pass over. Raises `ConnectionError`s.
        """
        found: dict[TopicPartition, NothingThere] = {}
        places: dict[TopicPartition, TranslatedOffset] = {}
        unmapped: dict[TopicPartition, TopicPartition] = {}
        for where in partitions:
            remote, back = self._routes[where]
            one, reached = self._maps[where], self._reached.get(remote)
            if back:
                continue
            if isinstance(one, PartitionMap):
                places[where] = TranslatedOffset(remote, one.end, True, one.log.end)
            elif one is NOTHING_YET:
                unmapped[remote] = where
                if reached is not None:
                    found[where] = NothingThere(
                        reached.upstream, TranslatedOffset(remote, reached.downstream, True, None)
                    )
        # The target first: a record that is written and copied in between would lie below an end that is read later.
        for remote, end in _listed(self._target, unmapped, LATEST).items():
            places[unmapped[remote]] = TranslatedOffset(remote, end, True, end)
        starts, ends = (_listed(self._source, places, at) for at in (EARLIEST, LATEST))
        for where, place in places.items():
            if where in starts and starts[where] == ends.get(where):
                found[where] = NothingThere(starts[where], place)
        return found

    def close(self) -> None:
        """Free the maps."""
        self._copied.close()
        self._copied_back.close()


def _listed(client: ClusterClient, partitions: Iterable[TopicPartition], at: int) -> dict[TopicPartition, int]:
    """One offset of each partition that has a leader which tells it."""
    wanted = list(partitions)
    by_leader: dict[int, list[TopicPartition]] = defaultdict(list)
    topics = client.metadata({topic for topic, _ in wanted}) if wanted else {}
    for where in wanted:
        led = topics[where[0]].partitions.get(where[1])
        if led is not None and led.leader >= 0:
            by_leader[led.leader].append(where)
    return {
        where: one.offset
        for node, led_there in by_leader.items()
        for where, one in list_offsets(client, node, by_topic(led_there), at).items()
        if not one.error
    }
