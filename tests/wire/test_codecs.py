"""The codecs, with kafka-python's as the other side."""

from __future__ import annotations

import gzip
import random
import struct
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import lz4.frame
import pytest
import snappy
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka import codec as kafka_codec

from sparkmirror.kafka.wire import codecs as ours
from sparkmirror.kafka.wire.batches import CODECS
from sparkmirror.kafka.wire.codecs import Buffer, Codec, Compressor
from sparkmirror.kafka.wire.unpacking import decompress

modest = settings(max_examples=80, deadline=None)
GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
ENCODE = (bytes, kafka_codec.gzip_encode, kafka_codec.snappy_encode, kafka_codec.lz4_encode, kafka_codec.zstd_encode)
DECODE = (bytes, kafka_codec.gzip_decode, kafka_codec.snappy_decode, kafka_codec.lz4_decode, kafka_codec.zstd_decode)

codecs = st.integers(0, len(CODECS) - 1)
each_codec = pytest.mark.parametrize("codec", range(len(CODECS)), ids=CODECS)
each_that_compresses = pytest.mark.parametrize("codec", range(1, len(CODECS)), ids=CODECS[1:])
LEVELS = {GZIP: (-1, *range(1, 10)), LZ4: tuple(range(1, 18)), ZSTD: (-131_072, -1000, -1, *range(23))}
"""Of Kafka's levels; zstd's negative ones in part."""
levelled = st.sampled_from([Codec(number, level) for number, levels in LEVELS.items() for level in levels])
sections = st.binary(min_size=1, max_size=300) | st.builds(
    lambda seed, size, times: random.Random(seed).randbytes(size) * times,
    st.integers(0, 99),
    st.integers(1, 3000),
    st.integers(1, 60),
)


def compress(codec: int, data: Buffer) -> bytes:
    return ours.compress(Codec(codec), data)


@modest
@given(codecs, sections)
def test_others_read_what_we_compress(codec: int, data: bytes) -> None:
    packed = compress(codec, data)
    assert DECODE[codec](packed) == data
    assert decompress(codec, packed) == data
    assert compress(codec, memoryview(bytearray(data))) == packed


@modest
@given(codecs, sections)
def test_we_read_what_others_compress(codec: int, data: bytes) -> None:
    packed = ENCODE[codec](data)
    for view in (packed, bytearray(packed), memoryview(b"...." + packed)[4:]):
        assert decompress(codec, view) == data


@each_codec
def test_threads_compress_side_by_side(codec: int) -> None:
    """What a codec keeps from one time to the next is a thread's own."""
    sections = [random.Random(seed).randbytes(2000) * 50 for seed in range(8)]
    with ThreadPoolExecutor(4) as threads:
        packed = list(threads.map(lambda data: compress(codec, data), sections * 8))
    assert [decompress(codec, data) for data in packed] == sections * 8


@each_codec
def test_large_sections(codec: int) -> None:
    data = random.Random(1).randbytes(100_000) + bytes(3_000_000)
    assert DECODE[codec](compress(codec, data)) == data
    assert decompress(codec, ENCODE[codec](data)) == data


@modest
@given(levelled, sections)
def test_every_level(codec: Codec, data: bytes) -> None:
    packed = ours.compress(codec, data)
    assert DECODE[codec.number](packed) == data
    assert decompress(codec.number, packed) == data
    assert ours.compress(codec, data) == packed
    streamed = in_parts(codec, data)
    assert DECODE[codec.number](streamed) == data
    assert decompress(codec.number, streamed) == data
    assert in_parts(codec, data) == streamed


def in_parts(codec: Codec, data: bytes) -> bytes:
    """Compressed as a section that arrives in parts."""
    compressor = Compressor(codec)
    for at in range(0, len(data), 1000):
        part = data[at : at + 1000]
        compressor.add([part], len(part))
        compressor._at_once = 1  # noqa: SLF001
    return b"".join(compressor.ended())


WORDS = b"".join(b"%d little words of %d, " % (at * at % 977, at % 13) for at in range(30_000))


@pytest.mark.parametrize(
    ("codec", "usual", "weak", "strong"),
    [(GZIP, -1, 1, 9), (LZ4, 9, 9, 12), (ZSTD, 3, -5, 19)],
    ids=["gzip", "lz4", "zstd"],
)
@pytest.mark.parametrize("pack", [ours.compress, in_parts])
def test_a_level_counts(pack: Callable[[Codec, bytes], bytes], codec: int, usual: int, weak: int, strong: int) -> None:
    assert pack(Codec(codec), WORDS) == pack(Codec(codec, usual), WORDS)
    assert len(pack(Codec(codec, strong), WORDS)) < 0.95 * len(pack(Codec(codec, weak), WORDS))


def test_lz4s_levels_are_kafkas() -> None:
    """Its default, 9, is the fast compressor; 1 is high compression already, and above 12 is nothing more."""
    sizes = {level: len(ours.compress(Codec(LZ4, level), WORDS)) for level in range(1, 18)}
    assert max(sizes, key=lambda level: sizes[level]) == 9
    assert sizes[9] == len(
        lz4.frame.compress(WORDS, block_size=lz4.frame.BLOCKSIZE_MAX64KB, block_linked=False, store_size=False)
    )
    assert len({sizes[level] for level in range(12, 18)}) == 1


def test_zstds_highest_level_needs_no_long_window() -> None:
    """Readers may have no memory for more than 8 MB; the level itself asks for 128."""
    frame = zstandard.get_frame_parameters(in_parts(Codec(ZSTD, 22), WORDS))
    assert frame.window_size <= 8 << 20


def test_java_reads_our_lz4() -> None:
    """Its reader wants version 1 and blocks that don't depend on each other; 64 KiB are its own block size."""
    magic, descriptor, block_size = (packed := compress(LZ4, bytes(200_000)))[:4], packed[4], packed[5]
    assert (magic, descriptor & 0b1110_0000, block_size) == (b"\x04\x22\x4d\x18", 0b0110_0000, 4 << 4)


def test_snappy_without_a_framing() -> None:
    data = b"raw" * 1000
    assert decompress(SNAPPY, snappy.compress(data)) == data


def test_snappy_streams_that_follow_each_other() -> None:
    assert decompress(SNAPPY, compress(SNAPPY, b"one") + compress(SNAPPY, b"two")) == b"onetwo"


def test_zstd_frames_without_a_size_and_more_than_one() -> None:
    """A Java client does not know the size when it begins to write."""
    writer = zstandard.ZstdCompressor().compressobj()
    stream = writer.compress(b"one" * 999) + writer.flush()
    assert zstandard.get_frame_parameters(stream).content_size > 1 << 60
    assert decompress(ZSTD, stream + compress(ZSTD, b"two")) == b"one" * 999 + b"two"


@pytest.mark.parametrize("order", ["sf", "fs", "ssf", "fsf", "sfs", "sffs"])
@pytest.mark.parametrize("size", [0, 5, 70_000])
def test_zstd_frames_that_are_to_be_skipped(order: str, size: int) -> None:
    """RFC 8878, 3.1.2; Java's reader passes over them wherever they are."""
    skipped = struct.pack("<II", 0x184D2A50 + size % 16, size) + bytes(size)
    frame = compress(ZSTD, b"abc" * 1000)
    data = b"".join(skipped if kind == "s" else frame for kind in order)
    assert decompress(ZSTD, data) == b"abc" * 1000 * order.count("f")


def test_gzip_members_that_follow_each_other() -> None:
    assert decompress(GZIP, gzip.compress(b"one") + gzip.compress(b"two")) == b"onetwo"


@each_that_compresses
def test_what_is_cut_off_is_noticed(codec: int) -> None:
    """Snappy has no end mark, so a cut between two blocks shows only in the records."""
    data = random.Random(2).randbytes(40_000) + bytes(40_000)
    packed = compress(codec, data)
    for end in (*range(40), *range(40, len(packed), 997), *range(len(packed) - 40, len(packed))):
        try:
            found = decompress(codec, packed[:end])
        except ValueError as error:
            assert CODECS[codec] in str(error)  # noqa: PT017
        else:
            assert codec == SNAPPY
            assert len(found) % 32_768 == 0
            assert len(found) < len(data)


@settings(max_examples=300, deadline=None)
@given(codecs, st.binary(max_size=200), st.data())
def test_damaged_data_raises_nothing_else(codec: int, junk: bytes, data: st.DataObject) -> None:
    packed = bytearray(compress(codec, b"some data, " * 50))
    packed[data.draw(st.integers(0, len(packed) - 1))] ^= data.draw(st.integers(1, 255))
    for damaged in (junk, bytes(packed)):
        try:
            decompress(codec, damaged)
        except ValueError as error:
            assert "can't be decompressed" in str(error)  # noqa: PT017


def test_a_damaged_lz4_frame_takes_no_memory_that_it_only_claims_to_need() -> None:
    """2 PiB by its head, whose checksum is right."""
    head = b"\x04\x22\x4d\x18\x68\x40" + (1 << 51).to_bytes(8, "little")
    checksums = [bytes((guess,)) for guess in range(256) if _is_lz4_head(head + bytes((guess,)))]
    assert len(checksums) == 1
    with pytest.raises(ValueError, match="can't be decompressed"):
        decompress(LZ4, head + checksums[0] + compress(LZ4, b"data")[7:])


def _is_lz4_head(head: bytes) -> bool:
    try:
        lz4.frame.get_frame_info(head)
    except RuntimeError:
        return False
    return True


@pytest.mark.parametrize("codec", [-1, 5, 7])
def test_codecs_that_kafka_does_not_have(codec: int) -> None:
    for use in (compress, decompress):
        with pytest.raises(ValueError, match=f"codec {codec}, which Kafka does not have"):
            use(codec, b"data")


def test_who_forwards_whole_batches_loads_no_codec() -> None:
    """The libraries take their time and memory in every worker."""
    program = """
import sys
import sparkmirror.kafka.wire.splice, sparkmirror.kafka.wire.codecs
loaded = {"lz4", "snappy", "cramjam", "zstandard"} & set(sys.modules)
assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-c", program], check=True)
