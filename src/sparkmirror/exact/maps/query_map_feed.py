"""Feed the maps of partitions that queries copy, by the places of their records."""

from __future__ import annotations

from itertools import pairwise

from sparkmirror.exact.durable.claims import Claim, TargetPartition
from sparkmirror.exact.durable.noted_progress import ReportedProgress
from sparkmirror.exact.durable.query_places import PlacesKey, QueryPlaces, plans_topic, read_places
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog


class QueryMapFeed:
    """Places of all queries' records, and how many each map has taken in.

    For one thread.
    """

    def __init__(self, target: ClusterClient, source_alias: str) -> None:
        self.topic = plans_topic(source_alias)
        self._log = TopicLog(target, self.topic)
        self._read_to = 0
        self._places: dict[TargetPartition, dict[tuple[int, int], QueryPlaces]] = {}
        """Places by batch and part."""
        self._taken: dict[TargetPartition, tuple[int, int]] = {}
        """Newest batch and part that a map has taken in."""

    def read(self) -> None:
        """Read the places appended since the last time; raises `ConnectionError`."""
        entries, self._read_to = self._log.read(0, self._read_to)
        for entry in entries:
            places, key = read_places(entry.key, entry.value), PlacesKey.read(entry.key)
            if places is not None:
                self._places.setdefault(places.target, {})[places.batch, places.part] = places
            elif key is not None and key.target in self._places:
                self._places[key.target].pop((key.batch, key.part), None)

    def begin(self, partition: TargetPartition) -> None:
        """Begin again with a new map."""
        self._taken.pop(partition, None)

    def has_fed(self, partition: TargetPartition) -> bool:
        return partition in self._taken

    def is_unplaced(self, partition: TargetPartition) -> bool:
        """True if a query's newest records in a partition have no known places."""
        places = self._places.get(partition)
        return places is not None and not places[max(places)].is_known

    def new_claims(self, partition: TargetPartition, producer: tuple[int, int]) -> list[Claim]:
        """Return the places that a map has not taken in yet, as claims of a producer.

        Places before missing ones are left out: the copy has deleted their records, and a claim counts up to the next.
        """
        if partition not in self._places or self.is_unplaced(partition):
            return []
        taken = self._taken.get(partition, (-1, -1))
        new = [places for key, places in sorted(self._places[partition].items()) if key > taken]
        self._taken[partition] = max(self._places[partition])
        gaps = [number for number, pair in enumerate(pairwise(new), 1) if not pair[1].follows(pair[0])]
        new = new[gaps[-1] if gaps else 0 :]
        return [claim for each in new if (claim := each.claim(producer)) is not None]

    def progress(self, partition: TargetPartition) -> ReportedProgress | None:
        """Return the progress that the newest places tell; None without known ones."""
        places = self._places.get(partition)
        if places is None or self.is_unplaced(partition):
            return None
        return places[max(places)].progress
