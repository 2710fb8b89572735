"""Agreed micro-batches of a flow's queries, in a compacted topic at the target.

All attempts at a batch must read the same records, in any process. Each proposal has a key of its own and survives
compaction; of a number's proposals the lowest offset counts. A finished batch's proposals are deleted once the next is
agreed on.
"""

from __future__ import annotations

import json
import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from sparkmirror.clock import wall_ms
from sparkmirror.errors import AttemptFenced, ClusterUnreachable
from sparkmirror.exact.durable.claims import TargetPartition
from sparkmirror.exact.durable.query_places import COPIED, QueryPlaces, read_epochs, read_places
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.epoch_history import joined
from sparkmirror.kafka.cluster.leader_epochs import EpochStart
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.kafka.wire.topic_ids import same_topic
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.queries.copied_logs import CopiedLog

_ENDS = "ends"
"""Kind of the records that tell where a query's records end at the target."""

NOT_KNOWN = ""
"""Target topic's id of a range whose copy has not been seen yet.

A partition without a leader at the target begins there only if the copy proves empty.
"""


class PlannedRange(NamedTuple):
    """Source offsets [begin, end) of a partition."""

    begin: int
    end: int
    topic_id: str
    """The source topic's id, as hexadecimal digits."""
    target_id: str
    """The same for the target topic of that name, or `NOT_KNOWN`."""
    epochs: tuple[EpochStart, ...] = ()
    """The records' leader epochs; an empty range has that of the record before."""

    def is_of(self, topic_id: bytes) -> bool:
        """Tell whether the source topic may be the range's."""
        return same_topic(bytes.fromhex(self.topic_id), topic_id)

    @property
    def passed(self) -> PlannedRange:
        """The empty range after this one."""
        return self._replace(begin=self.end, epochs=self.epochs[-1:])

    def up_to(self, offset: int) -> PlannedRange:
        """Return the part of the range below an offset."""
        end = max(self.begin, min(self.end, offset))
        return self._replace(end=end, epochs=tuple(each for each in self.epochs if each.start < end))

    def behind(self, copied: Iterable[EpochStart]) -> CopiedLog:
        """Return the source's log as it was copied up to the range's end.

        `copied` are the leader epochs of the records copied before.
        """
        is_known = bool(self.epochs) or self.begin == self.end
        return CopiedLog(self.end, joined(copied, self.epochs) if is_known else ())


class TargetEnd(NamedTuple):
    """End of a target partition's log, or of a query's records in it."""

    topic_id: str
    """The target topic's id, as hexadecimal digits."""
    log: CopiedLog


@dataclass(frozen=True, slots=True)
class PlannedBatch:
    """A micro-batch: its number, and a range for each source partition."""

    number: int
    ranges: Mapping[TopicPartition, PlannedRange]
    begins: Mapping[TopicPartition, TargetEnd] = field(default_factory=dict)
    """Ends of the target's logs before the plan: attempts append behind them."""

    @property
    def ends(self) -> dict[TopicPartition, int]:
        return {at: each.end for at, each in self.ranges.items()}

    def to_json(self) -> bytes:
        begins: dict[tuple[str, str], list[tuple[int, CopiedLog]]] = defaultdict(list)
        for (topic, partition), begin in sorted(self.begins.items()):
            begins[topic, begin.topic_id].append((partition, begin.log))
        ranges = [[*at, *each] for at, each in sorted(self.ranges.items())]
        said = {"ranges": ranges, "begins": [[*topic, logs] for topic, logs in begins.items()]}
        return json.dumps(said).encode()

    @classmethod
    def from_json(cls, number: int, value: bytes) -> PlannedBatch:
        said = json.loads(value)
        said = said if isinstance(said, dict) else {"ranges": said}  # as plans were at first
        ranges = {
            (str(topic), int(partition)): PlannedRange(
                begin=int(begin),
                end=int(end),
                topic_id=str(topic_id),
                target_id=str(target_id),
                epochs=read_epochs(*more),
            )
            for topic, partition, begin, end, topic_id, target_id, *more in said["ranges"]
        }
        begins = {
            (str(topic), int(partition)): TargetEnd(str(topic_id), CopiedLog(int(end), read_epochs(epochs)))
            for topic, topic_id, logs in said.get("begins", ())
            for partition, (end, epochs) in logs
        }
        return cls(number, ranges, begins)


class AgreedBatch(NamedTuple):
    """The agreed batch, and who proposed it."""

    batch: PlannedBatch
    is_own: bool
    """False if another process may have begun to write the batch."""


class PlanLog:
    """One query's plans; for one thread.

    Methods raise `ClusterUnreachable` and `ConnectionError`.
    """

    def __init__(self, client: ClusterClient, topic: str, query: str) -> None:
        self._alias = client.config.alias
        self._log = TopicLog(client, topic)
        self._query = query
        self._plans: dict[int, PlannedBatch] = {}
        self._keys: dict[int, list[bytes]] = {}
        self._proposed_ms: dict[int, int] = {}
        """Times of the agreed proposals, by batch."""
        self._finished = -1
        self._read_to = 0
        self._places: dict[tuple[TargetPartition, int, int], QueryPlaces] = {}
        """Places by target partition, batch and part.

        Each partition has those of its two newest batches.
        """
        self._copied: dict[TargetPartition, tuple[bytes, tuple[EpochStart, ...]]] = {}
        """Each copy's source topic id, and leader epochs of the copied records."""
        self._ends: dict[TopicPartition, TargetEnd] = {}

    def newest(self) -> PlannedBatch | None:
        """Return the newest agreed batch."""
        self._read()
        return self._plans[max(self._plans)] if self._plans else None

    def reached(self, batch: PlannedBatch) -> PlannedBatch:
        """Return a finished batch up to where it got.

        A log that was cut after the plan has fewer records than planned.
        """
        ranges = {}
        for at, each in batch.ranges.items():
            places = self.last_places((bytes.fromhex(each.target_id), at[1]), batch.number + 1)
            known = places is not None and places.batch == batch.number and each.is_of(places.source_topic_id)
            ranges[at] = each.up_to(places.upstream_end) if places is not None and known else each
        return PlannedBatch(batch.number, ranges)

    def copied(self, at: TopicPartition, planned: PlannedRange) -> CopiedLog:
        """Return the source's log as it was copied up to a range's end."""
        source_id, epochs = self._copied.get((bytes.fromhex(planned.target_id), at[1]), (b"", ()))
        before = epochs if source_id and planned.is_of(source_id) else ()
        return planned.behind(before)

    @property
    def ends(self) -> Mapping[TopicPartition, TargetEnd]:
        """Ends of the query's records at the target."""
        return self._ends

    def is_finished(self, batch: PlannedBatch) -> bool:
        """True if somebody has noted that all the batch's rows are at the target."""
        return batch.number <= self._finished

    def first_attempt_ms(self, batch: PlannedBatch) -> int:
        """Return a time before which nobody attempted the batch; 0: not known."""
        return self._proposed_ms.get(batch.number, 0)

    def agree(self, proposal: PlannedBatch) -> AgreedBatch:
        """Return the agreed batch with the proposal's number.

        Raises `AttemptFenced` if another process has agreed on a later batch.
        """
        key = json.dumps([self._query, "plan", proposal.number, uuid.uuid4().hex, wall_ms()]).encode()
        self._log.append(0, [(key, proposal.to_json())])
        newest = self.demand_newest(proposal)
        old = [key for number, keys in self._keys.items() if number < proposal.number for key in keys]
        if old:
            self._log.append(0, [(key, None) for key in old])
        return AgreedBatch(newest, self._keys[newest.number][0] == key)

    def demand_newest(self, batch: PlannedBatch) -> PlannedBatch:
        """Return the newest agreed batch if the number is the batch's.

        Raises `AttemptFenced` if another process has agreed on a later batch.
        """
        newest = self.newest()
        if newest is None or newest.number != batch.number:
            raise AttemptFenced(
                f"query {self._query}: another process has planned batch {-1 if newest is None else newest.number:,}, "
                f"this one batch {batch.number:,}"
            )
        return newest

    def finish(self, batch: PlannedBatch) -> None:
        """Note that all the batch's rows are at the target."""
        key = json.dumps([self._query, "finished"]).encode()
        self._log.append(0, [(key, str(batch.number).encode())])
        self._finished = max(self._finished, batch.number)

    def last_places(self, target: TargetPartition, before: int) -> QueryPlaces | None:
        """Return the newest places in a partition before a batch.

        None without any.
        """
        self._read()
        places = [each for (at, batch, _), each in self._places.items() if at == target and batch < before]
        return max(places, key=lambda each: (each.batch, each.part), default=None)

    def place(self, places: Iterable[QueryPlaces], ends: Mapping[TopicPartition, TargetEnd]) -> None:
        """Write places down, and where the query's records end now."""
        records: list[tuple[bytes, bytes | None]] = [part.record() for each in places for part in each.parts()]
        for at, end in ends.items():
            key = json.dumps([self._query, _ENDS, *at]).encode()
            records.append((key, json.dumps([end.topic_id, *end.log]).encode()))
        if records:
            self._log.append(0, records)

    def _read(self) -> None:
        entries, self._read_to = self._log.read(0, self._read_to)
        for entry in entries:
            try:
                query, kind, *rest = json.loads(entry.key or b"[]")
                if query == self._query and kind == COPIED:
                    self._take_places(entry.key, entry.value)
                elif query == self._query and kind == _ENDS:
                    topic_id, end, epochs = json.loads(entry.value or b"")
                    self._ends[rest[0], rest[1]] = TargetEnd(topic_id, CopiedLog(end, read_epochs(epochs)))
                elif query == self._query:
                    self._take(kind, rest, entry.key or b"", entry.value)
            except (KeyError, TypeError, ValueError) as error:
                raise ClusterUnreachable(
                    f"cluster {self._alias}: {self._log.topic} has a record of another program at offset "
                    f"{entry.offset}: {error}"
                ) from error

    def _take(self, kind: str, rest: list[object], key: bytes, value: bytes | None) -> None:
        if kind == "finished":
            self._finished = max(self._finished, int(value or b"-1"))
            return
        number = int(str(rest[0]))
        if value is None:
            self._keys[number] = [known for known in self._keys.get(number, ()) if known != key]
            if not self._keys[number]:
                del self._keys[number]
                self._plans.pop(number, None)
                self._proposed_ms.pop(number, None)
            return
        if number not in self._plans:
            self._proposed_ms[number] = int(str(rest[2])) if len(rest) > 2 else 0
        self._plans.setdefault(number, PlannedBatch.from_json(number, value))
        self._keys.setdefault(number, []).append(key)

    def _take_places(self, key: bytes | None, value: bytes | None) -> None:
        """Keep the places of the last two batches in each partition."""
        places = read_places(key, value)
        if places is None:
            return
        self._places[places.target, places.batch, places.part] = places
        source_id, epochs = self._copied.get(places.target, (places.source_topic_id, ()))
        before = epochs if same_topic(source_id, places.source_topic_id) else ()
        self._copied[places.target] = places.source_topic_id, joined(before, places.epochs)
        batches = sorted({batch for at, batch, _ in self._places if at == places.target})
        for old in [each for each in self._places if each[0] == places.target and each[1] in batches[:-2]]:
            del self._places[old]
