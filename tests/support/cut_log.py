"""A segments topic in memory, which elections may cut, and claims for it.

Each view of it has leaders as known since its last look.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from sparkmirror.config import ClusterConfig
from sparkmirror.exact.durable.claim_log import ClaimLog
from sparkmirror.exact.durable.claims import AnnouncedBatch, Claim
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import Appending, LogCut, LogEntry, LogPlace, LogUnavailable, TopicLog
from sparkmirror.kafka.wire.splice import Run

Entry = tuple[bytes, bytes | None]

TOPIC_ID = b"t" * 16
HERE = TOPIC_ID, 7
EACH = 15
"""Records of each claim."""


def claim(number: int, partition: int = 7, *, confirmed: bool = False, heals: bool = False) -> Claim:
    """The claims of a partition, in order: there is a gap between any two."""
    sequence = number * EACH
    return Claim(
        target_topic_id=TOPIC_ID,
        partition=partition,
        sequence=sequence,
        incarnation=number + 1,
        producer_id=4000,
        producer_epoch=0,
        source_topic_id=b"s" * 16,
        source_leader_epoch=0,
        downstream=sequence,
        runs=(Run(20 * number, EACH),),
        batches=(AnnouncedBatch(EACH, 3, 99, 1000, 1014),),
        confirmed=confirmed,
        heals=heals,
    )


def known(log: ClaimLog) -> list[Claim]:
    log.refresh([HERE])
    return list(log.claims(*HERE))


class Topic:
    """What all views share."""

    def __init__(self, partitions: int = 4) -> None:
        self.partitions = partitions
        self.entries: dict[int, list[tuple[int, Entry]]] = defaultdict(list)
        """Leader epoch, key and value of each record, by partition."""
        self.epochs: dict[int, int] = defaultdict(int)
        self.leaders: dict[int, int] = defaultdict(int)
        self.leaderless: set[int] = set()
        self.asked: list[str] = []
        """The requests that came."""

    def cut(self, partition: int, end: int) -> None:
        """An unclean election: the records from an offset on are gone."""
        del self.entries[partition][end:]
        self.elect(partition)

    def elect(self, partition: int) -> None:
        self.epochs[partition] += 1
        self.leaders[partition] += 1

    def raise_epoch(self, partition: int) -> None:
        """The same leader has a new epoch: who only writes to it does not notice."""
        self.epochs[partition] += 1


class View(TopicLog):
    """One process's look at the topic."""

    def __init__(self, topic: Topic) -> None:
        super().__init__(ClusterClient(ClusterConfig(alias="B", bootstrap_servers=("nowhere:1",)), "test"), "topic")
        self._topic = topic
        self._known: dict[int, tuple[int, int]] = {}
        """Leader and epoch of each partition, as known."""
        self.look_again()
        topic.asked.pop()

    @property
    def partitions(self) -> int:
        return self._topic.partitions

    def expect(self, partitions: int) -> None:
        assert partitions <= self._topic.partitions

    def look_again(self) -> None:
        self._topic.asked.append("metadata")
        self._known = {partition: self._present(partition) for partition in range(self._topic.partitions)}

    def read_on(self, partition: int, place: LogPlace) -> tuple[list[LogEntry], LogPlace, bool]:
        self._see(partition, place)
        if place.offset > len(self._topic.entries[partition]):
            raise LogCut(self.topic, partition, LogPlace(len(self._topic.entries[partition])))
        entries = self._topic.entries[partition]
        found = [LogEntry(at, *entry) for at, (_, entry) in list(enumerate(entries))[place.offset : place.offset + 3]]
        end = place.offset + len(found)
        return found, LogPlace(end, entries[end - 1][0] if end else -1), end < len(entries)

    def see_whole(self, partition: int, place: LogPlace) -> None:
        if place.epoch != self._known[partition][1]:
            self._see(partition, place)

    def append(self, partition: int, entries: Sequence[Entry], *, timestamp_ms: int | None = None) -> int:
        return self.append_all({partition: entries}).firsts[partition]

    def append_all(self, entries: Mapping[int, Sequence[Entry]]) -> Appending:
        appended = Appending({}, {}, {})
        for partition, listed in entries.items():
            if not listed:
                continue
            self._topic.asked.append("produce")
            if partition in self._topic.leaderless:
                appended.failed[partition] = LogUnavailable(self.topic, f"partition {partition} has no leader now", 5)
                continue
            leader, epoch = self._present(partition)
            if self._known[partition][0] != leader:  # the former leader has refused the records
                self._known[partition] = leader, epoch
            appended.firsts[partition] = len(self._topic.entries[partition])
            self._topic.entries[partition] += [(epoch, entry) for entry in listed]
            appended.places[partition] = LogPlace(len(self._topic.entries[partition]), self._known[partition][1])
        return appended

    def _present(self, partition: int) -> tuple[int, int]:
        return self._topic.leaders[partition], self._topic.epochs[partition]

    def _see(self, partition: int, place: LogPlace) -> None:
        """The answer tells where the logs part."""
        self._topic.asked.append("fetch")
        self._known[partition] = self._present(partition)  # a leader of another epoch is found
        entries = self._topic.entries[partition]
        if place.epoch < 0:
            return
        end = sum(epoch <= place.epoch for epoch, _ in entries)
        epoch = entries[end - 1][0] if end else -1
        if end < place.offset or (place.offset and epoch < place.epoch):
            raise LogCut(self.topic, partition, LogPlace(min(end, place.offset), epoch))
