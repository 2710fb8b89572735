"""A model of a partition's log under unclean leader elections, as leaders tell its leader epochs (KIP-101, KIP-320)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

from sparkmirror.kafka.cluster.client import PartitionLeader, TopicLeaders
from sparkmirror.kafka.cluster.leader_epochs import EpochEnd
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.topic_partition import TopicPartition

AT = ("t", 0)
ID = bytes(16)


@dataclass
class ElectedLog:
    """A log whose records are told by their epochs: one leader an epoch, so (epoch, offset) is one record."""

    log: list[int] = field(default_factory=list)
    epoch: int = 0
    starts: dict[int, int] = field(default_factory=lambda: {0: 0})
    """Of each epoch that the leader knows; its own too, before it has written anything."""
    replicas: list[tuple[int, ...]] = field(default_factory=list)
    """Logs that brokers were left with when they fell out of sync."""

    def append(self, count: int) -> None:
        self.log += [self.epoch] * count

    def leave_behind(self) -> None:
        self.replicas.append(tuple(self.log))

    def elect(self, replica: int, cut: int) -> None:
        """A broker with an old log becomes the leader."""
        chosen = self.replicas[replica % len(self.replicas)] if self.replicas else tuple(self.log)
        self.log = list(chosen[: max(len(chosen) - cut, 0)])
        self.epoch += 1
        self.starts = {epoch: self.log.index(epoch) for epoch in dict.fromkeys(self.log)}
        self.starts[self.epoch] = len(self.log)

    def end_of(self, epoch: int) -> EpochEnd:
        """As Kafka's LeaderEpochFileCache answers."""
        if epoch == self.epoch:
            return EpochEnd(epoch, len(self.log), 0)
        if not 0 <= epoch < self.epoch:
            return EpochEnd(-1, -1, 0)
        following = min(start for other, start in self.starts.items() if other > epoch)
        floor = max((other for other in self.starts if other <= epoch), default=epoch)
        return EpochEnd(floor, following, 0)


class ModelLeader:
    """The leader of a model's log, in place of a broker."""

    config = type("Config", (), {"alias": "A"})

    def __init__(self, log: ElectedLog) -> None:
        self.log = log
        self.asked = 0

    def epoch_ends(
        self, _: object, __: int, epochs: Mapping[TopicPartition, int], present: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, EpochEnd]:
        self.asked += 1
        if present[AT] != self.log.epoch:
            return {AT: EpochEnd(-1, -1, ErrorCode.FENCED_LEADER_EPOCH)}
        return {AT: self.log.end_of(epochs[AT])}

    def topics(self, epoch: int | None = None, topic_id: bytes = ID) -> dict[str, TopicLeaders]:
        leader = PartitionLeader(1, self.log.epoch if epoch is None else epoch)
        return {"t": TopicLeaders("t", topic_id, 0, {0: leader})}


def first_difference(copied: Sequence[int], source: Sequence[int]) -> int:
    same = (one == other for one, other in zip(copied, source, strict=False))
    return next((offset for offset, equal in enumerate(same) if not equal), min(len(copied), len(source)))


STEPS = st.one_of(
    st.tuples(st.just("append"), st.integers(1, 8), st.just(0)),
    st.tuples(st.just("copy"), st.integers(1, 12), st.just(0)),
    st.tuples(st.just("leave"), st.just(0), st.just(0)),
    st.tuples(st.just("elect"), st.integers(0, 5), st.integers(0, 3)),
)
