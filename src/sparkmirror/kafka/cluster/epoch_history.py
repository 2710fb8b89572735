"""Leader epochs of a log's records, as the leader tells them (KIP-101, KIP-320).

A leader epoch and an offset name one record of a topic for ever, whatever elections do. So two logs with the same epoch
at an offset are the same up to there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sparkmirror.errors import ClusterTrouble
from sparkmirror.kafka.cluster.client import ClusterClient, PartitionLeader, TopicLeaders
from sparkmirror.kafka.cluster.error_names import error_name
from sparkmirror.kafka.cluster.leader_epochs import EpochEnd, EpochStart, epoch_ends
from sparkmirror.kafka.wire.topic_partition import TopicPartition


def epoch_at(history: Sequence[EpochStart], offset: int) -> int | None:
    """Return the leader epoch of the record at an offset; None if not known."""
    return next((each.epoch for each in reversed(history) if each.start <= offset), None)


def epochs_in(history: Sequence[EpochStart], first: int, end: int) -> tuple[EpochStart, ...]:
    """Return the epochs of the records at offsets [first, end)."""
    before = [each for each in history if each.start <= first][-1:] if first < end else []
    return tuple(before + [each for each in history if first < each.start < end])


def joined(copied: Iterable[EpochStart], more: Iterable[EpochStart]) -> tuple[EpochStart, ...]:
    """Return a history that continues with `more`.

    As in a broker's own list, what begins later, or has a higher epoch, is no more.
    """
    history = list(copied)
    for each in more:
        history = [kept for kept in history if kept.epoch < each.epoch and kept.start < each.start]
        history.append(each)
    return tuple(history)


@dataclass(slots=True)
class _History:
    """One log's history, walked from the present epoch down."""

    topic_id: bytes
    leader: PartitionLeader
    starts: list[EpochStart] = field(default_factory=list)
    """Known epochs, the newest first."""
    below: int | None = None
    """Newest epoch whose start isn't known; None: the leader knows no older one."""

    def goes_down_to(self, offset: int) -> bool:
        return self.below is None or (bool(self.starts) and self.starts[-1].start <= offset)

    def take(self, answer: EpochEnd) -> None:
        """Take where the epochs before `below` end."""
        if self.below is None:
            return
        if answer.epoch < 0 or answer.end < 0 or (self.starts and answer.end >= self.starts[-1].start):
            self.below = None  # no record is of an older epoch, or none whose epoch the leader knows
            return
        self.starts.append(EpochStart(self.below, answer.end))
        self._go_below(answer.epoch)

    def _go_below(self, epoch: int) -> None:
        self.below = epoch
        if not epoch:
            if not self.starts or self.starts[-1].start > 0:
                self.starts.append(EpochStart(0, 0))
            self.below = None

    def begin(self) -> None:
        if self.leader.epoch >= 0:
            self._go_below(self.leader.epoch)


class EpochHistories:
    """Histories of a cluster's logs, each as far back as was asked. For one thread.

    A leader only appends to its log. So a history is read again only when the topic or the leader epoch is another.
    """

    def __init__(self, client: ClusterClient) -> None:
        self._client = client
        self._known: dict[TopicPartition, _History] = {}

    def read(
        self, topics: Mapping[str, TopicLeaders], down_to: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, tuple[EpochStart, ...]]:
        """Return each log's epochs down to that of the record at an offset.

        The oldest comes first. `topics` is new metadata. A partition is left out if it has no leader, or if the leader
        is about to change. Its history is empty where leader epochs aren't known (before Kafka 2.4). Raises
        `ConnectionError`.
        """
        histories = {at: known for at in down_to if (known := self._of(topics, at)) is not None}
        while walked := {at: each for at, each in histories.items() if not each.goes_down_to(down_to[at])}:
            asked = {at: each.below - 1 for at, each in walked.items() if each.below is not None}
            for at, answer in self._ends(histories, asked).items():
                if answer.error:
                    del histories[at], self._known[at]
                else:
                    walked[at].take(answer)
        return {at: tuple(reversed(each.starts)) for at, each in histories.items()}

    def end_of(self, at: TopicPartition, epoch: int) -> EpochEnd:
        """Return where a leader epoch ends in a log whose history was read.

        Raises `ConnectionError`, also if the leader has changed since.
        """
        answer = self._ends(self._known, {at: epoch})[at]
        if answer.error:
            raise ClusterTrouble(
                f"cluster {self._client.config.alias}: {at[0]}-{at[1]}: its leader can't tell its leader epochs now: "
                f"{error_name(answer.error)}"
            )
        return answer

    def _of(self, topics: Mapping[str, TopicLeaders], at: TopicPartition) -> _History | None:
        topic = topics.get(at[0])
        leader = topic.partitions.get(at[1]) if topic is not None and not topic.error else None
        if topic is None or leader is None or leader.leader < 0:
            return None
        known = self._known.get(at)
        if known is None or (known.topic_id, known.leader) != (topic.topic_id, leader):
            known = self._known[at] = _History(topic.topic_id, leader)
            known.begin()
        return known

    def _ends(
        self, histories: Mapping[TopicPartition, _History], asked: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, EpochEnd]:
        led: dict[int, dict[TopicPartition, int]] = defaultdict(dict)
        for at, epoch in asked.items():
            led[histories[at].leader.leader][at] = epoch
        ends: dict[TopicPartition, EpochEnd] = {}
        for leader, epochs in led.items():
            present = {at: histories[at].leader.epoch for at in epochs}
            ends |= epoch_ends(self._client, leader, epochs, present)
        return ends
