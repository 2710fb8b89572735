"""Topics whose writers have moved to the target, as a flow's driver sees to them (`sparkmirror topics done`)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from sparkmirror.cluster.topic_log import TopicLog
from sparkmirror.errors import SparkMirrorError
from sparkmirror.messages.control import ControlState, DoneTopic
from sparkmirror.messages.orders import Receipt
from sparkmirror.wire.topic_partition import TopicPartition


class DoneTopics:
    """Those of one flow. `follow` reads what operators say; `reach` takes what pumps say. For several threads."""

    def __init__(self, say: Callable[[str, DoneTopic], None]) -> None:
        """`say` makes durable how far a topic's copy has got."""
        self._say = say
        self._state = ControlState()
        self._offset = 0
        self._lock = threading.Lock()
        self._unsaid: set[str] = set()
        self.changed = False
        """Something else is to be copied than before: an operator has spoken, or a topic is released."""

    def follow(self, log: TopicLog, receipts: Iterable[Receipt]) -> None:
        """Read on in the control topic, and write down what was reached by the newest receipts.

        Raises `ConnectionError`s.
        """
        entries, offset = log.read(0, self._offset)
        with self._lock:
            before = dict(self._state.done)
            self._state.apply(entries)
            self._offset = offset
            self.changed |= before != self._state.done
        for receipt in receipts:  # a pump may have heard it sooner
            self.reach(receipt)
        self._write_down()

    def close(self) -> None:
        """Write down what was reached last: who comes next need not find it out."""
        with suppress(ConnectionError, SparkMirrorError):
            self._write_down()

    def _write_down(self) -> None:
        with self._lock:
            due = {topic: self._state.done[topic] for topic in self._unsaid & self._state.done.keys()}
        for topic, done in due.items():
            self._say(topic, done)
        with self._lock:
            self._unsaid -= due.keys()

    def reach(self, receipt: Receipt) -> None:
        """A pump has got somewhere."""
        with self._lock:
            done = self._state.done.get(receipt.source_topic)
            end = done.ends.get(receipt.partition) if done is not None else None
            if done is None or end is None or receipt.state != "done" or receipt.upstream < end:
                return
            reached = {**done.reached, receipt.partition: max(receipt.downstream, 0)}
            if reached != done.reached:
                self._state.done[receipt.source_topic] = done.model_copy(update={"reached": reached})
                self._unsaid.add(receipt.source_topic)
                self.changed |= self._state.done[receipt.source_topic].released

    def end_of(self, topic: str, partition: int) -> int | None:
        """As `ControlState.end_of`."""
        return self._state.end_of(topic, partition)

    def is_reached(self, topic: str, partition: int) -> bool:
        """Whether a partition is copied up to its end: nothing is to be done for it any more."""
        done = self._state.done.get(topic)
        return done is not None and partition in done.reached

    def is_released(self, topic: str) -> bool:
        """Whether all of a topic is."""
        done = self._state.done.get(topic)
        return done is not None and done.released

    @property
    def released(self) -> tuple[str, ...]:
        """Topics that the mirror leaves alone."""
        return tuple(sorted(topic for topic, done in list(self._state.done.items()) if done.released))

    def late(self, ends: Mapping[TopicPartition, int]) -> tuple[str, ...]:
        """A line for each partition that has got records since its writers were said to have moved."""
        return tuple(
            f"{topic}-{partition}: {offsets:,} offsets came to the source after its writers had moved, and are not "
            "copied: sparkmirror topics undo copies them"
            for topic, partition, offsets in self.late_offsets(ends)
        )

    def late_offsets(self, ends: Mapping[TopicPartition, int]) -> Iterable[tuple[str, int, int]]:
        """Topic, partition, and how many offsets have come to it since its writers were said to have moved."""
        return [
            (topic, partition, ends[topic, partition] - end)
            for topic, done in sorted(list(self._state.done.items()))
            for partition, end in sorted(done.ends.items())
            if ends.get((topic, partition), end) > end
        ]

    @property
    def partitions(self) -> Iterable[TopicPartition]:
        """All partitions of these topics."""
        return [(topic, partition) for topic, done in list(self._state.done.items()) for partition in done.ends]
