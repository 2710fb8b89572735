"""Where the source's log was cut: against a model of logs, replicas and unclean elections (KIP-101, KIP-320)."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import event, given, settings
from hypothesis import strategies as st

from sparkmirror.exact.durable.claims import Claim
from sparkmirror.exact.position.loss_detection import cut_in
from sparkmirror.kafka.cluster.leader_epochs import EpochEnd
from sparkmirror.kafka.wire.splice import Run

SOURCE_ID, TARGET_ID = bytes(16), bytes(15) + b"\x01"


@dataclass
class Source:
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
        if epoch > self.epoch:
            return EpochEnd(-1, -1, 0)
        following = min(start for other, start in self.starts.items() if other > epoch)
        floor = max((other for other in self.starts if other <= epoch), default=epoch)
        return EpochEnd(floor, following, 0)


@dataclass
class Mirror:
    """Copies as a pump does, with a claim wherever an epoch begins, and continues behind each cut."""

    claims: list[Claim] = field(default_factory=list)
    view: list[int] = field(default_factory=list)
    """Epochs of the records copied, as the source's one history."""
    sequence: int = 0

    def cut(self, source: Source) -> int | None:
        return cut_in(self.claims, len(self.view), source.end_of)

    def copy(self, source: Source, count: int) -> None:
        cut = self.cut(source) if self.claims else None
        due = not self.claims
        if cut is not None and cut < len(self.view):
            del self.view[cut:]
            due = True
        for epoch in source.log[len(self.view) :][:count]:
            if due or epoch != self.claims[-1].source_leader_epoch:
                self.claims.append(claim(self.sequence, len(self.view), epoch))
            due = False
            self.view.append(epoch)
            self.sequence += 1


def claim(sequence: int, upstream: int, epoch: int) -> Claim:
    return Claim(
        target_topic_id=TARGET_ID,
        partition=0,
        sequence=sequence,
        incarnation=sequence,
        producer_id=7,
        producer_epoch=0,
        source_topic_id=SOURCE_ID,
        source_leader_epoch=epoch,
        downstream=sequence,
        runs=(Run(upstream, 1),),
    )


def first_difference(copied: list[int], source: list[int]) -> int:
    same = (one == other for one, other in zip(copied, source, strict=False))
    return next((offset for offset, equal in enumerate(same) if not equal), min(len(copied), len(source)))


STEPS = st.one_of(
    st.tuples(st.just("append"), st.integers(1, 8), st.just(0)),
    st.tuples(st.just("copy"), st.integers(1, 12), st.just(0)),
    st.tuples(st.just("leave"), st.just(0), st.just(0)),
    st.tuples(st.just("elect"), st.integers(0, 5), st.integers(0, 3)),
)


@settings(max_examples=500, deadline=None)
@given(st.lists(STEPS, min_size=3, max_size=40))
def test_the_cut_is_the_first_record_that_differs(steps: list[tuple[str, int, int]]) -> None:
    source, mirror = Source(), Mirror()
    cuts = 0
    for what, one, other in steps:
        if what == "append":
            source.append(one)
        elif what == "leave":
            source.leave_behind()
        elif what == "elect":
            source.elect(one, other)
        else:
            mirror.copy(source, one)
        if mirror.claims and mirror.view:
            differs = first_difference(mirror.view, source.log)
            cut = mirror.cut(source)
            assert cut == differs
            cuts += differs < len(mirror.view)
    event(f"{min(cuts, 3)} cuts or more")


def test_one_question_is_not_enough() -> None:
    """Neither log has the epoch that the other one continued with; below both have the first one."""
    asked = []

    def ask(epoch: int) -> EpochEnd:
        asked.append(epoch)
        return EpochEnd(2, 70, 0) if epoch == 3 else EpochEnd(0, 40, 0)

    copied = [claim(0, 0, 0), claim(40, 40, 1), claim(50, 50, 3)]
    assert cut_in(copied, 60, ask) == 40
    assert asked == [3, 1]


def test_a_leader_that_does_not_know() -> None:
    assert cut_in([claim(0, 0, 5)], 60, lambda _: EpochEnd(-1, -1, 0)) is None
