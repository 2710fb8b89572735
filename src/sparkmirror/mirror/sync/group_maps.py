"""The maps that translate groups' source offsets.

The exact map translates (`mm2.md` 3.7). Where the copy has not reached an offset, the result is the copy's end: the end
is inside the log, and a group skips no record there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from sparkmirror.config import FlowConfig
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.exact.durable.noted_progress import ReportedProgress
from sparkmirror.exact.maps.map_keeper import MapKeeper
from sparkmirror.exact.maps.partition_map import NOTHING_YET, LogBounds, PartitionMap, Unmapped
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.list_offsets import EARLIEST, LATEST, offsets_by_leader
from sparkmirror.kafka.wire.topic_ids import NO_ID, same_topic
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.mirror.sync.mm2_maps import Mm2Maps
from sparkmirror.mirror.sync.move_cost import EndPair, MoveCost, cost_at_copy, cost_at_original, cost_between
from sparkmirror.mirror.sync.noted_markers import NotedMarkers, PassedOver, pass_over
from sparkmirror.mirror.sync.offsets_and_ids import offsets_and_ids
from sparkmirror.policy import ReplicationPolicy
from sparkmirror.pump.messages.orders import Receipt


class TranslationRoute(NamedTuple):
    """Target partition that stands for a source partition."""

    remote: TopicPartition
    reverse: bool
    """True if the source's topic is the copy, made by the flow in the other direction."""


def route_of(topic_partition: TopicPartition, policy: ReplicationPolicy, flow: FlowConfig) -> TranslationRoute:
    """Return the topic's copy, or the original if the source's topic is the copy.

    The original is then at the target (`mm2.md` 3.7, "Rename").
    """
    topic, partition = topic_partition
    original = policy.upstream_topic(topic)
    if policy.topic_source(topic) == flow.target.alias and original is not None:
        return TranslationRoute((original, partition), reverse=True)
    return TranslationRoute((policy.format_remote_topic(flow.source.alias, topic), partition), reverse=False)


class TranslatedOffset(NamedTuple):
    """Offset at the target."""

    remote: TopicPartition
    offset: int
    copied: bool
    """True if the copy has reached the offset; else `offset` is the copy's end."""
    log_end: int | None
    """The target's log end; `None` if unknown."""
    by_syncs: bool = False
    """True if MirrorMaker 2's offset syncs gave the offset.

    The syncs grow coarser: the same position may translate to less later.
    """

    @property
    def exact(self) -> bool:
        """True if the offset map gave a copied offset."""
        return self.copied and not self.by_syncs


class OtherTurn(NamedTuple):
    """Position that is not for this flow to set: the opposite flow copied there (M5)."""

    reason: str


class NothingThere(NamedTuple):
    """Source partition without a record to copy.

    A group with any position up to `end` continues at `at_target`.
    """

    end: int
    """End offset at the source."""
    at_target: TranslatedOffset
    """End at the target: the next record lands there."""


class PlacedGroup(NamedTuple):
    """A group's place in a partition, by the maps."""

    cost: MoveCost | None
    """Cost of a move; `None` if unknown."""
    is_ahead: bool
    """True if the group has read past what the map knows to be copied."""


class GroupMaps:
    """One flow's maps for groups, as of the last `refresh`.

    For one thread, except `place`; the caller closes the clients.
    """

    def __init__(
        self,
        flow: FlowConfig,
        policy: ReplicationPolicy,
        source: ClusterClient,
        target: ClusterClient,
        receipts: Callable[[], Iterable[Receipt]],
    ) -> None:
        """Prepare translations.

        `receipts` gives each partition's newest receipt.
        """
        self._flow = flow
        self._policy = policy
        self._receipts = receipts
        self._mm2 = Mm2Maps(flow, policy, source, target)
        self._copied = MapKeeper(target, flow.source.alias)
        self._copied_in_reverse = MapKeeper(source, flow.target.alias)
        self._source = source
        self._target = target
        self._reached: dict[TopicPartition, ReportedProgress] = {}
        self._noted = NotedMarkers(target, flow.source.alias)
        self._notes: dict[TopicPartition, tuple[int, list[PassedOver]]] = {}
        """The copy's end when the notes were read, and the notes, by target partition."""
        self._original_ids: dict[str, bytes] = {}
        """The original topics' ids at the target, for groups that read their copies."""
        self._routes: dict[TopicPartition, TranslationRoute] = {}
        self._maps: dict[TopicPartition, PartitionMap | Unmapped] = {}
        self._empty: Mapping[TopicPartition, NothingThere] = {}
        """The last answer from `without_records`."""
        self._lock = threading.Lock()
        """Held while maps change, or another thread than the caller of `refresh` asks."""

    def refresh(self, partitions: Iterable[TopicPartition]) -> None:
        """Read new claims and receipts for these source partitions.

        Raises `ConnectionError` and `SparkMirrorError`. Read the groups' offsets first: then the copy has nearly always
        reached them.
        """
        with self._lock:
            self._refresh(partitions)

    def _refresh(self, partitions: Iterable[TopicPartition]) -> None:
        self._maps = {}
        self._reached = {
            (receipt.target_topic, receipt.partition): receipt.progress
            for receipt in self._receipts()
            if receipt.upstream >= 0 and receipt.downstream >= 0
        }
        self._routes = routes = {partition: route_of(partition, self._policy, self._flow) for partition in partitions}
        forward = {route.remote: partition for partition, route in routes.items() if not route.reverse}
        reverse = [partition for partition, route in routes.items() if route.reverse]
        mapped = self._copied.refresh({remote: self._reached.get(remote) for remote in forward}) if forward else {}
        self._pass_over_noted(forward, mapped)
        maps = {forward[remote]: partition_map for remote, partition_map in mapped.items()}
        self._forget_earlier_topics(maps)
        self._maps = maps
        if reverse:
            originals = self._target.metadata({routes[partition].remote[0] for partition in reverse})
            self._original_ids = {name: original.topic_id for name, original in originals.items()}
            self._maps |= self._reverse_maps(reverse)

    def _forget_earlier_topics(self, maps: dict[TopicPartition, PartitionMap | Unmapped]) -> None:
        """Count nothing as copied of source topics that were created again since.

        Nor do reports count: they tell no source topic's id.
        """
        mapped = {at: copied for at, copied in maps.items() if isinstance(copied, PartitionMap)}
        topics = self._source.metadata({topic for topic, _ in mapped}) if mapped else {}
        for partition, copied in mapped.items():
            if not same_topic(copied.source_topic_id, topics[partition[0]].topic_id):
                maps[partition] = NOTHING_YET
                self._reached.pop(self._routes[partition].remote, None)

    def _reverse_maps(self, copies: Iterable[TopicPartition]) -> Mapping[TopicPartition, PartitionMap | Unmapped]:
        """Return the opposite flow's maps, or the reason why they can't be read.

        That flow's topics may be closed to this flow's principal: its own copies need only its own maps.
        """
        partitions = dict.fromkeys(copies)
        try:
            return self._copied_in_reverse.refresh(partitions)
        except (ConnectionError, ClusterUnreachable) as error:
            return dict.fromkeys(partitions, Unmapped(str(error)))

    def _pass_over_noted(
        self,
        copies: Mapping[TopicPartition, TopicPartition],
        mapped: Mapping[TopicPartition, PartitionMap | Unmapped],
    ) -> None:
        """Let maps without a receipt pass over noted markers; read notes for new ends."""
        silent = {
            remote: copied
            for remote, copied in mapped.items()
            if isinstance(copied, PartitionMap) and remote not in self._reached
        }
        self._notes = {remote: known for remote, known in self._notes.items() if remote in silent}
        unread = {
            remote: copied
            for remote, copied in silent.items()
            if remote not in self._notes or self._notes[remote][0] != copied.end
        }
        for remote, notes in self._noted.of(copies, unread).items():
            self._notes[remote] = unread[remote].end, notes
        for remote, copied in silent.items():
            if remote in self._notes:
                pass_over(copied, self._notes[remote][1])

    def of(self, partition: TopicPartition, offset: int) -> TranslatedOffset | OtherTurn | Unmapped:
        """Translate a source offset in a refreshed partition; `Unmapped` if impossible.

        `Unmapped` has the reason, and so has `OtherTurn`.
        """
        partition_map, route = self._maps[partition], self._routes[partition]
        if isinstance(partition_map, Unmapped):
            return partition_map
        if route.reverse:
            if foreign := partition_map.foreign_range(downstream=offset):
                return Unmapped(foreign.reason)
            if not self._is_of_the_original(partition, partition_map):
                return Unmapped(f"{route.remote[0]} was created again, and nothing of the new topic was copied yet")
            original = partition_map.upstream(offset)
            end = partition_map.offsets.copied.upstream
            return TranslatedOffset(
                remote=route.remote,
                offset=end if original is None else original,
                copied=original is not None,
                log_end=None,
            )
        if self._flow.turn and partition_map.is_of_another_turn(offset):
            return OtherTurn(f"at {offset}, it reads what came from {self._flow.target.alias}")
        if foreign := partition_map.foreign_range(upstream=offset):
            synced = self._mm2.downstream(partition, offset, foreign.end)
            if synced is None:
                return Unmapped(foreign.reason)
            return TranslatedOffset(
                remote=route.remote,
                offset=max(synced.downstream, foreign.first, partition_map.log.start),
                copied=True,
                log_end=partition_map.log.end,
                by_syncs=True,
            )
        downstream = partition_map.downstream(offset)
        return TranslatedOffset(
            remote=route.remote,
            offset=partition_map.end if downstream is None else downstream,
            copied=downstream is not None,
            log_end=partition_map.log.end,
        )

    def copied_to(self, partition: TopicPartition) -> int | None:
        """Return the source offset below which nothing is left to copy; `None` if unknown."""
        return self._copied_to(partition, self._maps[partition], self._empty.get(partition))

    def _copied_to(
        self, partition: TopicPartition, partition_map: PartitionMap | Unmapped | None, empty: NothingThere | None
    ) -> int | None:
        end = empty.end if empty is not None else None
        if not isinstance(partition_map, PartitionMap):
            return end if partition_map is NOTHING_YET else None
        if self._routes[partition].reverse:
            return partition_map.end
        return max(partition_map.offsets.copied.upstream, end or 0)

    def place(self, partition: TopicPartition, source: int, target: int | None) -> PlacedGroup:
        """Return a group's place, by its offsets on both sides; for any thread.

        The partition is at the source. The cost is unknown without an offset at the target, without a map, and where
        only MirrorMaker 2's offset syncs tell the offset, and not exactly.
        """
        with self._lock:
            partition_map, empty = self._maps.get(partition), self._empty.get(partition)
            copied_to = self._copied_to(partition, partition_map, empty)
            if copied_to is None:
                return PlacedGroup(None, is_ahead=True)
            cost = None
            if target is None:
                pass
            elif isinstance(partition_map, PartitionMap):
                cost = self._cost(partition, partition_map, source, target, copied_to)
            elif empty is not None:
                end, log = EndPair(copied_to, empty.at_target.offset), LogBounds(0, empty.at_target.log_end or 0)
                cost = cost_at_copy(source, target, None, end, log)
            return PlacedGroup(cost, is_ahead=source > copied_to)

    def _cost(
        self, partition: TopicPartition, partition_map: PartitionMap, source: int, target: int, copied_to: int
    ) -> MoveCost | None:
        if self._routes[partition].reverse:
            known = self._is_of_the_original(partition, partition_map)
            if not known or partition_map.foreign_range(downstream=source):
                return None
            return cost_at_original(source, target, partition_map.offsets)
        if foreign := partition_map.foreign_range(upstream=source):
            # The syncs are read when such an offset is translated, by the thread that has the clients.
            synced = self._mm2.downstream(partition, source, foreign.end) if self._mm2.is_read else None
            if synced is None or not synced.exact:
                return None
            return cost_between(max(synced.downstream, foreign.first), target, partition_map.log)
        end = EndPair(copied_to, partition_map.end)
        return cost_at_copy(source, target, partition_map.offsets, end, partition_map.log)

    def _is_of_the_original(self, partition: TopicPartition, partition_map: PartitionMap) -> bool:
        """Tell whether the map is about the present original, and no earlier topic."""
        original = self._routes[partition].remote[0]
        return same_topic(partition_map.source_topic_id, self._original_ids.get(original, NO_ID))

    def source_ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the source's log ends, for partitions whose leaders answer.

        Raises `ConnectionError`s. Read the groups' offsets first: then no group is beyond an end that merely grew.
        """
        return offsets_by_leader(self._source, partitions, LATEST)

    def without_records(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, NothingThere]:
        """Return the source partitions that surely have no record to copy.

        Either the log is empty, or a pump has found no record yet, only offsets to pass over. Raises
        `ConnectionError`s.
        """
        empty: dict[TopicPartition, NothingThere] = {}
        ends_there: dict[TopicPartition, TranslatedOffset] = {}
        unmapped: dict[TopicPartition, TopicPartition] = {}
        for partition in partitions:
            remote, reverse = self._routes[partition]
            partition_map = self._maps[partition]
            if reverse:
                continue
            if isinstance(partition_map, PartitionMap):
                ends_there[partition] = _end_of(remote, partition_map.end, partition_map.log.end)
            elif partition_map is NOTHING_YET:
                unmapped[remote] = partition
        # Target first: a record written and copied in between lies below an end that is read later.
        for remote, listed in offsets_and_ids(self._target, unmapped, LATEST).items():
            partition, reached = unmapped[remote], self._reached.get(remote)
            ends_there[partition] = _end_of(remote, listed.offset, listed.offset)
            if reached is not None and listed.is_end_for(reached):
                empty[partition] = NothingThere(reached.upstream, _end_of(remote, reached.downstream, listed.offset))
        starts, ends = (offsets_and_ids(self._source, ends_there, at) for at in (EARLIEST, LATEST))
        for partition, end_there in ends_there.items():
            if partition in starts and starts[partition] == ends.get(partition):
                empty[partition] = NothingThere(starts[partition].offset, end_there)
        self._empty = empty
        return empty

    def close(self) -> None:
        """Free the maps."""
        with self._lock:
            self._maps = {}
            self._copied.close()
            self._copied_in_reverse.close()


def _end_of(remote: TopicPartition, offset: int, log_end: int) -> TranslatedOffset:
    return TranslatedOffset(remote=remote, offset=offset, copied=True, log_end=log_end)
