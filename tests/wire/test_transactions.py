"""Which batches of a read_committed answer count: producers with overlapping transactions, against a model broker."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatchBuilder
from tests.support.built import batches_in

from sparkmirror.kafka.wire.batches import ATTRIBUTES_AT, CONTROL_BIT, HEADER_SIZE, LENGTH_OVERHEAD, batch_headers
from sparkmirror.kafka.wire.buffers import FramePool
from sparkmirror.kafka.wire.transactions import Transactions
from sparkmirror.pump.batch import Batch
from sparkmirror.pump.intake import Intake

Kind = Literal["data", "plain", "abort", "commit"]
"""Of a transaction, of none, and the two markers."""
Step = tuple[int, Kind, int]
"""Producer id, what it writes, and how many records."""

NOBODY = -1
"""The producer id of who writes without one."""
ABORT, COMMIT = 0, 1


class Stored(NamedTuple):
    """A batch of the log."""

    offset: int
    producer_id: int
    kind: Kind
    records: int

    @property
    def next_offset(self) -> int:
        return self.offset + self.records


class Aborted(NamedTuple):
    """An entry of the broker's index of aborted transactions; `last` is its marker's offset."""

    producer_id: int
    first: int
    last: int


class Log:
    """A partition as its leader keeps it: the batches, and which transactions are open or were aborted."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.batches: list[Stored] = []
        self.kept: list[bool] = []
        """Of each batch, whether a consumer gets it once all its transaction has ended."""
        self.aborted: list[Aborted] = []
        """In the order in which they ended, as the broker has them."""
        self._open: dict[int, list[int]] = {}
        for producer_id, kind, count in steps:
            self._append(producer_id, kind, count)

    def _append(self, producer_id: int, kind: Kind, count: int) -> None:
        if kind == "plain" and producer_id in self._open:
            producer_id = NOBODY  # the broker refuses it from whoever has a transaction open
        index = len(self.batches)
        self.batches.append(Stored(self.end, producer_id, kind, 1 if kind in ("abort", "commit") else count))
        self.kept.append(kind == "plain")
        if kind == "data":
            self._open.setdefault(producer_id, []).append(index)
        elif kind != "plain":
            ended = self._open.pop(producer_id, [])
            for one in ended:
                self.kept[one] = kind == "commit"
            if ended and kind == "abort":  # a transaction may have data in other partitions only
                self.aborted.append(Aborted(producer_id, self.batches[ended[0]].offset, self.batches[index].offset))

    @property
    def end(self) -> int:
        return self.batches[-1].next_offset if self.batches else 0

    @property
    def last_stable(self) -> int:
        return min((self.batches[indexes[0]].offset for indexes in self._open.values()), default=self.end)

    def fetch(self, offset: int, most: int) -> tuple[list[int], list[tuple[int, int]]]:
        """Which batches are sent, that with `offset` first, and the aborted transactions that overlap them."""
        stable = self.last_stable
        sent = [
            index for index, one in enumerate(self.batches) if one.next_offset > offset and one.next_offset <= stable
        ][:most]
        end = self.batches[sent[-1]].next_offset if sent else offset
        listed = [(one.producer_id, one.first) for one in self.aborted if one.last >= offset and one.first < end]
        return sent, listed

    def bytes_of(self, indexes: Sequence[int]) -> bytes:
        return b"".join(stored_bytes(self.batches[index]) for index in indexes)


def stored_bytes(batch: Stored) -> bytes:
    """As kafka-python makes it, but for the offset and a marker's bit."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=batch.kind != "plain",
        producer_id=batch.producer_id,
        producer_epoch=0,
        base_sequence=0,
        batch_size=1 << 20,
    )
    is_marker = batch.kind in ("abort", "commit")
    for delta in range(batch.records):
        key, value = b"%d" % (batch.offset + delta), b"value"
        if is_marker:
            key = struct.pack(">hh", 0, ABORT if batch.kind == "abort" else COMMIT)
            value = struct.pack(">hi", 0, 7)
        builder.append(delta, 1_700_000_000_000, key, value, [])
    data = bytearray(builder.build())
    struct.pack_into(">q", data, 0, batch.offset)
    if is_marker:
        (attributes,) = struct.unpack_from(">h", data, ATTRIBUTES_AT)
        struct.pack_into(">h", data, ATTRIBUTES_AT, attributes | CONTROL_BIT)
    struct.pack_into(">I", data, 17, crc32c(data[ATTRIBUTES_AT:]))
    return bytes(data)


def kept(log: Log, indexes: Sequence[int], listed: Sequence[tuple[int, int]]) -> list[int]:
    """Base offsets of the data batches of an answer that are not aborted."""
    records = memoryview(log.bytes_of(indexes))
    transactions = Transactions(listed)
    found = []
    for position, header in batch_headers(records):
        aborted = transactions.is_aborted(header, records[position : position + header.size])
        if not aborted and not header.is_control:
            found.append(header.base_offset)
    return found


def expected(log: Log, indexes: Sequence[int]) -> list[int]:
    return [log.batches[index].offset for index in indexes if log.kept[index]]


kinds: st.SearchStrategy[Kind] = st.sampled_from(("data", "data", "data", "plain", "abort", "commit"))
steps = st.lists(st.tuples(st.sampled_from((3, 5, 8)), kinds, st.integers(1, 4)), min_size=1, max_size=40)


@st.composite
def answers(draw: st.DrawFn) -> tuple[Log, list[int], list[tuple[int, int]]]:
    """A log, and what is sent of it: from any offset on, also inside of a batch, and as much as there is room for."""
    log = Log(draw(steps))
    offset = draw(st.integers(0, log.last_stable) | st.just(0))
    sent, listed = log.fetch(offset, draw(st.integers(1, 40) | st.just(40)))
    return log, sent, listed


@settings(max_examples=200)
@given(answers())
def test_what_was_committed_is_kept_and_what_was_written_without_a_transaction(
    answer: tuple[Log, list[int], list[tuple[int, int]]],
) -> None:
    log, sent, listed = answer
    assert kept(log, sent, listed) == expected(log, sent)


@settings(max_examples=100)
@given(steps, st.lists(st.integers(1, 6), min_size=40, max_size=40), st.booleans())
def test_answer_by_answer_the_whole_log_up_to_the_last_stable_offset(
    log_steps: list[Step], sizes: list[int], merge_tiny: bool
) -> None:
    """A transaction may begin in one answer and end in another; what the intake would send is compared too."""
    log = Log(log_steps)
    offset, found, taken = 0, list[int](), list[int]()
    for most in sizes:
        sent, listed = log.fetch(offset, most)
        if not sent:
            break
        found += kept(log, sent, listed)
        taken += intake_offsets(log.bytes_of(sent), offset, listed, merge_tiny=merge_tiny)
        offset = log.batches[sent[-1]].next_offset
    assert offset == log.last_stable
    wanted = [index for index, one in enumerate(log.batches) if one.next_offset <= offset and log.kept[index]]
    assert found == [log.batches[index].offset for index in wanted]
    assert taken == [
        number for index in wanted for number in range(log.batches[index].offset, log.batches[index].next_offset)
    ]


def intake_offsets(
    records: bytes, offset: int, listed: Sequence[tuple[int, int]], *, merge_tiny: bool
) -> Iterator[int]:
    """The source's offsets of all records that the pump's intake makes of an answer."""
    frame = FramePool(1 << 20, 1).take(len(records))
    frame.view[:] = records
    intake = Intake(read_committed=True, codec=None, merge_tiny=merge_tiny)
    for item in intake.prepare(frame, frame.view, offset, listed):
        if isinstance(item, Batch):
            for run in item.runs:
                yield from range(run.upstream, run.upstream + run.length)


@pytest.mark.parametrize(
    ("log_steps", "offsets"),
    [
        # One aborted and one committed, side by side; the abort comes first.
        ([(3, "data", 2), (5, "data", 1), (3, "data", 1), (3, "abort", 1), (5, "data", 1), (5, "commit", 1)], [2, 5]),
        # The same producer continues after its marker.
        ([(3, "data", 1), (3, "abort", 1), (3, "data", 1), (3, "commit", 1), (3, "plain", 2)], [2, 4]),
        # Two aborted: the one that began later ends first, and stands first in the broker's list.
        ([(3, "data", 1), (5, "data", 1), (5, "abort", 1), (5, "plain", 1), (3, "data", 1), (3, "abort", 1)], [3]),
        # A marker of a transaction with nothing in this partition ends nobody else's.
        ([(3, "data", 1), (5, "abort", 1), (3, "data", 1), (8, "data", 1), (3, "abort", 1), (8, "commit", 1)], [3]),
        # A commit of one does not end the aborted one of another.
        ([(3, "data", 1), (5, "data", 1), (5, "commit", 1), (3, "data", 1), (3, "abort", 1)], [1]),
        # Without a transaction, between an aborted one's batches.
        ([(3, "data", 1), (NOBODY, "plain", 3), (3, "data", 1), (3, "abort", 1)], [1]),
        # Aborted twice by the same producer, with a committed one between.
        ([(3, "data", 1), (3, "abort", 1), (3, "data", 1), (3, "commit", 1), (3, "data", 1), (3, "abort", 1)], [2]),
    ],
)
def test_by_hand(log_steps: list[Step], offsets: list[int]) -> None:
    log = Log(log_steps)
    sent, listed = log.fetch(0, 40)
    assert len(sent) == len(log_steps)
    assert kept(log, sent, listed) == offsets == expected(log, sent)


def test_an_answer_that_begins_behind_the_data_of_an_aborted_transaction() -> None:
    """The broker lists it still: its marker ends it, and what its producer wrote later is kept."""
    log = Log([(3, "data", 2), (5, "plain", 1), (3, "abort", 1), (3, "data", 1), (3, "commit", 1)])
    sent, listed = log.fetch(2, 40)
    assert listed == [(3, 0)]
    assert kept(log, sent, listed) == [2, 4]


def test_the_model_writes_what_kafka_python_reads() -> None:
    log = Log([(3, "data", 2), (5, "plain", 1), (3, "abort", 1)])
    data, plain, marker = batches_in(log.bytes_of([0, 1, 2]))
    assert all(batch.validate_crc() for batch in (data, plain, marker))
    assert [(one.base_offset, one.is_transactional, one.is_control_batch) for one in (data, plain, marker)] == [
        (0, True, False),
        (2, False, False),
        (3, True, True),
    ]
    (record,) = marker
    assert record.abort
    assert not record.commit


@pytest.mark.parametrize("kind", ["abort", "commit"])
def test_a_marker_that_the_cleaner_has_emptied_is_passed_over(kind: Kind) -> None:
    """Of a compacted topic: its header stays, as the last batch of its producer, without the record."""
    marker = bytearray(stored_bytes(Stored(7, 5, kind, 1))[:HEADER_SIZE])
    struct.pack_into(">i", marker, 8, HEADER_SIZE - LENGTH_OVERHEAD)
    struct.pack_into(">i", marker, HEADER_SIZE - 4, 0)
    struct.pack_into(">I", marker, 17, crc32c(marker[ATTRIBUTES_AT:]))
    ((_, header),) = batch_headers(memoryview(marker))
    assert (header.is_control, header.records, header.next_offset) == (True, 0, 8)
    assert Transactions([]).is_aborted(header, memoryview(marker)) is False
