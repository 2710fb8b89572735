"""A begun micro-batch of which the source has lost records: each is at the target once, in order, or told as lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.arrow.row_columns import RowColumns
from sparkmirror.config import LossPolicy
from sparkmirror.errors import RowsChanged, RowsInDoubt
from sparkmirror.exact.durable.losses import Loss, LossKind
from sparkmirror.exact.position.route import PartitionPair
from sparkmirror.kafka.wire.splice import NO_END, Run
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.queries.begun_writing import BegunBatch, BegunWriter, earlier_records
from sparkmirror.queries.gone_records import GoneRecords, gone_records
from sparkmirror.queries.plan_log import PlannedBatch, PlannedRange
from sparkmirror.queries.source_ranges import QueriedLog, present
from sparkmirror.sink.agreement import MicroBatch
from sparkmirror.sink.line import PartitionLine, RowSelection
from sparkmirror.sink.order import AppendedRange, GoneRows
from sparkmirror.sink.source_offsets import packed, read_runs
from sparkmirror.sink.writing import BatchWriter

END = 12
FLOOR = 100
"""Records that earlier micro-batches have at the target."""
TARGET = ("A.t", 0)
ID, TARGET_ID = "0a" * 16, b"\1" * 16
BATCH = PlannedBatch(7, {("t", 0): PlannedRange(0, END, ID, TARGET_ID.hex())})


class Died(Exception):
    """The attempt ends amid its rows."""


Value = Callable[[int], object]


def columns(offset: int, keys: int, value: Value) -> RowColumns:
    batch = pa.RecordBatch.from_pydict(
        {
            "key": pa.array([b"%d" % (offset % keys)], pa.binary()),
            "value": pa.array([str(value(offset)).encode()], pa.binary()),
        }
    )
    return RowColumns.of(batch, 0)


class Sink:
    """A target partition, and attempts that write to it as tasks do."""

    def __init__(self, keys: int = END, value: Value = int) -> None:
        self.log: list[int] = []
        self.left = NO_END
        """Rows until an attempt dies."""
        self.leave: GoneRows | None = None
        """What the last attempt was allowed."""
        self._keys, self._value = keys, value

    def write(
        self,
        rows: list[int] | None,
        batch: MicroBatch,
        gone: Mapping[TopicPartition, GoneRows] | None = None,
        *,
        is_ordered: bool = False,
    ) -> list[AppendedRange]:
        self.leave = (gone or {}).get(TARGET)
        line = PartitionLine(1 << 20, self.leave, is_ordered=is_ordered)
        if self.log:
            there = [columns(offset, self._keys, self._value) for offset in self.log]
            line.learn(there, with_time=False, count=len(there), place=(0, len(there) - 1))
        offsets: dict[int, int] = {}
        for row in rows or []:
            made = columns(row, self._keys, self._value)
            offsets[id(made)] = row
            line.add(RowSelection(made, np.array([0], np.int64)))
            self._append(line, offsets)
        line.settle()
        self._append(line, offsets)
        left = line.finish()
        if line.is_in_doubt:
            raise RowsInDoubt("A.t-0: rows are equal")
        if left:
            raise RowsChanged("A.t-0: an earlier attempt had other rows")
        return [AppendedRange(*TARGET, len(self.log), 0, 0, line.earlier, line.gone.total(), line.is_held)]

    def _append(self, line: PartitionLine, offsets: Mapping[int, int]) -> None:
        while line.is_due:
            if not self.left:
                raise Died
            self.left -= 1
            self.log.append(offsets[id(line.waiting.pop(0).columns)])


def logged(topic_id: str, start: int, target_end: int) -> QueriedLog:
    return QueriedLog(PartitionPair("t", "A.t", 0), topic_id, start, 50, NO_END, TARGET_ID, target_end)


class Query:
    """A query over one partition, that dies as the model has it."""

    def __init__(self, kept: Sequence[int], keys: int = END, policy: str = "continue", value: Value = int) -> None:
        self.sink = Sink(keys, value)
        self.kept = kept
        self.start = 0
        self.compacted: set[int] = set()
        self.ledger: dict[str, Loss] = {}
        self.policy = LossPolicy.model_validate({"expired": policy})

    @property
    def told(self) -> list[int]:
        return sorted({offset for loss in self.ledger.values() for offset in range(loss.first, loss.end)})

    def attempt(self, dies_after: int = NO_END, *, is_exact: bool = True) -> tuple[BegunBatch, list[AppendedRange]]:
        self.sink.left = dies_after
        log = logged(ID, self.start, FLOOR + len(self.sink.log))
        ranges, losses = present(BATCH, {("t", 0): log}, self.policy)
        rows = [at for at in self.kept if at >= self.start and at not in self.compacted] if ranges else None
        gone = gone_records(BATCH, {("t", 0): log}, losses, lambda _: FLOOR)
        compacted = {TARGET: END - self.start} if self.compacted else {}
        copied = {TARGET: len(self.sink.log)} if gone and self.sink.log else {}
        halts = any(each.halts(self.policy) for each in gone)
        lost = {each.target: each.lost(list(self.ledger.values())) for each in gone}
        begun = BegunBatch(MicroBatch("q", 7), gone, compacted, copied, is_exact, halts, lost)
        writer = BegunWriter(cast("BatchWriter", self.sink), self.tell)
        return begun, writer.write(cast("Any", rows), begun)

    def tell(self, gone: Iterable[GoneRecords], copied: Mapping[TopicPartition, int]) -> None:
        for each in gone:
            loss = each.loss(copied.get(TARGET, 0), list(self.ledger.values()), self.policy)
            if loss is not None:
                assert loss.kind is LossKind.EXPIRED
                self.ledger[loss.key] = loss


@settings(max_examples=600)
@given(
    st.sets(st.integers(0, END - 1)),
    st.lists(st.tuples(st.integers(0, END), st.integers(0, 5)), max_size=5),
    st.booleans(),
    st.integers(1, END),
)
def test_each_record_is_at_the_target_once_or_lost_or_nothing_is_written(
    dropped: set[int], deaths: list[tuple[int, int]], keeps_all: bool, values: int
) -> None:
    """Attempts die and the log expires between them, again and again; records may be equal."""
    kept = [offset for offset in range(END) if keeps_all or offset not in dropped]
    query = Query(kept, keys=1, value=lambda offset: offset % values)
    for dies_after, expired in [*deaths, (NO_END, 0)]:
        before = list(query.sink.log)
        try:
            query.attempt(dies_after)
        except Died:
            query.start = min(query.start + expired, 50)
        except RowsInDoubt:
            assert query.sink.log == before, "a halt appends nothing"
            assert query.start
            return
        else:
            break
    copied = query.sink.log
    assert copied == sorted(set(copied)), "once, and in order"
    assert set(kept) <= set(copied) | set(query.told), "none is missing in silence"
    if keeps_all:
        assert not set(copied) & set(query.told), "none is told as lost that is there"


@pytest.mark.parametrize(("topic_id", "downstream"), [("0b" * 16, 105), (ID, 98)], ids=["other topic", "cut log"])
def test_a_loss_of_other_records_at_the_same_offsets_hides_none(topic_id: str, downstream: int) -> None:
    query = Query(range(END))
    earlier = logged(topic_id, 5, downstream).expired(0, 5, query.policy)
    query.ledger[earlier.key] = earlier
    with pytest.raises(Died):
        query.attempt(2)
    query.start = 5
    query.attempt()
    assert query.sink.log == [0, 1, *range(5, END)]
    assert [(loss.first, loss.end) for loss in query.ledger.values() if loss != earlier] == [(2, 5)]


def two_in_turn(offset: int) -> int:
    return offset % 2


def same(offset: int) -> int:
    return 0


def one_again(offset: int) -> int:
    return 1 if offset == 5 else offset


@pytest.mark.parametrize("policy", ["continue", "halt"])
@pytest.mark.parametrize(
    ("value", "copied", "start"),
    [(same, 5, 3), (same, 2, 5), (two_in_turn, 4, 6), (two_in_turn, 6, 4), (one_again, 2, 5)],
)
def test_equal_records_that_hide_what_was_copied_are_not_written_behind(
    value: Value, copied: int, start: int, policy: str
) -> None:
    query = Query(range(END), keys=1, policy=policy, value=value)
    with pytest.raises(Died):
        query.attempt(copied)
    query.start = start
    with pytest.raises(RowsInDoubt):
        query.attempt()
    assert (query.sink.log, query.told) == ([*range(copied)], [])


def test_order_tells_equal_records_apart() -> None:
    query = Query(range(END), keys=1, value=lambda offset: 0 if offset in (0, 2) else offset)
    with pytest.raises(Died):
        query.attempt(4)
    query.start = 2
    query.attempt()
    assert (query.sink.log, query.told) == ([*range(END)], [])


def test_attempts_that_die_behind_a_loss_that_is_told_need_no_halt() -> None:
    """What is told as lost can't be at the target."""
    query = Query(range(END))
    for dies_after, start in ((1, 5), (3, 7), (1, 8)):
        with pytest.raises(Died):
            query.attempt(dies_after)
        query.start = start
    query.attempt()
    assert (query.sink.log, query.told) == ([0, *range(5, END)], [1, 2, 3, 4])


@pytest.mark.parametrize("start", [5, END, 40])
def test_records_that_were_copied_before_they_expired_are_no_loss(start: int) -> None:
    query = Query(range(END))
    query.attempt()
    query.start = start
    begun, appended = query.attempt()
    assert (query.sink.log, query.told) == ([*range(END)], [])
    assert appended[0].gone == min(start, END)
    rest = {TARGET: packed([Run(start, END - start)])} if start < END else {}
    runs = read_runs(begun.runs(rest, appended)[TARGET])
    assert [offset for run in runs for offset in range(run.upstream, run.upstream + run.length)] == [*range(END)]


def test_a_loss_is_told_with_its_count_before_anything_is_written_behind_it() -> None:
    query = Query(range(END))
    with pytest.raises(Died):
        query.attempt(2)
    query.start = 5
    with pytest.raises(Died):
        query.attempt(0)
    assert query.sink.log == [0, 1]
    assert query.sink.leave == GoneRows(2, counted=2), "fewer records would make the loss another one"
    (loss,) = query.ledger.values()
    assert (loss.first, loss.end) == (2, 5)
    assert "2 records of the micro-batch had been copied, and at most 3 more expired before they were" in loss.words
    begun, appended = query.attempt()
    assert (query.sink.log, query.told) == ([0, 1, *range(5, END)], [2, 3, 4])
    assert begun.runs({TARGET: packed([Run(5, END - 5)])}, appended) == {TARGET: b""}, "their places aren't known"


def test_rows_that_differ_otherwise_are_refused() -> None:
    query = Query(range(END))
    with pytest.raises(Died):
        query.attempt(8)
    query.start, query.kept = 3, [offset for offset in range(END) if offset != 6]
    with pytest.raises(RowsChanged):
        query.attempt()
    assert query.sink.log == [*range(8)]
    assert query.ledger == {}


@pytest.mark.parametrize("policy", ["continue", "halt"])
def test_rows_that_do_not_tell_of_their_records_are_no_loss_and_are_not_written_behind(policy: str) -> None:
    query = Query(range(END), policy=policy)
    with pytest.raises(Died):
        query.attempt(4)
    query.start = 3
    with pytest.raises(RowsChanged):
        query.attempt(is_exact=False)
    assert (query.sink.log, query.told) == ([*range(4)], [])


@settings(max_examples=200)
@given(st.integers(0, END), st.integers(1, 4))
def test_a_source_that_was_compacted_meanwhile(copied: int, keys: int) -> None:
    """Of each key the last record stays: so it is at the target, behind what was copied before."""
    query = Query(range(END), keys)
    if copied < END:
        with pytest.raises(Died):
            query.attempt(copied)
    else:
        query.attempt()
    query.compacted = set(range(END - keys))
    query.attempt()
    assert query.sink.log == [*range(copied), *range(max(copied, END - keys), END)]
    assert query.ledger == {}


def test_a_record_before_one_that_is_kept_is_not_the_compacted_one() -> None:
    """Compaction keeps the last record of a key: these rows differ otherwise."""
    query = Query(range(END), 1)
    with pytest.raises(Died):
        query.attempt(6)
    query.compacted = {5}
    with pytest.raises(RowsChanged):
        query.attempt()


@pytest.mark.parametrize(
    ("copied", "start", "dropped", "keys"), [(END, 10, {10}, 1), (9, 6, {6, 7, 8, 9, 10}, 1), (9, 6, {7}, 2)]
)
def test_a_compacted_source_that_lost_its_first_records_too(
    copied: int, start: int, dropped: set[int], keys: int
) -> None:
    """`compact,delete`: rows are gone for either reason."""
    query = Query(range(END), keys)
    if copied < END:
        with pytest.raises(Died):
            query.attempt(copied)
    else:
        query.attempt()
    query.start, query.compacted = start, dropped
    query.attempt()
    assert query.sink.log == [*range(copied), *(at for at in range(copied, END) if at not in dropped)]
    assert query.ledger == {}


def test_equal_records_of_a_source_that_only_compacts_halt_with_the_remedy() -> None:
    query = Query(range(END), keys=1, value=same)
    with pytest.raises(Died):
        query.attempt(9)
    query.compacted = set(range(4))
    with pytest.raises(RowsInDoubt):
        query.attempt()
    assert (query.sink.log, query.told) == ([*range(9)], [])


@pytest.mark.parametrize("dropped", [{7}, {6, 7}])
def test_equal_records_of_a_compacted_source_are_not_told_apart(dropped: set[int]) -> None:
    query = Query(range(END), keys=1, value=same)
    with pytest.raises(Died):
        query.attempt(9)
    query.start, query.compacted = 6, dropped
    with pytest.raises(RowsInDoubt):
        query.attempt()
    assert (query.sink.log, query.told) == ([*range(9)], [])


@pytest.mark.parametrize("dropped", [{0}, {0, 3}])
def test_a_compacted_sources_row_equal_to_an_earlier_one_is_not_taken_for_it(dropped: set[int]) -> None:
    """Else the key's last value at the target would be the one before."""
    query = Query(range(END), keys=1, value=lambda offset: 0 if offset in (0, 2) else offset)
    with pytest.raises(Died):
        query.attempt(2)
    query.compacted = dropped
    with pytest.raises(RowsInDoubt):
        query.attempt()
    assert (query.sink.log, query.told) == ([0, 1], [])


def test_equal_rows_of_a_compacted_source_that_dropped_none_since_are_all_copied() -> None:
    query = Query(range(END), keys=1, value=two_in_turn)
    with pytest.raises(Died):
        query.attempt(5)
    query.compacted = {END}
    query.attempt()
    assert (query.sink.log, query.told) == ([*range(END)], [])


class Fences:
    """A writer that takes up batches."""

    def __init__(self, *, is_fenced: bool) -> None:
        self._is_fenced = is_fenced

    def is_fenced(self, batch: MicroBatch) -> bool:
        return self._is_fenced

    def take_up(self, batch: MicroBatch) -> dict[TopicPartition, int]:
        return {TARGET: batch.number}


@pytest.mark.parametrize("is_fenced", [False, True])
@pytest.mark.parametrize("is_compacted", [False, True])
@pytest.mark.parametrize("is_taken_up", [False, True])
@pytest.mark.parametrize("lacks", [False, True])
def test_earlier_attempts_are_fenced_where_they_may_make_other_rows(
    lacks: bool, is_taken_up: bool, is_compacted: bool, is_fenced: bool
) -> None:
    writer = cast("BatchWriter", Fences(is_fenced=is_fenced))
    counted = earlier_records(
        writer, MicroBatch("q", 7), lacks=lacks, is_taken_up=is_taken_up, is_compacted=is_compacted
    )
    is_due = lacks if not is_taken_up else lacks or is_compacted or is_fenced
    assert counted == ({TARGET: 7} if is_due else {})
