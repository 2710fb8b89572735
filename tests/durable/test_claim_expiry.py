"""Which claims are retracted when the target's log start moves, on a segments topic in memory."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from sparkmirror.config import ClusterConfig
from sparkmirror.exact.durable import claim_expiry as segments_tidy
from sparkmirror.exact.durable.claim_expiry import retract_expired
from sparkmirror.exact.durable.claim_log import ClaimLog
from sparkmirror.exact.durable.claims import Claim, start_claim
from sparkmirror.exact.durable.identity import Identity
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import Appending, LogEntry, LogPlace, TopicLog
from sparkmirror.kafka.wire.splice import Run

TOPIC_ID, OTHER_ID, SOURCE_ID = b"t" * 16, b"o" * 16, b"s" * 16
HERE = TOPIC_ID, 3
CLAIMED = 10
"""Records of each claim."""


class InventedLog(TopicLog):
    """A topic in memory, read in answers of two records; how much was appended at once is noted."""

    def __init__(self, homes: int = 4) -> None:
        super().__init__(ClusterClient(ClusterConfig(alias="B", bootstrap_servers=("nowhere:1",)), "test"), "topic")
        self._homes = homes
        self._entries: dict[int, list[tuple[bytes, bytes | None]]] = defaultdict(list)
        self.appended: list[int] = []

    @property
    def partitions(self) -> int:
        return self._homes

    def expect(self, partitions: int) -> None:
        """It has as many from the beginning."""

    def read_on(self, partition: int, place: LogPlace) -> tuple[list[LogEntry], LogPlace, bool]:
        entries = self._entries[partition]
        found = [LogEntry(at, *entries[at]) for at in range(place.offset, min(place.offset + 2, len(entries)))]
        end = place.offset + len(found)
        return found, LogPlace(end), end < len(entries)

    def append_all(self, entries: Mapping[int, Sequence[tuple[bytes, bytes | None]]]) -> Appending:
        firsts = {partition: len(self._entries[partition]) for partition in entries}
        for partition, listed in entries.items():
            self._entries[partition] += listed
            self.appended.append(len(listed))
        return Appending(firsts, {at: LogPlace(len(self._entries[at])) for at in entries}, {})


def claim(sequence: int, incarnation: int = 1, where: tuple[bytes, int] = HERE, *, confirmed: bool = True) -> Claim:
    """On records that landed from the target's offset `sequence` + 100 on."""
    return Claim(
        target_topic_id=where[0],
        partition=where[1],
        sequence=sequence,
        incarnation=incarnation,
        producer_id=4000,
        producer_epoch=0,
        source_topic_id=SOURCE_ID,
        source_leader_epoch=0,
        downstream=sequence + 100,
        runs=(Run(sequence, CLAIMED),),
        confirmed=confirmed,
    )


def claimed(*claims: Claim) -> InventedLog:
    log = InventedLog()
    ClaimLog(log).claim(claims)
    return log


def left(log: InventedLog, where: tuple[bytes, int] = HERE) -> list[Claim]:
    return sorted(ClaimLog(log).whole(*where), key=lambda one: (one.sequence, one.incarnation))


FOUR = [claim(number * CLAIMED) for number in range(4)]


@pytest.mark.parametrize(
    ("log_start", "retracted"),
    [(0, 0), (100, 0), (101, 0), (110, 0), (111, 1), (119, 1), (120, 1), (121, 2), (130, 2), (131, 3), (10_000, 3)],
)
def test_the_newest_that_begins_below_the_start_stays(log_start: int, retracted: int) -> None:
    """What comes behind it is covered by it; also where the next begins right at the start."""
    log = claimed(*reversed(FOUR))
    assert retract_expired(ClaimLog(log), {HERE: log_start}) == retracted
    assert left(log) == FOUR[retracted:]
    assert retract_expired(ClaimLog(log), {HERE: log_start}) == 0
    assert left(log) == FOUR[retracted:]


def test_only_what_was_asked_about_is_touched() -> None:
    """Another topic that has the same partition, another partition, and one whose log begins at 0."""
    others = [(OTHER_ID, HERE[1]), (TOPIC_ID, 4), (TOPIC_ID, 5)]
    theirs = {where: [replace(one, target_topic_id=where[0], partition=where[1]) for one in FOUR] for where in others}
    log = claimed(*FOUR, *itertools.chain.from_iterable(theirs.values()))
    assert retract_expired(ClaimLog(log), {HERE: 125, (TOPIC_ID, 5): 0}) == 2
    assert left(log) == FOUR[2:]
    assert {where: left(log, where) for where in others} == theirs


def test_of_rivals_claims_each_is_retracted_by_its_own_name() -> None:
    """The same sequences by another incarnation: what is not confirmed, or was retracted before, is left as it is."""
    unconfirmed = [replace(one, incarnation=2, confirmed=False) for one in FOUR]
    retracted = [replace(one, incarnation=3) for one in FOUR]
    log = claimed(*unconfirmed, *FOUR, *retracted)
    ClaimLog(log).revise((), retracted)
    assert retract_expired(ClaimLog(log), {HERE: 125}) == 2
    assert left(log) == sorted([*FOUR[2:], *unconfirmed], key=lambda one: (one.sequence, one.incarnation))


def test_where_a_flow_begins_stays() -> None:
    start = start_claim(Identity("cluster", 4000, 0), HERE, SOURCE_ID, sequence=0, upstream=7, downstream=90)
    log = claimed(start, *FOUR[1:])
    assert retract_expired(ClaimLog(log), {HERE: 125}) == 1
    assert left(log) == [start, *FOUR[2:]]


def test_many_are_retracted_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments_tidy, "_AT_ONCE", 3)
    log = claimed(*(claim(number * CLAIMED) for number in range(9)))
    log.appended.clear()
    assert retract_expired(ClaimLog(log), {HERE: 10_000}) == 8
    assert log.appended == [3, 3, 2]
    assert left(log) == [claim(80)]


@pytest.mark.parametrize("twice", range(4))
def test_a_claim_that_was_confirmed_twice_is_one(twice: int) -> None:
    log = claimed(*FOUR, FOUR[twice])
    assert retract_expired(ClaimLog(log), {HERE: 125}) == 2
    assert left(log) == FOUR[2:]
    alone = claimed(FOUR[0], FOUR[0])
    assert retract_expired(ClaimLog(alone), {HERE: 125}) == 0
    assert left(alone) == FOUR[:1]
