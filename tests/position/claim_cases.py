"""Claims, targets and rulings for the tests of the arbitration."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tests.support.claims_model import Sent, Target

from sparkmirror.exact.durable.claims import Claim
from sparkmirror.exact.position.arbitration import Ruling
from sparkmirror.kafka.wire.splice import Run

ONE, OTHER = 1 << 40, 1 << 50
"""Where two pumps' numbers begin."""

dense = range(10)
"""What the first batch of most cases holds."""


def batches(sequence: int, *offsets: Iterable[int]) -> list[Sent]:
    found = []
    for some in offsets:
        found.append(Sent(tuple(some), sequence, sequence))
        sequence += len(found[-1].offsets)
    return found


def claim(incarnation: int, sequence: int, *offsets: Iterable[int], confirmed: bool = False) -> Claim:
    """What a pump claims that is about to send batches with these upstream offsets."""
    sent = batches(sequence, *offsets)
    runs = tuple(run for one in sent for run in one.runs)
    announced = tuple(one.announced for one in sent)
    return Claim(
        target_topic_id=b"t" * 16,
        partition=0,
        sequence=sequence,
        incarnation=incarnation,
        producer_id=4000,
        producer_epoch=0,
        source_topic_id=b"s" * 16,
        source_leader_epoch=0,
        downstream=sequence,
        runs=runs,
        batches=announced,
        confirmed=confirmed,
    )


def a_target(claims: Iterable[Claim], *offsets: Iterable[int]) -> Target:
    """With batches of these upstream offsets in its log."""
    target = Target()
    target.write(*claims)
    for one in batches(0, *offsets):
        assert target.append(one)
    return target


def known(ruling: Ruling, count: int) -> list[int]:
    """The upstream offset of each sequence, by the true claims."""
    assert not ruling.undecided, ruling.undecided
    found = []
    for sequence in range(count):
        (*_, newest) = [one for one in ruling.true if one.sequence <= sequence]
        found.append(newest.upstream_of(sequence))
    return found


def assert_right(target: Target) -> Ruling:
    ruling = target.ruling()
    assert known(ruling, len(target.log)) == target.log
    return ruling


def incarnations(claims: Sequence[Claim]) -> list[int]:
    return [one.incarnation for one in claims]


def start(incarnation: int, upstream: int) -> Claim:
    return replace(claim(incarnation, 0, [upstream]), runs=(Run(upstream, 0),), batches=())
