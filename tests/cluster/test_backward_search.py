"""Our last batch is found behind however many of somebody else's, in few answers."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.kafka.cluster.log_tail import BackwardSearch, LastBatch
from sparkmirror.kafka.wire.batches import BatchHeader

OURS, THEIRS = 7, 8


class Log(NamedTuple):
    """Batches in order; those that are wholly below `start` can't be read."""

    batches: list[BatchHeader]
    start: int
    end: int


def batch(base: int, records: int, producer: int, *, control: bool = False) -> BatchHeader:
    return BatchHeader(
        base_offset=base,
        length=0,
        leader_epoch=0,
        magic=2,
        crc=0,
        attributes=0x20 if control else 0,
        last_offset_delta=records - 1,
        base_timestamp=0,
        max_timestamp=base + 1000,
        producer_id=producer,
        producer_epoch=0,
        base_sequence=-1 if control else base,
        records=records,
    )


def search(log: Log, floor: int, answer: int) -> tuple[LastBatch | None, int]:
    """What is found, and in how many answers of so many batches."""
    looking = BackwardSearch(log.end, floor, lambda producer, epoch: producer == OURS)
    answers = 0
    while not looking.done:
        answers += 1
        assert answers < 1000
        if looking.asks < log.start:
            looking.is_deleted()
        else:
            looking.take([one for one in log.batches if one.next_offset > looking.asks][:answer])
    return looking.found, answers


def expected(log: Log, floor: int) -> LastBatch | None:
    ours = [
        one
        for one in log.batches
        if one.producer_id == OURS and not one.is_control and one.next_offset > max(floor, log.start)
    ]
    last = ours[-1] if ours else None
    return last and LastBatch(last.base_sequence + last.last_offset_delta, last.next_offset, last.max_timestamp)


@st.composite
def logs(draw: st.DrawFn) -> Log:
    batches, offset = [], 0
    kinds = st.sampled_from([(OURS, False), (THEIRS, False), (THEIRS, False), (THEIRS, True), (OURS, True)])
    for gap, records, (producer, control) in draw(
        st.lists(st.tuples(st.sampled_from([0, 0, 0, 1, 9]), st.integers(1, 5), kinds), max_size=60)
    ):
        offset += gap
        batches.append(batch(offset, records, producer, control=control))
        offset += records
    start = draw(st.integers(0, offset))
    return Log([one for one in batches if one.next_offset > start], start, offset)


@settings(max_examples=500, deadline=None)
@given(logs(), st.integers(0, 150), st.integers(1, 10))
def test_the_last_of_ours_is_found(log: Log, floor: int, answer: int) -> None:
    found, _ = search(log, floor, answer)
    assert found == expected(log, floor)


def test_what_is_right_at_the_end_takes_one_answer() -> None:
    log = Log([batch(at, 1, OURS) for at in range(1000)], 0, 1000)
    assert search(log, 0, 100) == (LastBatch(999, 1000, 1999), 1)


def test_ten_thousand_strangers_take_few_answers() -> None:
    """One answer for each of them would end at a bound, and the partition would wait for ever."""
    log = Log([batch(at, 1, OURS if at < 10 else THEIRS) for at in range(10_010)], 0, 10_010)
    found, answers = search(log, 0, 1000)
    assert found == LastBatch(9, 10, 1009)
    assert answers < 40


def test_of_an_emptied_log_nothing_is_read() -> None:
    assert search(Log([], 0, 0), 0, 10) == (None, 0)
    assert search(Log([], 50, 50), 0, 10) == (None, 1)
