"""Where the source's log was cut: against a model of logs, replicas and unclean elections (KIP-101, KIP-320)."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import event, given, settings
from hypothesis import strategies as st
from tests.support.elected_log import STEPS, ElectedLog, first_difference

from sparkmirror.exact.durable.claims import Claim
from sparkmirror.exact.position.loss_detection import cut_in
from sparkmirror.kafka.cluster.leader_epochs import EpochEnd, EpochStart
from sparkmirror.kafka.wire.splice import Run

SOURCE_ID, TARGET_ID = bytes(16), bytes(15) + b"\x01"


@dataclass
class Mirror:
    """Copies as a pump does, with a claim wherever an epoch begins, and continues behind each cut."""

    claims: list[Claim] = field(default_factory=list)
    view: list[int] = field(default_factory=list)
    """Epochs of the records copied, as the source's one history."""
    sequence: int = 0

    def cut(self, source: ElectedLog) -> int | None:
        return cut_in(self.epochs, len(self.view), source.end_of)

    @property
    def epochs(self) -> list[EpochStart]:
        return [EpochStart(each.source_leader_epoch, each.upstream) for each in self.claims]

    def copy(self, source: ElectedLog, count: int) -> None:
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


@settings(max_examples=500, deadline=None)
@given(st.lists(STEPS, min_size=3, max_size=40))
def test_the_cut_is_the_first_record_that_differs(steps: list[tuple[str, int, int]]) -> None:
    source, mirror = ElectedLog(), Mirror()
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

    copied = [EpochStart(0, 0), EpochStart(1, 40), EpochStart(3, 50)]
    assert cut_in(copied, 60, ask) == 40
    assert asked == [3, 1]


def test_a_leader_that_does_not_know() -> None:
    assert cut_in([EpochStart(5, 0)], 60, lambda _: EpochEnd(-1, -1, 0)) is None
