"""What a group would skip and read again, against a brute-force list of the records of both logs."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.exact.durable.claims import Claim
from sparkmirror.exact.maps.offset_map import Copied, OffsetMap
from sparkmirror.exact.maps.partition_map import LogBounds
from sparkmirror.kafka.wire.splice import Run
from sparkmirror.mirror.sync.move_cost import EndPair, MoveCost, cost_at_copy, cost_at_original, cost_between

modest = settings(max_examples=300, deadline=None)

RECORD, GAP, FOREIGN = "record", "gap", "foreign"


@dataclass
class Logs:
    """Both logs of a partition, record by record."""

    upstream: int
    downstream: int
    copies: dict[int, int] = field(default_factory=dict)
    """Upstream to downstream offset of each copied record."""
    waiting: list[int] = field(default_factory=list)
    """Upstream offsets of records that are not copied yet."""
    foreign: list[int] = field(default_factory=list)
    """Downstream offsets of another producer's records."""
    claims: list[Claim] = field(default_factory=list)
    end: EndPair = field(default_factory=lambda: EndPair(0, 0))

    def play(self, steps: list[tuple[str, int]], waiting: list[tuple[str, int]]) -> None:
        for kind, count in steps:
            if kind == RECORD:
                self._claim(count)
            elif kind == GAP:
                self.upstream += count
            else:
                self.foreign += range(self.downstream, self.downstream + count)
                self.downstream += count
        # The copy ends after its last record; foreign records may follow, and at the source markers.
        last = max(self.copies.values(), default=None)
        self.end = EndPair(self.upstream, self.downstream if last is None else last + 1)
        for kind, count in waiting:
            if kind == RECORD:
                self.waiting += range(self.upstream, self.upstream + count)
            self.upstream += count

    def _claim(self, count: int) -> None:
        self.claims.append(
            Claim(
                target_topic_id=b"t" * 16,
                partition=0,
                sequence=len(self.copies),
                incarnation=len(self.claims),
                producer_id=1,
                producer_epoch=0,
                source_topic_id=b"s" * 16,
                source_leader_epoch=0,
                downstream=self.downstream,
                runs=(Run(self.upstream, count),),
            )
        )
        for _ in range(count):
            self.copies[self.upstream] = self.downstream
            self.upstream += 1
            self.downstream += 1

    def map(self) -> OffsetMap:
        return OffsetMap.build(self.claims, Copied(len(self.copies), *self.end))

    def skipped(self, source: int, target: int, start: int = 0) -> int:
        """Records that were not read at the source, are at the target, and lie before the target's offset."""
        return sum(up >= source and start <= down < target for up, down in self.copies.items())

    def reread(self, source: int, target: int, start: int = 0) -> int:
        """Records that were read at the source, and lie, or will lie, at or after the target's offset."""
        copied = sum(up < source and down >= max(target, start) for up, down in self.copies.items())
        return copied + sum(up < source for up in self.waiting)


def steps(*kinds: str) -> st.SearchStrategy[list[tuple[str, int]]]:
    return st.lists(st.tuples(st.sampled_from(kinds), st.integers(1, 6)), max_size=12)


@modest
@given(steps(RECORD, GAP), steps(RECORD), st.integers(0, 9), st.integers(0, 9), st.data())
def test_each_record_is_counted_once(
    played: list[tuple[str, int]], waiting: list[tuple[str, int]], upstream: int, downstream: int, data: st.DataObject
) -> None:
    """Where all of the target's records are the flow's, and no marker lies among what is not copied yet."""
    logs = Logs(upstream, downstream)
    logs.play(played, waiting)
    source = data.draw(st.integers(0, logs.upstream), "source")
    target = data.draw(st.integers(downstream, logs.downstream), "target")
    start = data.draw(st.integers(downstream, logs.downstream), "start of the target's log")
    with logs.map() as offsets:
        cost = cost_at_copy(source, target, offsets, logs.end, LogBounds(start, logs.downstream))
    assert cost == MoveCost(logs.skipped(source, target, start), logs.reread(source, target, start))


@modest
@given(steps(RECORD, GAP, FOREIGN), steps(RECORD, GAP), st.data())
def test_no_record_is_left_out_and_only_offsets_that_are_there_are_counted(
    played: list[tuple[str, int]], waiting: list[tuple[str, int]], data: st.DataObject
) -> None:
    """Foreign records among the copy count as the flow's, and markers that are not copied yet as records."""
    logs = Logs(3, 5)
    logs.play(played, waiting)
    source = data.draw(st.integers(0, logs.upstream), "source")
    target = data.draw(st.integers(5, logs.downstream), "target")
    with logs.map() as offsets:
        cost = cost_at_copy(source, target, offsets, logs.end, LogBounds(0, logs.downstream))
    skipped, reread = logs.skipped(source, target), logs.reread(source, target)
    assert 0 in cost
    assert cost.skipped >= skipped
    assert cost.reread >= reread
    markers = max(source - logs.end.upstream, 0) - sum(up < source for up in logs.waiting)
    assert cost.skipped <= skipped + len(logs.foreign)
    assert cost.reread <= reread + len(logs.foreign) + markers


@modest
@given(steps(RECORD, GAP, FOREIGN), steps(RECORD, GAP), st.data())
def test_a_group_that_stands_where_the_map_says_continues_at_the_exact_record(
    played: list[tuple[str, int]], waiting: list[tuple[str, int]], data: st.DataObject
) -> None:
    logs = Logs(3, 5)
    logs.play(played, waiting)
    source = data.draw(st.integers(0, logs.end.upstream), "source")
    bounds = LogBounds(0, logs.downstream)
    with logs.map() as offsets:
        exact = offsets.downstream(source)
        assert exact is not None
        assert cost_at_copy(source, exact, offsets, logs.end, bounds) == MoveCost(0, 0)
        if exact < logs.end.downstream:
            assert cost_at_copy(source, exact + 1, offsets, logs.end, bounds).skipped == 1
        if exact > 5:
            assert cost_at_copy(source, exact - 1, offsets, logs.end, bounds).reread == 1


@modest
@given(steps(RECORD, GAP), st.integers(0, 30), st.integers(1, 30), st.data())
def test_a_group_past_the_targets_end_skips_at_least_what_comes(
    played: list[tuple[str, int]], gap: int, past: int, data: st.DataObject
) -> None:
    """Records land from the log's end on, whatever lies before them at the source."""
    logs = Logs(3, 5)
    logs.play(played, [(GAP, gap), (RECORD, 50)] if gap else [(RECORD, 50)])
    source = data.draw(st.integers(0, logs.end.upstream + gap), "source")
    target = logs.downstream + past
    with logs.map() as offsets:
        cost = cost_at_copy(source, target, offsets, logs.end, LogBounds(0, logs.downstream))
    comes = {up: logs.downstream + nth for nth, up in enumerate(logs.waiting)}
    assert cost.skipped >= sum(up >= source and down < target for up, down in (logs.copies | comes).items())


@modest
@given(steps(RECORD, GAP), st.data())
def test_a_group_of_a_copy_moves_to_the_original(played: list[tuple[str, int]], data: st.DataObject) -> None:
    """The group reads the copy, which is at the source, and would read the original at the target."""
    logs = Logs(3, 5)
    logs.play(played, [])
    source = data.draw(st.integers(0, logs.end.downstream), "source")
    target = data.draw(st.integers(0, logs.end.upstream), "target")
    with logs.map() as offsets:
        cost = cost_at_original(source, target, offsets)
    skipped = sum(down >= source and up < target for up, down in logs.copies.items())
    reread = sum(down < source and up >= target for up, down in logs.copies.items())
    gaps = logs.end.upstream - len(logs.copies)
    assert 0 in cost
    assert skipped <= cost.skipped <= skipped + gaps
    assert reread <= cost.reread <= reread + gaps
    with logs.map() as offsets:
        ahead = cost_at_original(logs.end.downstream + 7, logs.end.upstream, offsets)
    assert ahead == MoveCost(0, 7)


def test_set_back_at_the_source() -> None:
    """The target's offset stays, since no offset is put back there: it stands for records that are to be read."""
    logs = Logs(0, 0)
    logs.play([(RECORD, 5_000)], [])
    with logs.map() as offsets:
        assert cost_at_copy(10, 5_000, offsets, logs.end, LogBounds(0, 5_000)) == MoveCost(4_990, 0)


def test_ahead_of_a_copy_that_lags() -> None:
    """6,788 read, 6,614 copied, and the group was set at 6,503 earlier."""
    logs = Logs(0, 0)
    logs.play([(RECORD, 6_614)], [(RECORD, 3_386)])
    with logs.map() as offsets:
        assert cost_at_copy(6_788, 6_503, offsets, logs.end, LogBounds(0, 6_614)) == MoveCost(0, 285)


def test_nothing_copied_and_nothing_to_copy() -> None:
    """The source's log is empty at 40, and the target's at 0; then come records that are not copied yet."""
    log, end = LogBounds(0, 0), EndPair(40, 0)
    assert cost_at_copy(40, 0, None, end, log) == cost_at_copy(5, 0, None, end, log) == MoveCost(0, 0)
    assert cost_at_copy(43, 0, None, end, log) == MoveCost(0, 3)


def test_deleted_records_are_neither_skipped_nor_read() -> None:
    log = LogBounds(100, 200)
    assert cost_between(50, 70, log) == cost_between(70, 50, log) == MoveCost(0, 0)
    assert cost_between(150, 70, log) == MoveCost(0, 50)
    assert cost_between(70, 150, log) == MoveCost(50, 0)
