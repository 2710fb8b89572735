"""Topics whose writers have moved to the target (`sparkmirror topics done`).

Each flow's driver looks after its own flow's topics.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import NamedTuple

from sparkmirror.errors import SparkMirrorError
from sparkmirror.kafka.cluster.topic_descriptions import TopicDescription
from sparkmirror.kafka.cluster.topic_log import LogEntry, TopicLog
from sparkmirror.kafka.wire.topic_ids import NO_ID
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.mirror.sync.turn_order import FlowWords, words_in
from sparkmirror.pump.messages.control import ControlState, DoneTopic, TurnStart, done_key
from sparkmirror.pump.messages.orders import Receipt
from sparkmirror.snapshot.late_offsets import LateOffsets


class _OwnWord(NamedTuple):
    """Word on a topic that this process has appended, perhaps several times."""

    word: DoneTopic | None
    at: float
    """The last record's offset; infinite while unknown.

    Unknown means that the append is under way or has failed.
    """

    def is_in(self, entry: LogEntry, topic: str) -> bool:
        """Tell whether a topic's record is this word; a repeated append has several."""
        state = ControlState()
        state.apply([entry])
        return entry.offset == self.at or (entry.offset < self.at and state.done.get(topic) == self.word)


class DoneTopics:
    """A flow's done topics; several threads may use the object.

    `follow` reads the operators' words in the control topic; `reach` takes the pumps' receipts, `overtake` the
    opposite flow's turns.
    """

    def __init__(self, say: Callable[[str, DoneTopic | None], int]) -> None:
        """Begin empty; `say` appends a word on a topic, and returns the record's offset."""
        self._say = say
        self._state = ControlState()
        self._offset = 0
        self._lock = threading.Lock()
        self._unwritten: set[str] = set()
        """Topics with progress that is not written down."""
        self._said: dict[str, _OwnWord] = {}
        """Own words that were not read back, by topic."""
        self._hidden: set[str] = set()
        """Topics with an operator's word that an own record has hidden."""
        self._at_source: Mapping[str, TopicDescription] = {}
        """Done topics that the source has now."""
        self.changed = False
        """True if the work changed: an operator's word, or a released topic."""

    def follow(self, log: TopicLog, receipts: Iterable[Receipt]) -> None:
        """Read on in the control topic, and write down what the newest receipts reached.

        Raises `ConnectionError`s.
        """
        self._read(log)
        # A pump may have read the operator's word before the driver.
        for receipt in receipts if self._state.done else ():
            self.reach(receipt)
        self._write_down(log)

    def close(self, log: TopicLog) -> None:
        """Write down the last progress, so that a successor need not find it out."""
        with suppress(ConnectionError, SparkMirrorError):
            self._read(log)
            self._write_down(log)

    def _read(self, log: TopicLog) -> None:
        """Read on in the control topic, and find operators' words that own records hide."""
        entries, offset = log.read(0, self._offset)
        with self._lock:
            before = dict(self._state.done), dict(self._state.turns), dict(self._state.accepted)
            said = {done_key(topic).encode(): topic for topic in self._said}
            theirs, last = [], {topic: own.at for topic, own in self._said.items() if own.at < math.inf}
            for entry in entries:
                topic = said.get(entry.key or b"")
                if topic is not None and self._said[topic].is_in(entry, topic):
                    last[topic] = entry.offset
                else:
                    theirs.append(entry)
            self._state.apply(theirs)
            first: dict[bytes | None, int] = {}
            for entry in theirs:
                first.setdefault(entry.key, entry.offset)
            self._hidden |= {topic for topic, at in last.items() if first.get(done_key(topic).encode(), at) < at}
            # The progress of such a topic was of an earlier word.
            self._unwritten = {topic for topic in self._unwritten if done_key(topic).encode() not in first}
            self._said.clear()
            self._offset = offset
            self.changed |= before != (self._state.done, self._state.turns, self._state.accepted)

    def _write_down(self, log: TopicLog) -> None:
        """Append progress, and what operators said just before.

        Both have the same key, so the progress would take back what the operator has said meanwhile.
        """
        while due := self._due():
            for topic, done in due.items():
                self._said[topic] = _OwnWord(done, math.inf)
                at = self._say(topic, done)
                with self._lock:
                    self._said[topic] = _OwnWord(done, at)
                    if self._state.done.get(topic) == done:
                        self._unwritten.discard(topic)
                        self._hidden.discard(topic)
            self._read(log)

    def _due(self) -> dict[str, DoneTopic | None]:
        with self._lock:
            topics = (self._unwritten & self._state.done.keys()) | self._hidden
            return {topic: self._state.done.get(topic) for topic in sorted(topics)}

    def see(self, topics: Mapping[str, TopicDescription]) -> None:
        """Note the done topics as the source has them now."""
        self._at_source = topics

    def reach(self, receipt: Receipt) -> None:
        """Note a pump's receipt, unless the topic was created again."""
        topic, partition = receipt.source_topic, receipt.partition
        with self._lock:
            done = self._state.done.get(topic)
            if done is None or receipt.state != "done" or receipt.upstream < done.end_of(partition):
                return
            if self._is_recreated(topic, done):
                return
            reached = dict(done.reached)
            if partition in done.ends:
                reached[partition] = max(receipt.downstream, 0)
            beyond = dict(done.beyond)
            if receipt.upstream > done.end_of(partition):
                beyond[partition] = receipt.upstream
            self._note(topic, done, reached, beyond)

    def overtake(self, topic: str, next_turn: TurnStart) -> None:
        """Note that the opposite flow's turn has begun, so this flow's end is reached.

        A migration tells by the offset map that all is copied, before the pump's receipt has come here.
        """
        with self._lock:
            done, begun = self._state.done.get(topic), self._state.turns.get(topic)
            if done is None or done.released or (begun is not None and begun.number > next_turn.number):
                return
            at_target = {at: border.upstream for at, border in next_turn.starts.items() if at in done.ends}
            self._note(topic, done, at_target | done.reached, done.beyond)

    def _note(self, topic: str, done: DoneTopic, reached: dict[int, int], beyond: dict[int, int]) -> None:
        if (reached, beyond) != (done.reached, done.beyond):
            self._state.done[topic] = done.model_copy(update={"reached": reached, "beyond": beyond})
            self._unwritten.add(topic)
            self.changed |= self._state.done[topic].released

    def _is_recreated(self, topic: str, done: DoneTopic) -> bool:
        """True if the name belongs to another topic at the source by now."""
        there = self._at_source.get(topic)
        return there is not None and not done.is_of(there.topic_id)

    def end_of(self, topic: str, partition: int) -> int | None:
        """Return the same as `ControlState.end_of`, for the topic that the source has now."""
        there = self._at_source.get(topic)
        return self._state.end_of(topic, partition, NO_ID if there is None else there.topic_id)

    def is_reached(self, topic: str, partition: int) -> bool:
        """True if a partition is copied up to its end, so that no work is left.

        Nothing is to be copied from a partition that the source got after its writers had moved.
        """
        done = self._state.done.get(topic)
        return done is not None and (partition in done.reached or partition not in done.ends)

    def is_released(self, topic: str) -> bool:
        """True if all a topic's partitions are copied up to their ends."""
        done = self._state.done.get(topic)
        return done is not None and done.released

    def words(self, topic: str) -> FlowWords:
        """Return the flow's own words on a topic that a migration moves there and back."""
        return words_in(self._state, topic)

    @property
    def topics(self) -> tuple[str, ...]:
        """Topics whose writers have moved."""
        return tuple(sorted(list(self._state.done)))

    @property
    def released(self) -> tuple[str, ...]:
        """Topics that the mirror leaves alone."""
        return tuple(sorted(topic for topic, done in list(self._state.done.items()) if done.released))

    def ended(self, copy_of: Callable[[str], str]) -> dict[TopicPartition, int]:
        """Return the copies' ends of released topics, by target partition."""
        return {
            (copy_of(topic), partition): end
            for topic, done in list(self._state.done.items())
            if done.released
            for partition, end in done.reached.items()
        }

    def outgrown(self, ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return from where on offsets are late, in partitions whose logs are longer now.

        Also where the end is not reached yet: it may be before these `ends` of the source are used.
        """
        late_from = {
            (topic, partition): max(done.late_from(partition), self._accepted(topic, done, partition))
            for topic, done, partition in self._partitions()
            if not self._is_recreated(topic, done)
        }
        return {place: offset for place, offset in late_from.items() if ends.get(place, 0) > offset}

    def _accepted(self, topic: str, done: DoneTopic, partition: int) -> int:
        """Return the source offset below which late records stay at the source."""
        return done.left_below(partition, self._state.accepted.get(topic))

    def late_offsets(
        self, ends: Mapping[TopicPartition, int], told: Mapping[TopicPartition, int] = MappingProxyType({})
    ) -> list[LateOffsets]:
        """Return late offsets for each partition that has any.

        While a partition is still copied to its end, nobody knows how many there will be. `ends` are the source's,
        `told` has the late offsets where the opposite flow's copies are at the source, too (`OppositeCopies`).
        """
        late = []
        for topic, done, partition in self._partitions():
            if self._is_recreated(topic, done):
                missing = ends.get((topic, partition), 0)
                late.append(LateOffsets(topic=topic, partition=partition, copied=0, missing=missing, recreated=True))
            elif partition in done.reached or partition not in done.ends:
                accepted = self._accepted(topic, done, partition)
                known = max(done.end_of(partition), accepted)
                copied = max(done.copied_to(partition) - known, 0)
                missing = ends.get((topic, partition), 0) - max(done.late_from(partition), accepted)
                missing = min(told.get((topic, partition), missing), missing)
                late.append(LateOffsets(topic=topic, partition=partition, copied=copied, missing=max(missing, 0)))
        return [each for each in late if each.copied or each.missing]

    @property
    def partitions(self) -> Iterable[TopicPartition]:
        """All the done topics' partitions, also the source's later ones."""
        return [(topic, partition) for topic, _, partition in self._partitions()]

    def _partitions(self) -> list[tuple[str, DoneTopic, int]]:
        """Return the done topics' partitions, in order."""
        return [
            (topic, done, partition)
            for topic, done in sorted(list(self._state.done.items()))
            for partition in sorted(done.ends.keys() | self._there(topic))
        ]

    def _there(self, topic: str) -> set[int]:
        """Return a topic's partitions at the source."""
        there = self._at_source.get(topic)
        return set() if there is None else {partition.partition for partition in there.partitions}
