"""Batches that unpack to far more than they are come out in pieces, the same records, and in bounded memory."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tracemalloc
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
import snappy
import zstandard
from hypothesis import given, settings
from tests.support.bombs import GZIP, LZ4, SNAPPY, ZSTD, batch_of_section, bomb, header_of, record
from tests.support.built import Content, build, contents, source_batches

from sparkmirror.kafka.wire import pieces as pieces_module
from sparkmirror.kafka.wire import records as records_module
from sparkmirror.kafka.wire.batches import CODECS, HEADER_SIZE
from sparkmirror.kafka.wire.joined import PIECE_RECORDS
from sparkmirror.kafka.wire.pieces import STAND_IN, LargeRecord, RawRecord, pieces, raw_parts, readable_pieces, records
from sparkmirror.kafka.wire.records import NotAtOnce, Records
from sparkmirror.kafka.wire.unpacking import PIECE_BYTES, WHOLE_BYTES, Oversized, decompress, size_of
from sparkmirror.kafka.wire.unpacking import pieces as unpacked

MB = 1 << 20
GROWN_MB = 80
"""A walk over a bomb of 120 MB may take so much: a piece, its records as objects, what the libraries keep."""

each_codec = pytest.mark.parametrize("codec", range(len(CODECS)), ids=CODECS)
each_that_compresses = pytest.mark.parametrize("codec", range(1, len(CODECS)), ids=CODECS[1:])


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a piece were five records, or 2,000 bytes."""
    monkeypatch.setattr(records_module, "PIECE_RECORDS", 5)
    monkeypatch.setattr(pieces_module, "PIECE_RECORDS", 5)
    monkeypatch.setattr(records_module, "PIECE_BYTES", 2000)
    monkeypatch.setattr(pieces_module, "PIECE_BYTES", 2000)


def given_in_pieces(content: Content) -> Iterator[tuple[int, int, bytes]]:
    ((header, view),) = source_batches([content])
    for piece in pieces(header, view):
        if isinstance(piece, LargeRecord):
            body = b"".join(piece.body)
            assert len(body) == piece.size
            yield piece.offset, piece.timestamp, body
        else:
            assert 0 < len(piece) <= 5
            yield from zip(piece.offsets, piece.timestamps, piece.bodies, strict=True)


@settings(max_examples=60)
@given(contents())
def test_pieces_are_all_of_it(source: list[Content]) -> None:
    expected = []
    for content in source:
        ((header, view),) = source_batches([content])
        whole = Records()
        whole.add(header, view)
        expected.append(list(zip(whole.offsets, whole.timestamps, whole.bodies, strict=True)))
    with pytest.MonkeyPatch.context() as patch:
        small_pieces.__wrapped__(patch)  # type: ignore[attr-defined]
        assert [list(given_in_pieces(content)) for content in source] == expected


@each_that_compresses
def test_a_bomb_is_walked_over_in_bounded_memory(codec: int) -> None:
    """120 MB of zeros, in records of 8 MB, of 100 KB, and of 20 bytes."""
    program = f"""
import resource, sys
from tests.support.bombs import bomb, header_of
from sparkmirror.kafka.wire.pieces import raw_parts
made = [bomb({codec}, [8 << 20] * 15), bomb({codec}, [100 << 10] * 1200)]
small = bomb({codec}, [20] * 100_000)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
counts = [sum(1 for _ in raw_parts(*header_of(one))) for one in (*made, small)]
print(*counts, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    path = f"{Path(__file__).parent}:{os.environ.get('PYTHONPATH', '')}"
    said = subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    *counts, grown_kb = map(int, said.stdout.split())
    assert counts == [15, 1200, 100_000]
    assert grown_kb < GROWN_MB * 1024


@each_codec
def test_a_large_record_stands_for_itself_alone(codec: int) -> None:
    """Equal ones have equal digests, whatever compressed them; another one has another."""
    large = PIECE_BYTES + 1000
    bodies = {body for _, _, body in raw_parts(*header_of(bomb(codec, [large, 5, large])))}
    assert len(bodies) == 2
    others = [body for _, _, body in raw_parts(*header_of(bomb(ZSTD, [large])))]
    assert set(others) < bodies
    assert others[0].startswith(STAND_IN)
    longer = [body for _, _, body in raw_parts(*header_of(bomb(ZSTD, [large + 1])))]
    assert longer != others
    with pytest.raises(ValueError, match=rf"the record at offset 0 has {large + 6} bytes, more than are held of one"):
        next(records(*header_of(bomb(codec, [large]))))


def test_a_bodys_own_size_decides_whether_it_is_a_digest() -> None:
    """Not what else is in the batch, its codec, its format, or how long the numbers before it are."""
    for size in (PIECE_BYTES - 200, PIECE_BYTES - 71, PIECE_BYTES - 69, PIECE_BYTES, PIECE_BYTES + 40, 2 * PIECE_BYTES):
        bodies = set()
        for batch in (
            bomb(0, [size]),
            bomb(ZSTD, [size]),
            bomb(ZSTD, [9] * 200 + [size]),
            bomb(GZIP, [size, 9]),
            build(Content(1, GZIP, [RawRecord(0, 5, None, bytes(size), ())], 1)),
            build(Content(0, 0, [RawRecord(0, -1, None, bytes(size), ())], 1)),
        ):
            bodies |= {body for _, _, body in raw_parts(*header_of(batch)) if len(body) > 20}
        assert len(bodies) == 1
        assert bodies.pop().startswith(STAND_IN) == (size > PIECE_BYTES - 70)


def test_a_large_record_comes_in_parts() -> None:
    large = 3 * PIECE_BYTES
    first, between, last = pieces(*header_of(bomb(ZSTD, [large, 0, large], base=100)))
    del last
    assert isinstance(first, LargeRecord)
    assert (first.offset, first.size) == (100, large + 6)
    digest, size = hashlib.sha256(), 0
    ((_, _, body),) = [part for part in raw_parts(*header_of(bomb(0, [large])))]
    assert body.startswith(STAND_IN)
    for piece in pieces(*header_of(bomb(ZSTD, [large], base=100))):
        assert isinstance(piece, LargeRecord)
        for part in piece.body:
            digest.update(part)
            size += len(part)
            assert len(part) <= 2 * PIECE_BYTES
    assert size == large + 6
    assert digest.digest() == hashlib.sha256(b"".join(record(large, 0))[7:]).digest()
    assert isinstance(between, Records)


def test_what_is_too_much_at_once_is_told_so() -> None:
    for batch in (bomb(ZSTD, [PIECE_BYTES + 1]), bomb(0, [PIECE_BYTES + 1]), bomb(ZSTD, [0] * (PIECE_RECORDS + 1))):
        with pytest.raises(NotAtOnce):
            Records().add(*header_of(batch))


# --- damage behind the first piece --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("section", "count", "why"),
    [
        (b"".join(record(PIECE_BYTES, 0))[:-5], 1, "the record at offset 0 lacks 5 bytes"),
        (b"".join(record(PIECE_BYTES, 0)) + b"\0", 1, "1 records announced, more found"),
        (b"".join(record(PIECE_BYTES, 0)) + b"".join(record(1, 0)), 2, "offsets 0 to 0 follow 0"),
        (b"".join(record(PIECE_BYTES, 0)) + b"\x08\0\0", 2, "2 records announced, 1 found"),
        (b"".join(record(PIECE_BYTES, 0)) + b"\xff" * 12, 2, "a number of more than 64 bits"),
        (b"".join(record(PIECE_BYTES, 0)) + b"\x01\0\0\x02", 2, "a record of -1 bytes"),
        (b"".join(record(PIECE_BYTES, 0)) + b"\xfe\xff\xff\xff\x0f\0\0\x02", 2, "lacks 2147483644 bytes"),
        (b"".join(record(PIECE_BYTES, 7)), 1, "offset 7 follows -1"),
        (b"".join(record(PIECE_BYTES, 0)), 3, "3 records announced, 1 found"),
        (b"".join(record(PIECE_BYTES, 0)), -1, "-1 records announced, more found"),
    ],
)
def test_damage_is_named_wherever_it_is(section: bytes, count: int, why: str) -> None:
    batch = batch_of_section(section, count, span=max(count, 1))
    with pytest.raises(ValueError, match="the batch at offset 0 can't be read: ") as caught:
        list(raw_parts(*header_of(batch)))
    assert why in str(caught.value)
    assert str(caught.value).count("can't be read") == 1


# --- codecs -------------------------------------------------------------------------------------------


@each_that_compresses
def test_decompressing_stops_where_it_must(codec: int) -> None:
    batch = bomb(codec, [40 * MB])
    packed = memoryview(batch)[HEADER_SIZE:]
    tracemalloc.start()
    try:
        with pytest.raises(Oversized, match=r"it unpacks to more than \d+ bytes"):
            decompress(codec, packed, MB)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * MB
    assert size_of(codec, packed) == (40 * MB + 13, True)


def test_a_raw_snappy_block_that_lies_takes_no_memory() -> None:
    """The library would take 4 GB before it looks at the second byte."""
    for size in (b"\xff\xff\xff\xff\x0f", b"\x80\x80\x80\x80\x08", b"\xff" * 5):
        with pytest.raises(ValueError, match="its snappy data can't be decompressed: 15 bytes that say they were"):
            decompress(SNAPPY, size + b"x" * 10)


def test_a_raw_snappy_block_that_is_too_large_is_told_with_its_size() -> None:
    block = snappy.compress(bytes(WHOLE_BYTES + 1))
    with pytest.raises(Oversized, match=f"it unpacks to {WHOLE_BYTES + 1} bytes, which don't come in pieces"):
        list(unpacked(SNAPPY, block))
    assert len(decompress(SNAPPY, snappy.compress(bytes(WHOLE_BYTES)))) == WHOLE_BYTES


def test_a_zstd_frame_with_a_long_window_is_read_up_to_a_bound() -> None:
    """Level 22 asks for a window of 128 MB, also for a few bytes."""
    compressor = zstandard.ZstdCompressor(level=22).compressobj()
    packed = compressor.compress(b"few" * 1000) + compressor.flush()
    assert zstandard.get_frame_parameters(packed).window_size == 128 * MB
    assert decompress(ZSTD, packed) == b"few" * 1000
    long = zstandard.ZstdCompressionParameters(window_log=27)
    compressor = zstandard.ZstdCompressor(compression_params=long).compressobj()
    packed = compressor.compress(bytes(WHOLE_BYTES + 1)) + compressor.flush()
    with pytest.raises(Oversized, match="it unpacks to more than 33"):
        for _ in unpacked(ZSTD, zstandard.ZstdCompressor().compress(b"first") + packed):
            pass


def test_gzip_in_long_and_in_many_members() -> None:
    many = zlib.compress(b"one", wbits=31) * 500 + bytes(10)
    assert decompress(GZIP, many) == b"one" * 500


@each_that_compresses
def test_cut_off_at_each_place(codec: int) -> None:
    packed = bytes(memoryview(bomb(codec, [300_000]))[HEADER_SIZE:])
    for end in range(len(packed)) if len(packed) < 500 else range(0, len(packed), 97):
        try:
            list(unpacked(codec, packed[:end]))
        except ValueError as error:
            assert CODECS[codec] in str(error)  # noqa: PT017
        else:
            assert codec == SNAPPY  # it has no end mark


def test_an_old_wrapper_that_unpacks_to_too_much_is_told_with_its_size() -> None:
    """Its last message places the first one: nothing of it can be had before all of it."""
    value = bytes(WHOLE_BYTES // 2)
    content = Content(1, GZIP, [RawRecord(at, 5, None, value, ()) for at in range(2)], 2)
    with pytest.raises(ValueError, match=rf"it unpacks to {WHOLE_BYTES + 68} bytes, which don't come in pieces"):
        list(readable_pieces(*header_of(build(content))))


def test_an_old_wrapper_comes_in_pieces() -> None:
    content = Content(1, GZIP, [RawRecord(at, 5, None, bytes(MB), ()) for at in range(9)], 9)
    sizes = [len(piece) for piece in readable_pieces(*header_of(build(content)))]
    assert sizes == [4, 4, 1]


def test_lz4_frames_of_other_makes() -> None:
    import lz4.frame

    data = bytes(range(256)) * 40_000
    for linked in (True, False):
        for size in (lz4.frame.BLOCKSIZE_MAX64KB, lz4.frame.BLOCKSIZE_MAX4MB):
            packed = lz4.frame.compress(data, block_size=size, block_linked=linked, content_checksum=True)
            assert decompress(LZ4, packed) == data
