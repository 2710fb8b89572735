"""A segments topic in memory, which elections may cut; each view of it has leaders as known since its last look."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from sparkmirror.config import ClusterConfig
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import LogCut, LogEntry, LogPlace, TopicLog

Entry = tuple[bytes, bytes | None]


class Topic:
    """What all views share."""

    def __init__(self, partitions: int = 4) -> None:
        self.partitions = partitions
        self.entries: dict[int, list[tuple[int, Entry]]] = defaultdict(list)
        """Leader epoch, key and value of each record, by partition."""
        self.epochs: dict[int, int] = defaultdict(int)
        self.asked: list[str] = []
        """The requests that came."""

    def cut(self, partition: int, end: int) -> None:
        """An unclean election: the records from an offset on are gone."""
        del self.entries[partition][end:]
        self.elect(partition)

    def elect(self, partition: int) -> None:
        self.epochs[partition] += 1


class View(TopicLog):
    """One process's look at the topic."""

    def __init__(self, topic: Topic) -> None:
        super().__init__(ClusterClient(ClusterConfig(alias="B", bootstrap_servers=("nowhere:1",)), "test"), "topic")
        self._topic = topic
        self._known = dict(topic.epochs)

    @property
    def partitions(self) -> int:
        return self._topic.partitions

    def expect(self, partitions: int) -> None:
        assert partitions <= self._topic.partitions

    def look_again(self) -> None:
        self._topic.asked.append("metadata")
        self._known = dict(self._topic.epochs)

    def read_on(self, partition: int, place: LogPlace) -> tuple[list[LogEntry], LogPlace, bool]:
        self._see(partition, place)
        entries = self._topic.entries[partition]
        found = [LogEntry(at, *entry) for at, (_, entry) in list(enumerate(entries))[place.offset : place.offset + 3]]
        end = place.offset + len(found)
        return found, LogPlace(end, entries[end - 1][0] if end else -1), end < len(entries)

    def see_whole(self, partition: int, place: LogPlace) -> None:
        if place.epoch != self._known.get(partition, 0):
            self._see(partition, place)

    def append(self, partition: int, entries: Sequence[Entry], *, timestamp_ms: int | None = None) -> int:
        return self.append_all({partition: entries})[partition].offset - len(entries)

    def append_all(self, entries: Mapping[int, Sequence[Entry]]) -> dict[int, LogPlace]:
        places = {}
        for partition, listed in entries.items():
            if not listed:
                continue
            self._topic.asked.append("produce")
            self._known[partition] = epoch = self._topic.epochs[partition]
            self._topic.entries[partition] += [(epoch, entry) for entry in listed]
            places[partition] = LogPlace(len(self._topic.entries[partition]), epoch)
        return places

    def _see(self, partition: int, place: LogPlace) -> None:
        """The answer tells where the logs part."""
        self._topic.asked.append("fetch")
        self._known[partition] = self._topic.epochs[partition]  # a leader of another epoch is found
        entries = self._topic.entries[partition]
        if place.epoch < 0:
            return
        end = sum(epoch <= place.epoch for epoch, _ in entries)
        if end < place.offset:
            raise LogCut(self.topic, partition, LogPlace(end, entries[end - 1][0] if end else -1))
