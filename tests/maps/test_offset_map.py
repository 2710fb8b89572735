"""The exact offset map against a brute-force list of what was copied: gaps, foreign records, rewrites, recreation."""

from __future__ import annotations

import itertools
import subprocess
import sys
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.exact.durable.claims import Claim
from sparkmirror.exact.maps.offset_map import Copied, CopiedRun, OffsetMap
from sparkmirror.exact.maps.run_table import BLOCK_ROWS
from sparkmirror.kafka.wire.splice import Run

modest = settings(max_examples=300, deadline=None)

COPY, GAP, FOREIGN, CUT, RECREATE, CLAIM = "copy", "gap", "foreign", "cut", "recreate", "claim"
AGAIN, ELECT, FORGET_ID = "again", "elect", "forget id"

steps = st.lists(
    st.one_of(
        st.tuples(st.just(COPY), st.integers(1, 12)),
        st.tuples(st.just(GAP), st.integers(1, 9)),
        st.tuples(st.just(FOREIGN), st.integers(1, 5)),
        st.tuples(st.just(CUT), st.integers(0, 30)),
        st.tuples(st.just(RECREATE), st.integers(0, 5)),
        st.tuples(st.just(CLAIM), st.integers(0, 3)),
        st.tuples(st.just(AGAIN), st.integers(1, 20)),
        st.tuples(st.just(ELECT), st.just(0)),
        st.tuples(st.just(FORGET_ID), st.integers(0, 1)),
    ),
    max_size=40,
)


def claim(sequence: int, downstream: int, runs: list[Run], topic: int = 0, epoch: int = 0) -> Claim:
    """Topic -1 has an id that is not known."""
    return Claim(
        target_topic_id=b"t" * 16,
        partition=0,
        sequence=sequence,
        incarnation=sequence,
        producer_id=1,
        producer_epoch=0,
        source_topic_id=bytes([topic + 1]) * 16,
        source_leader_epoch=epoch,
        downstream=downstream,
        runs=tuple(runs),
    )


@dataclass
class Mirror:
    """Copies records one by one, writes down where each went, and claims as a pump does."""

    upstream: int
    downstream: int
    records: int = 0
    topic: int = 0
    named: bool = True
    """Whether the topic's id is known now: a cluster may be upgraded, and downgraded again."""
    told: bool = True
    """Whether the claim on the last copied record has the id; claims on no records don't last."""
    epoch: int = 0
    epochs: dict[int, int] = field(default_factory=dict)
    """Upstream to leader epoch, of the source's log as it is now."""
    gaps: set[int] = field(default_factory=set)
    """Upstream offsets without a record."""
    history: list[tuple[int, int, int, int]] = field(default_factory=list)
    """Topic, upstream, leader epoch and downstream of each copy."""
    claimed_epoch: int = 0
    live: dict[int, int] = field(default_factory=dict)
    """Upstream to downstream, of what the source has."""
    copies: dict[int, int] = field(default_factory=dict)
    """Downstream to upstream, of all that was copied."""
    claims: list[Claim] = field(default_factory=list)
    runs: list[list[int]] = field(default_factory=list)
    started: tuple[int, int, int] = (0, 0, 0)

    def play(self, played: list[tuple[str, int]]) -> None:
        self._begin()
        for what, size in played:
            if what == COPY:
                self._copy(size)
            elif what == GAP:
                if not self.runs and self.upstream == self.started[2]:
                    self._copy(1)  # what is first after a cut tells where the cut was
                self.gaps |= set(range(self.upstream, self.upstream + size)) - self.epochs.keys()
                self.upstream += size
            elif what == FOREIGN:
                self._end(size)
                self.downstream += size
                self._begin()
            elif what == CUT:
                self._end(size)
                self.upstream = max(self.upstream - size, 0)
                self._disown()
                self.epochs = {up: epoch for up, epoch in self.epochs.items() if up < self.upstream}
                self.gaps = {up for up in self.gaps if up < self.upstream}
                self.epoch += 1
                self._begin()
            elif what == AGAIN and self.live:
                self._end(size)
                self.upstream = sorted(self.live)[-min(size, len(self.live))]
                self._disown()
                self._begin()
            elif what == ELECT:
                self.epoch += 1
            elif what == FORGET_ID:
                self._copy(1)
                self._end(2)
                self.named = not size
                self._begin()
            elif what == RECREATE:
                if not (self.named and self.told):  # while its id isn't known nothing tells that it is another topic
                    self._end(2)
                    self.named = True
                    self._begin()
                    self._copy(1)
                self._end(size)
                self.topic += 1
                self.upstream = size
                self.live.clear()
                self.epochs.clear()
                self.gaps.clear()
                self.epoch = 0
                self._begin()
            else:
                self._end(size)
                self._begin()
        self._end(1)

    def _copy(self, count: int) -> None:
        for _ in range(count):
            while self.upstream in self.gaps:
                self.upstream += 1
            epoch = self.epochs.setdefault(self.upstream, self.epoch)
            if epoch != self.claimed_epoch:
                self._end(2)
                self._begin()
                self.claimed_epoch = epoch
            self.history.append((self.topic, self.upstream, epoch, self.downstream))
            self.told = self.named
            self.live[self.upstream] = self.downstream
            self.copies[self.downstream] = self.upstream
            last = self.runs[-1] if self.runs else None
            if last and last[0] + last[1] == self.upstream:
                last[1] += 1
            else:
                self.runs.append([self.upstream, 1])
            self.upstream += 1
            self.downstream += 1
            self.records += 1

    def _disown(self) -> None:
        self.live = {up: down for up, down in self.live.items() if up < self.upstream}

    def _begin(self) -> None:
        self.runs = []
        self.started = self.records, self.downstream, self.upstream

    def _end(self, slip: int) -> None:
        """What is claimed of the last run is less, or more, than what is sent of it; the next claim ends it."""
        runs = [Run(*run) for run in self.runs] or [Run(self.started[2], slip)]
        if slip % 3 == 0:
            runs[-1] = Run(runs[-1][0], max(runs[-1][1] - slip, 0))
        elif slip % 3 == 1:
            runs.append(Run(sum(runs[-1]) + slip, slip))
        self.claims.append(claim(*self.started[:2], runs, self.topic if self.named else -1, self.claimed_epoch))

    @property
    def copied(self) -> Copied:
        return Copied(self.records, self.upstream, self.downstream)

    def expected_downstream(self, upstream: int) -> int | None:
        if upstream > self.upstream:
            return None
        following = [up for up in self.live if up >= upstream]
        return self.live[min(following)] if following else self.downstream

    def expected_twice(self) -> set[tuple[int, int, int]]:
        """Upstream offset, and both places, of each record that was copied more than once."""
        places: dict[tuple[int, int, int], list[int]] = {}
        for *record, downstream in self.history:
            places.setdefault((record[0], record[1], record[2]), []).append(downstream)
        return {
            (upstream, first, again)
            for (_, upstream, _), copies in places.items()
            for first, again in itertools.combinations(copies, 2)
        }

    def expected_upstream(self, downstream: int) -> int | None:
        if downstream > self.downstream:
            return None
        following = [down for down in self.copies if down >= downstream]
        return self.copies[min(following)] if following else self.upstream

    def expected_present_upstream(self, downstream: int) -> int | None:
        if downstream > self.downstream:
            return None
        return min((up for up, down in self.live.items() if down >= downstream), default=self.upstream)


@modest
@given(steps, st.integers(0, 20), st.integers(0, 20), st.sampled_from([0, 3, 1_000_000]))
def test_every_offset_is_answered_as_the_list_has_it(
    played: list[tuple[str, int]], upstream: int, downstream: int, memory_runs: int
) -> None:
    mirror = Mirror(upstream, downstream)
    mirror.play(played)
    with OffsetMap.build(mirror.claims, mirror.copied, memory_runs=memory_runs) as offsets:
        highest = max([mirror.upstream, *mirror.copies.values(), 0])
        for asked in range(highest + 3):
            assert offsets.downstream(asked) == mirror.expected_downstream(asked), f"upstream {asked}"
        for asked in range(mirror.downstream + 3):
            assert offsets.upstream(asked) == mirror.expected_upstream(asked), f"downstream {asked}"
            assert offsets.present_upstream(asked) == mirror.expected_present_upstream(asked), f"downstream {asked}"
        assert sum(run.records for run in offsets.runs()) == mirror.records
        twice = [
            (some.upstream + index, some.first + index, some.again + index)
            for some in offsets.twice()
            for index in range(some.records)
        ]
        assert len(twice) == len(set(twice))
        assert set(twice) == mirror.expected_twice()
        assert len(offsets) == len(list(offsets.runs()))


@modest
@given(steps, st.lists(st.integers(0, 150), max_size=30))
def test_many_at_once_are_answered_as_one_by_one(played: list[tuple[str, int]], asked: list[int]) -> None:
    mirror = Mirror(3, 5)
    mirror.play(played)
    with OffsetMap.build(mirror.claims, mirror.copied) as offsets:
        assert offsets.downstream_each(asked) == [offsets.downstream(one) for one in asked]
        assert offsets.upstream_each(asked) == [offsets.upstream(one) for one in asked]


def test_an_upstream_offset_that_is_not_copied_is_told_from_the_end() -> None:
    offsets = OffsetMap.build([claim(0, 100, [Run(7, 3)])], Copied(3, 20, 103))
    assert offsets.downstream(0) == offsets.downstream(7) == 100
    assert [offsets.downstream(10), offsets.downstream(19), offsets.downstream(20)] == [103, 103, 103]
    assert offsets.downstream(21) is None
    assert offsets.upstream(103) == 20
    assert offsets.upstream(104) is None


def test_a_receipt_tells_that_only_markers_follow() -> None:
    """Of the moment when the copy ended there; a later or an earlier one tells nothing about this map."""
    offsets = OffsetMap.build([claim(0, 0, [Run(0, 10)])], Copied(10, 10, 10))
    for upstream, downstream in ((12, 11), (12, 9), (9, 10)):
        offsets.pass_over(upstream, downstream)
        assert [offsets.downstream(one) for one in (9, 10, 11)] == [9, 10, None]
    offsets.pass_over(12, 10)
    assert [offsets.downstream(one) for one in (9, 10, 11, 12, 13)] == [9, 10, 10, 10, None]
    assert offsets.upstream(10) == 12


def test_a_reader_of_the_copy_has_yet_to_read_what_a_new_source_topic_has() -> None:
    """It stopped at 500 of the old topic, of which nothing is at the source any more."""
    copied = Copied(1800, 800, 1800)
    with OffsetMap.build([claim(0, 0, [Run(0, 1000)]), claim(1000, 1000, [Run(0, 800)], topic=1)], copied) as offsets:
        assert [offsets.present_upstream(asked) for asked in (0, 500, 1000, 1300, 1800)] == [0, 0, 0, 300, 800]
        assert offsets.upstream(500) == 500, "where the record came from"
    with OffsetMap.build([claim(0, 0, [Run(0, 100)]), claim(100, 100, [Run(50, 9)])], Copied(109, 59, 109)) as offsets:
        assert [offsets.present_upstream(asked) for asked in (49, 80, 100, 105)] == [49, 50, 50, 55]


def test_a_gap_before_a_cut_leads_to_what_was_written_again() -> None:
    """Offsets 3 to 7 have no record; the source was cut at 8, and what is there now was copied to 5 and on."""
    offsets = OffsetMap.build([claim(0, 0, [Run(0, 3), Run(8, 2)]), claim(5, 5, [Run(8, 4)])], Copied(9, 12, 9))
    assert [offsets.downstream(asked) for asked in (2, 3, 7, 8, 11)] == [2, 5, 5, 5, 8]
    assert [offsets.upstream(asked) for asked in (2, 3, 4, 5)] == [2, 8, 9, 8]


def test_a_cut_counts_before_anything_is_copied_again() -> None:
    offsets = OffsetMap.build([claim(0, 0, [Run(0, 3), Run(8, 2)])], Copied(5, 6, 5))
    assert [offsets.downstream(asked) for asked in (2, 3, 6, 7)] == [2, 5, 5, None]


def test_where_nothing_is_copied_yet_the_start_is_where_the_log_will_begin() -> None:
    offsets = OffsetMap.build([claim(0, 40, [Run(1000, 0)])], Copied(0, 1000, 40))
    assert [offsets.downstream(asked) for asked in (0, 1000, 1001)] == [40, 40, None]
    assert offsets.upstream(0) == offsets.upstream(40) == 1000


def test_claims_of_what_was_never_sent_do_not_count() -> None:
    """A claim is durable before its first batch: the log may end below it."""
    claims = [claim(0, 0, [Run(0, 5)]), claim(5, 5, [Run(9, 5)]), claim(10, 10, [Run(90, 5)])]
    offsets = OffsetMap.build(claims, Copied(7, 11, 7))
    assert list(offsets.runs()) == [CopiedRun(0, 0, 5), CopiedRun(9, 5, 2)]


def test_claims_that_come_in_another_order_are_refused() -> None:
    with pytest.raises(ValueError, match="sequence 3 comes after"):
        OffsetMap.build([claim(5, 5, [Run(5, 1)]), claim(3, 3, [Run(3, 1)])], Copied(9, 9, 9))


def test_claims_that_continue_where_the_last_ended_are_one_run() -> None:
    claims = [claim(10 * index, 10 * index, [Run(10 * index, 10)]) for index in range(1000)]
    offsets = OffsetMap.build(claims, Copied(10_000, 10_000, 10_000))
    assert list(offsets.runs()) == [CopiedRun(0, 0, 10_000)]


@pytest.mark.parametrize("runs", [1, BLOCK_ROWS - 1, BLOCK_ROWS, BLOCK_ROWS + 1, 3 * BLOCK_ROWS])
@pytest.mark.parametrize("memory_runs", [0, 1_000_000])
def test_blocks_meet_without_a_seam(runs: int, memory_runs: int) -> None:
    one = claim(0, 50, [Run(3 * index, 2) for index in range(runs)])
    with OffsetMap.build([one], Copied(2 * runs, 3 * runs, 50 + 2 * runs), memory_runs=memory_runs) as offsets:
        assert offsets.spilled == (memory_runs == 0)
        for asked in range(3 * runs):
            record, gap = divmod(asked, 3)
            assert offsets.downstream(asked) == 50 + 2 * record + gap
        for asked in range(2 * runs):
            assert offsets.upstream(50 + asked) == 3 * (asked // 2) + asked % 2


MEMORY_PROGRAM = """
import random, resource, sys, time
from sparkmirror.exact.maps.offset_map import Copied, OffsetMap
from sparkmirror.exact.durable.claims import Claim
from sparkmirror.kafka.wire.splice import Run

claims, runs = int(sys.argv[1]), 2000

def history():
    for index in range(claims):
        first = index * runs
        yield Claim(target_topic_id=b"t" * 16, partition=0, sequence=2 * first, incarnation=index, producer_id=1,
                      producer_epoch=0, source_topic_id=b"s" * 16, source_leader_epoch=0, downstream=2 * first,
                      runs=tuple(Run(3 * number, 2) for number in range(first, first + runs)))

total = claims * runs
list(history().__next__().runs)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
offsets = OffsetMap.build(history(), Copied(2 * total, 3 * total, 2 * total))
asked = [random.randrange(3 * total) for _ in range(20_000)]
began = time.process_time()
found = [offsets.downstream(one) for one in asked]
took = time.process_time() - began
assert found == [2 * (one // 3) + one % 3 for one in asked]
assert offsets.spilled
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, took / len(asked) * 1e6)
"""


@pytest.mark.full
def test_three_million_runs_need_little_memory() -> None:
    """72 MB of runs; a million stay in memory until the file is begun (24 MB)."""
    output = subprocess.run(
        [sys.executable, "-c", MEMORY_PROGRAM, "1500"], check=True, capture_output=True, text=True
    ).stdout.split()
    assert int(output[0]) < 45 * 1024, f"{output[0]} KiB more"
    assert float(output[1]) < 200, f"{output[1]} µs for each offset"


@modest
@given(steps, st.lists(st.integers(0, 100), max_size=4), st.sampled_from([2, 10_000]))
def test_a_map_that_grows_is_the_one_built_at_once(
    played: list[tuple[str, int]], shares: list[int], memory_runs: int
) -> None:
    """Settled up to some claim, renewed with different beliefs about the rest, settled further."""
    mirror = Mirror(3, 5)
    mirror.play(played)
    claims = sorted({one.sequence: one for one in mirror.claims}.values(), key=lambda one: one.sequence)
    copied = Copied(mirror.records, mirror.upstream, mirror.downstream)
    settled = 0
    with (
        OffsetMap(memory_runs) as grown,
        OffsetMap.build(mirror.claims, copied, memory_runs=memory_runs) as built,
    ):
        for share in sorted(shares):
            upto = len(claims) * share // 101
            if upto > settled:
                grown.fold(claims[settled:upto], claims[upto].sequence)
                settled = upto
            wrong = [replace(one, runs=(Run(one.upstream + 1, 0),)) for one in claims[settled:]]
            grown.renew(wrong, copied)
        grown.renew(claims[settled:], copied)
        assert list(grown.runs()) == list(built.runs())
        for upstream in range(mirror.upstream + 3):
            assert grown.downstream(upstream) == built.downstream(upstream)
        for downstream in range(mirror.downstream + 3):
            assert grown.upstream(downstream) == built.upstream(downstream)


def test_a_file_of_runs_is_cut_and_continues() -> None:
    count = 3 * BLOCK_ROWS + 7
    claims = [claim(number, number, [Run(number * 3, 1)]) for number in range(count)]
    with OffsetMap(memory_runs=10) as offsets:
        offsets.fold(claims[: 2 * BLOCK_ROWS + 1], 2 * BLOCK_ROWS + 1)
        offsets.renew(claims[2 * BLOCK_ROWS + 1 :], Copied(count, 3 * count, count))
        offsets.renew(claims[2 * BLOCK_ROWS + 1 :], Copied(count, 3 * count, count))
        assert offsets.spilled
        assert [offsets.downstream(3 * number) for number in range(count)] == list(range(count))
