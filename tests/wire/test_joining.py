"""What is joined in one walk is what `splice` makes record by record; and the pump's intake, which joins most."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from crc32c import crc32c
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.support.built import LZ4, Content, build, contents, read_back, source_batches

from sparkmirror.kafka.wire import splice as splicing
from sparkmirror.kafka.wire.batches import HEADER_SIZE, LENGTH_OVERHEAD, BatchHeader, batch_headers, rewrite
from sparkmirror.kafka.wire.buffers import FramePool
from sparkmirror.kafka.wire.codecs import Codec
from sparkmirror.kafka.wire.joining import joined_lone_records, joined_records
from sparkmirror.kafka.wire.pieces import RawRecord
from sparkmirror.kafka.wire.splice import Run, Spliced, made_of, splice
from sparkmirror.kafka.wire.unpacking import decompress
from sparkmirror.kafka.wire.walk_loading import WALK
from sparkmirror.pump.batch import Batch
from sparkmirror.pump.intake import BACKLOG_BATCHES, MERGED_BYTES, REMADE_BYTES, TINY_BYTES, Intake, Obstacle, Skipped

modest = settings(max_examples=100, deadline=None)
NOW = 1_700_000_000_000
DAY_MS = 86_400_000


def record_by_record(batches: Sequence[tuple[BatchHeader, memoryview]], **wanted: Any) -> list[Spliced]:
    """As `splice` does it where nothing can be joined."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(splicing, "joined_records", lambda *_: None)
        return splice(batches, **wanted)


def unpacked(made: Spliced) -> Spliced:
    """With its records section decompressed, and a length that goes with it."""
    section = decompress(made.codec, memoryview(made.data)[HEADER_SIZE:])
    data = bytearray(made.data[:HEADER_SIZE]) + section
    struct.pack_into(">i", data, 8, len(data) - LENGTH_OVERHEAD)
    return replace(made, data=data)


def sealed(content: Content, leader_epoch: int = 4) -> bytes:
    """With its CRC, as a broker stores it."""
    data = bytearray(build(content))
    if content.magic == 2:
        struct.pack_into(">i", data, 12, leader_epoch)
        struct.pack_into(">I", data, 17, crc32c(data[21:]))
    return bytes(data)


# --- joined ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", autouse=True)
def _walked_in_python() -> Iterator[None]:
    """Packed bytes are compared with those of Python's walk.

    The compiled walk packs in other blocks, and another test may have it loaded.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WALK, "ready", False)
        patch.setattr(WALK, "serves", lambda records: False)
        yield


@modest
@given(contents(magics=(2,)), st.none() | st.just(Codec(0)))
def test_the_same_bytes_come_out(source: list[Content], codec: Codec | None) -> None:
    """But for where an lz4 block ends: between batches if joined, wherever 64 KiB are full if not."""
    batches = source_batches([content._replace(append_time=None) for content in source])
    joined = splice(batches, from_offset=0, codec=codec)
    assert [*map(unpacked, joined)] == [*map(unpacked, record_by_record(batches, from_offset=0, codec=codec))]


@pytest.mark.parametrize("codec", [0, LZ4])
def test_large_sections_and_many_blocks(codec: int) -> None:
    randomness = random.Random(7)
    source, offset = [], 1000
    for _ in range(12):
        records = []
        for _ in range(randomness.randrange(1, 300)):
            offset += randomness.choice((1, 1, 2, 90))
            value = randomness.randbytes(randomness.randrange(400)) * randomness.randrange(1, 4)
            records.append(RawRecord(offset, NOW + offset * 7 - randomness.randrange(9), b"k", value, ()))
        offset += 5
        source.append(Content(2, LZ4, records, offset, None, NOW + DAY_MS if randomness.random() < 0.5 else None))
    batches = source_batches(source)
    joined = joined_records(batches, Codec(codec))
    assert joined is not None, "this is what it is for"
    (made,) = splice(batches, from_offset=0, codec=Codec(codec))
    assert made == made_of(joined, codec, offset, 4)
    (plain,) = record_by_record(batches, from_offset=0, codec=Codec(0))
    rewrite(memoryview(made.data), 0, len(made.data), codec, 7, 0, 0)
    rewrite(memoryview(plain.data), 0, len(plain.data), 0, 7, 0, 0)
    assert read_back(made.data) == read_back(plain.data)
    assert (made.runs, made.count, made.base_timestamp, made.max_timestamp) == (
        (plain.runs, plain.count, plain.base_timestamp, plain.max_timestamp)
    )


@pytest.mark.parametrize("far", [0x7F, 1 << 13, 1 << 20, 1 << 27, 1 << 34, 1 << 41])
def test_timestamps_of_every_width(far: int) -> None:
    for ahead in (far - 1, far, -far, -far - 1):
        records = [RawRecord(2 * at, NOW + at * ahead, b"k", b"v", ()) for at in range(3)]
        for horizon in (None, NOW + DAY_MS):
            batches = source_batches([Content(2, 0, records, 6, None, horizon)] * 1)
            assert joined_records(batches, Codec(0)) is not None
            assert splice(batches, from_offset=0) == record_by_record(batches, from_offset=0)


@modest
@given(contents(magics=(2,)), st.data())
def test_damage_is_told_in_the_same_words(source: list[Content], data: st.DataObject) -> None:
    log = bytearray(b"".join(build(content) for content in source))
    headers = list(batch_headers(memoryview(log)))
    at = data.draw(st.integers(0, len(log) - 1), "at")
    log[at] ^= data.draw(st.integers(1, 255), "bits")
    batches = [(header, memoryview(log)[position : position + header.size]) for position, header in headers]

    def outcome(way: Any) -> object:
        try:
            return [one.runs for one in way(batches, from_offset=0, codec=Codec(0))]
        except ValueError as error:
            return str(error)

    assert outcome(splice) == outcome(record_by_record)


# --- batches of one record ------------------------------------------------------------------------------------


def lone(offset: int, timestamp: int, value: bytes | None = b"value") -> Content:
    return Content(2, 0, [RawRecord(offset, timestamp, None, value, ())], offset + 1)


lone_logs = st.lists(
    st.tuples(st.integers(0, 2), st.integers(-3, 1 << 34), st.none() | st.binary(max_size=200)), min_size=1, max_size=60
)


@modest
@given(lone_logs, st.integers(0, 1 << 40))
def test_lone_records_are_joined(drawn: list[tuple[int, int, bytes | None]], offset: int) -> None:
    source = []
    for gap, ahead, value in drawn:
        source.append(lone(offset + gap, NOW + ahead, value))
        offset += gap + 1
    log = memoryview(b"".join(map(sealed, source)))
    found = joined_lone_records(log, 0, TINY_BYTES)
    assert found is not None
    assert (found.size, found.next_offset) == (len(log), offset)
    batches = [(header, log[position : position + header.size]) for position, header in batch_headers(log)]
    assert [made_of(found.joined, 0, offset, found.leader_epoch)] == record_by_record(batches, from_offset=0)


OTHERS: dict[str, Callable[[bytes], bytes]] = {
    "a wrong CRC": lambda data: bytes((*data[:-1], data[-1] ^ 1)),
    "another leader epoch": lambda _: sealed(lone(3, NOW), leader_epoch=5),
    "an offset below": lambda _: sealed(lone(1, NOW)),
    "a gap inside": lambda _: sealed(lone(3, NOW)._replace(next_offset=6)),
    "two records": lambda _: sealed(Content(2, 0, [RawRecord(at, NOW, None, b"v", ()) for at in (3, 4)], 5)),
    "a codec": lambda _: sealed(lone(3, NOW)._replace(codec=LZ4)),
    "a stamp": lambda _: sealed(lone(3, NOW)._replace(append_time=NOW)),
    "a delta": lambda _: sealed(lone(3, NOW)._replace(delete_horizon=NOW + 5)),
    "a large one": lambda _: sealed(lone(3, NOW, b"v" * TINY_BYTES)),
    "an old format": lambda _: sealed(Content(1, 0, [RawRecord(3, NOW, None, b"v" * 99, ())], 4)),
    "one that is cut off": lambda data: data[:-1],
}


@pytest.mark.parametrize("other", OTHERS)
def test_the_run_ends_where_something_else_begins(other: str) -> None:
    log = b"".join(sealed(lone(at, NOW + at)) for at in range(3))
    end = OTHERS[other](sealed(lone(3, NOW)))
    found = joined_lone_records(memoryview(log + end), 0, TINY_BYTES)
    assert found is not None
    assert (found.joined.runs, found.size, found.next_offset) == ([(0, 3)], len(log), 3)
    assert joined_lone_records(memoryview(end), 3, TINY_BYTES) is None or other == "another leader epoch"


# --- taken in -------------------------------------------------------------------------------------------------


def a_log(randomness: random.Random) -> list[Content]:
    """Stretches of plain tiny batches, of compacted ones, and of some that are neither."""
    found: list[Content] = []
    offset = randomness.randrange(100)
    for _ in range(randomness.randrange(1, 8)):
        kind = randomness.choice(("lone", "lone", "gaps", "gaps", "tiny", "whole", "stamped", "empty"))
        codec = randomness.choice((0, LZ4))
        for _ in range(randomness.choice((1, 2, 9, 30))):
            size = 5000 if kind == "whole" else randomness.choice((3, 80, 700))
            count = 1 if kind == "lone" else 0 if kind == "empty" else randomness.randrange(1, 12)
            records = []
            for _ in range(count):
                value = randomness.randbytes(size)
                records.append(RawRecord(offset, NOW + offset + randomness.randrange(3), b"key", value, ()))
                offset += randomness.randrange(1, 4) if kind == "gaps" else 1
            stamp = NOW + offset if kind == "stamped" else None
            offset += 3 if kind == "empty" else 0
            found.append(Content(2, 0 if kind == "lone" else codec, records, offset, stamp))
    return found


@pytest.mark.parametrize("merge_tiny", [True, False])
@pytest.mark.parametrize("limit", [None, 20_000])
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 1 << 32), skipped=st.integers(0, 20), joined=st.sampled_from((0, 9000, 60_000, 500_000)))
def test_every_record_is_taken_in_once(
    seed: int, skipped: int, joined: int, merge_tiny: bool, limit: int | None
) -> None:
    source = a_log(random.Random(seed))
    upstream = source[0].next_offset - 1 + skipped
    assume(upstream < source[-1].next_offset)  # a broker's answer reaches beyond the offset asked for
    randomness = random.Random(seed)
    epochs = [randomness.choice((4, 4, 4, 5)) for _ in source]
    log = b"".join(sealed(content, epoch) for content, epoch in zip(source, epochs, strict=True))
    epoch_at = {
        record.offset: epoch for content, epoch in zip(source, epochs, strict=True) for record in content.records
    }
    intake = Intake(read_committed=False, codec=None, merge_tiny=merge_tiny)
    intake.join(joined)
    if limit is not None:
        intake.split(limit)
    pool = FramePool(1 << 20, 1)
    frame = pool.take(len(log))
    frame.view[:] = log
    taken: list[RawRecord] = []
    follows = upstream
    for item in intake.prepare(frame, frame.view, upstream, ()):
        assert item.next_upstream >= follows
        follows = item.next_upstream
        if isinstance(item, Skipped):
            continue
        assert isinstance(item, Batch)
        assert limit is None or len(item.view) <= limit // 2 or item.count == 1
        rewrite(item.view, 0, len(item.view), item.attributes, 7, 0, 0)
        offsets = [run.upstream + at for run in item.runs for at in range(run.length)]
        found = read_back(bytes(item.view))
        assert item.leader_epoch == epoch_at[offsets[0]]
        assert {epoch_at[offset] for offset in offsets} == {item.leader_epoch}
        assert (item.base_timestamp, item.max_timestamp) == (found[0].timestamp, max(one.timestamp for one in found))
        taken += [record._replace(offset=offset) for record, offset in zip(found, offsets, strict=True)]
        item.frame.release()
    assert taken == [one for content in source for one in content.consumed() if one.offset >= upstream]
    assert follows >= source[-1].next_offset
    frame.release()
    assert pool.in_use == 0


def taken_in(source: Sequence[bytes], *, merge_tiny: bool = True) -> list[Batch]:
    frame = FramePool(1 << 20, 1).take(sum(map(len, source)))
    frame.view[:] = b"".join(source)
    intake = Intake(read_committed=False, codec=None, merge_tiny=merge_tiny)
    return [one for one in intake.prepare(frame, frame.view, 0, ()) if isinstance(one, Batch)]


def test_a_backlog_of_lone_records_is_one_batch_and_a_few_stay_as_they_are() -> None:
    few = [sealed(lone(at, NOW)) for at in range(BACKLOG_BATCHES - 1)]
    assert [one.count for one in taken_in(few)] == [1] * len(few)
    many = [sealed(lone(at, NOW, b"v" * 1000)) for at in range(300)]
    assert sum(map(len, many)) > MERGED_BYTES
    first, second = taken_in(many)
    assert (first.runs, second.runs) == ((Run(0, first.count),), (Run(first.count, 300 - first.count),))


def full(at: int, records: int, size: int, codec: int = 0) -> Content:
    """A batch of many records that follow each other, from an offset on."""
    randomness = random.Random(at)
    found = [RawRecord(at + n, NOW + at + n, b"k", randomness.randbytes(size // 2) * 2, ()) for n in range(records)]
    return Content(2, codec, found, at + records)


def made_by(intake: Intake, log: Sequence[bytes]) -> list[Batch]:
    frame = FramePool(4 << 20, 1).take(sum(map(len, log)))
    frame.view[:] = b"".join(log)
    return [one for one in intake.prepare(frame, frame.view, 0, ()) if isinstance(one, Batch)]


@pytest.mark.parametrize("codec", [0, LZ4])
def test_batches_are_joined_for_a_long_line_only(codec: int) -> None:
    log = [sealed(full(20 * number, 20, 8000, codec)) for number in range(12)]
    size = max(map(len, log))
    intake = Intake(read_committed=False, codec=None, merge_tiny=True)
    assert [one.count for one in made_by(intake, log)] == [20] * 12
    intake.join(4 * size)
    assert [one.count for one in made_by(intake, log)] == [80] * 3
    assert [one.attributes for one in made_by(intake, log)] == [codec] * 3
    intake.join(2 * min(map(len, log)) - 1)
    assert [one.count for one in made_by(intake, log)] == [20] * 12, "two would not fit"
    intake.join(0)
    assert [one.count for one in made_by(intake, log)] == [20] * 12
    unmerged = Intake(read_committed=False, codec=None, merge_tiny=False)
    unmerged.join(4 * size)
    assert [one.count for one in made_by(unmerged, log)] == [20] * 12, "sparkmirror.merge.tiny.batches=false"


def test_joined_batches_respect_a_refusal_and_leader_epochs() -> None:
    log = [sealed(full(20 * number, 20, 1000), 4 if number < 5 else 5) for number in range(12)]
    size = max(map(len, log))
    intake = Intake(read_committed=False, codec=None, merge_tiny=True)
    intake.join(6 * size)
    assert [one.count for one in made_by(intake, log)] == [100, 120, 20]
    intake.split(6 * size)
    assert [one.count for one in made_by(intake, log)] == [60, 40, 60, 60, 20]


def test_what_unpacks_to_too_much_goes_as_it_is_and_less_is_joined_from_then_on() -> None:
    """44 batches of 100 records of zeros: each has 1 MB unpacked, and a few kB packed."""
    zeros = [RawRecord(number, NOW + number, None, bytes(10_000), ()) for number in range(4400)]
    log = [sealed(Content(2, LZ4, zeros[at : at + 100], at + 100)) for at in range(0, 4400, 100)]
    intake = Intake(read_committed=False, codec=None, merge_tiny=True)
    intake.join(20 * max(map(len, log)))
    assert [one.count for one in made_by(intake, log)][:20] == [100] * 20
    for _ in range(4):
        intake.join(20 * max(map(len, log)))
        counts = [one.count for one in made_by(intake, log)]
    assert set(counts) <= {200, 300, 400}
    assert sum(counts) == 4400


def gaps(first: int, size: int, codec: int = 0) -> Content:
    """Three records over six offsets."""
    values = random.Random(first)
    records = [RawRecord(first + 2 * at, NOW, b"k", values.randbytes(size), ()) for at in range(3)]
    return Content(2, codec, records, first + 6)


def test_batches_with_gaps_become_one_but_not_across_codecs_or_leader_epochs() -> None:
    large = [sealed(gaps(6 * at, 3000), 4 if at < 6 else 5) for at in range(8)]
    large += [sealed(gaps(48 + 6 * at, 3000, LZ4), 5) for at in range(2)]
    assert [one.count for one in taken_in(large)] == [18, 6, 6]
    tiny = [sealed(gaps(6 * at, 30, LZ4 * (at % 2)), 4 if at < 9 else 5) for at in range(20)]
    assert [one.count for one in taken_in(tiny)] == [27, 33], "tiny ones don't mind another codec"
    assert [one.count for one in taken_in(large, merge_tiny=False)] == [3] * 10


def test_batches_with_gaps_become_no_larger_than_is_cheap_to_make() -> None:
    source = [sealed(gaps(6 * at, 10_000)) for at in range(20)]
    batches = taken_in(source)
    assert sum(one.count for one in batches) == 60
    assert max(len(one.view) for one in batches) <= REMADE_BYTES
    assert len(batches) < 10


def test_a_batch_without_gaps_goes_whole_between_those_that_are_joined() -> None:
    records = [RawRecord(12 + at, NOW, b"k", b"v" * 3000, ()) for at in range(6)]
    source = [sealed(gaps(0, 3000)), sealed(gaps(6, 3000)), sealed(Content(2, 0, records, 18)), sealed(gaps(18, 3000))]
    first, whole, last = taken_in(source)
    assert (first.count, whole.runs, last.count) == (6, (Run(12, 6),), 3)


def test_what_can_go_whole_does_so_among_batches_with_gaps() -> None:
    whole = sealed(Content(2, 0, [RawRecord(6 + at, NOW, b"k", b"v" * 30, ()) for at in range(3)], 9))
    log = [sealed(gaps(0, 3000)), whole, sealed(gaps(9, 3000)), sealed(gaps(15, 30))]
    assert [one.count for one in taken_in(log)] == [3, 3, 6]
    assert bytes(taken_in(log)[1].view) == whole


def test_batches_too_large_to_take_together_are_taken_one_by_one() -> None:
    """Each unpacks to 1.8 MB: three are more than is held at once."""
    zeros = [gaps(6 * at, 0, LZ4) for at in range(5)]
    log = [sealed(one._replace(records=[each._replace(value=bytes(600_000)) for each in one.records])) for one in zeros]
    assert sum(map(len, log)) < REMADE_BYTES
    assert [one.count for one in taken_in(log)] == [3] * 5


def test_batches_before_an_unreadable_one_are_taken_in() -> None:
    """Its CRC is right; what it says of its records is not."""
    source = [sealed(gaps(6 * at, 3000)) for at in range(3)]
    damaged = bytearray(source[2])
    damaged[HEADER_SIZE] ^= 2  # of the first record's length
    struct.pack_into(">I", damaged, 17, crc32c(damaged[21:]))
    source[2] = bytes(damaged)
    found: list[Batch | Skipped] = []
    frame = FramePool(1 << 20, 1).take(sum(map(len, source)))
    frame.view[:] = b"".join(source)
    with pytest.raises(Obstacle, match="the batch at source offset 12 can't be read"):
        found.extend(Intake(read_committed=False, codec=None, merge_tiny=True).prepare(frame, frame.view, 0, ()))
    assert [one.count for one in found if isinstance(one, Batch)] == [3, 3]


def test_a_corrupt_batch_in_a_backlog_is_named_after_all_before_it() -> None:
    log = [sealed(lone(at, NOW)) for at in range(20)]
    log[12] = OTHERS["a wrong CRC"](log[12])
    frame = FramePool(1 << 20, 1).take(sum(map(len, log)))
    frame.view[:] = b"".join(log)
    found: list[Batch | Skipped] = []
    with pytest.raises(Obstacle, match="the batch at source offset 12 is corrupt"):
        found.extend(Intake(read_committed=False, codec=None, merge_tiny=True).prepare(frame, frame.view, 0, ()))
    (batch,) = found or taken_in(log[:12])
    assert isinstance(batch, Batch)
    assert batch.count == 12


_PRODUCER_AT = 43
"""Place of the producer id in a batch."""


def written_by(batch: bytes, producer_id: int) -> bytes:
    changed = bytearray(batch)
    struct.pack_into(">q", changed, _PRODUCER_AT, producer_id)
    struct.pack_into(">I", changed, 17, crc32c(bytes(changed[21:])))
    return bytes(changed)


@pytest.mark.parametrize("size", [10, 8000], ids=["tiny", "large"])
@pytest.mark.parametrize("merge_tiny", [False, True])
def test_what_the_opposite_flow_has_copied_never_goes_back(size: int, merge_tiny: bool) -> None:
    """Not even in a backlog that is merged; all others' records go (M1)."""
    ours = {3, 4, 11, 30, 31, 39}
    log = [written_by(sealed(lone(at, NOW, b"v" * size)), 4000 if at in ours else 4001) for at in range(40)]
    for opposite, kept in ((4000, set(range(40)) - ours), (None, set(range(40))), (9, set(range(40)))):
        intake = Intake(read_committed=False, codec=None, merge_tiny=merge_tiny, opposite=opposite)
        offsets = [run.upstream + at for one in made_by(intake, log) for run in one.runs for at in range(run.length)]
        assert offsets == sorted(kept)
