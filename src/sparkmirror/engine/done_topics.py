"""Topics whose writers have moved to the target (`sparkmirror topics done`).

Each flow's driver looks after the topics of its flow.
"""

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
    """Done topics of a flow; several threads may use the object.

    `follow` reads the operators' words in the control topic; `reach` takes the pumps' receipts.
    """

    def __init__(self, say: Callable[[str, DoneTopic], None]) -> None:
        """Begin empty; `say` makes durable how far a topic's copy has got."""
        self._say = say
        self._state = ControlState()
        self._offset = 0
        self._lock = threading.Lock()
        self._unwritten: set[str] = set()
        self.changed = False
        """True if the work changed: an operator's word, or a released topic."""

    def follow(self, log: TopicLog, receipts: Iterable[Receipt]) -> None:
        """Read on in the control topic, and write down what the newest receipts reached.

        Raises `ConnectionError`s.
        """
        entries, offset = log.read(0, self._offset)
        with self._lock:
            before = dict(self._state.done)
            self._state.apply(entries)
            self._offset = offset
            self.changed |= before != self._state.done
        # A pump may have read the operator's word before the driver.
        for receipt in receipts if self._state.done else ():
            self.reach(receipt)
        self._write_down()

    def close(self) -> None:
        """Write down the last progress, so that a successor need not find it out."""
        with suppress(ConnectionError, SparkMirrorError):
            self._write_down()

    def _write_down(self) -> None:
        with self._lock:
            due = {topic: self._state.done[topic] for topic in self._unwritten & self._state.done.keys()}
        for topic, done in due.items():
            self._say(topic, done)
        with self._lock:
            self._unwritten -= due.keys()

    def reach(self, receipt: Receipt) -> None:
        """Take note of a pump's receipt."""
        with self._lock:
            done = self._state.done.get(receipt.source_topic)
            end = done.ends.get(receipt.partition) if done is not None else None
            if done is None or end is None or receipt.state != "done" or receipt.upstream < end:
                return
            reached = {**done.reached, receipt.partition: max(receipt.downstream, 0)}
            if reached != done.reached:
                self._state.done[receipt.source_topic] = done.model_copy(update={"reached": reached})
                self._unwritten.add(receipt.source_topic)
                self.changed |= self._state.done[receipt.source_topic].released

    def end_of(self, topic: str, partition: int) -> int | None:
        """Return the same as `ControlState.end_of`."""
        return self._state.end_of(topic, partition)

    def is_reached(self, topic: str, partition: int) -> bool:
        """True if a partition is copied up to its end, so that no work is left."""
        done = self._state.done.get(topic)
        return done is not None and partition in done.reached

    def is_released(self, topic: str) -> bool:
        """True if every partition of a topic is copied up to its end."""
        done = self._state.done.get(topic)
        return done is not None and done.released

    @property
    def released(self) -> tuple[str, ...]:
        """Topics that the mirror leaves alone."""
        return tuple(sorted(topic for topic, done in list(self._state.done.items()) if done.released))

    def late(self, ends: Mapping[TopicPartition, int]) -> tuple[str, ...]:
        """Return a line for each partition that got records after its writers moved."""
        return tuple(
            f"{topic}-{partition}: {offsets:,} offsets came to the source after its writers had moved, and are not "
            "copied: sparkmirror topics undo copies them"
            for topic, partition, offsets in self.late_offsets(ends)
        )

    def late_offsets(self, ends: Mapping[TopicPartition, int]) -> Iterable[tuple[str, int, int]]:
        """Return topic, partition and number of late offsets.

        Late offsets came after the operator said that the writers had moved.
        """
        return [
            (topic, partition, ends[topic, partition] - end)
            for topic, done in sorted(list(self._state.done.items()))
            for partition, end in sorted(done.ends.items())
            if ends.get((topic, partition), end) > end
        ]

    @property
    def partitions(self) -> Iterable[TopicPartition]:
        """All partitions of the done topics."""
        return [(topic, partition) for topic, done in list(self._state.done.items()) for partition in done.ends]
