"""Batches with anything in them, their CRC right: refused, or the records that kafka-python reads; and soon."""

from __future__ import annotations

import contextlib
import os
import struct
import time
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from crc32c import crc32c
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from kafka.record import legacy_records
from tests.support.built import ENCODE, Content, batches_in, build, contents, read_back

from sparkmirror.kafka.wire.batches import HEADER_SIZE, BatchHeader, batch_headers, rewrite
from sparkmirror.kafka.wire.buffers import FramePool
from sparkmirror.kafka.wire.codecs import Codec
from sparkmirror.kafka.wire.pieces import RawRecord, records
from sparkmirror.kafka.wire.unpacking import pieces as unpacked
from sparkmirror.pump.intake import Intake, Obstacle, Skipped

FUZZ = int(os.environ.get("SPARKMIRROR_FUZZ", "60"))
brief = settings(max_examples=FUZZ, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
MAGIC_AT, V2_CRC_AT, V2_CRC_FROM, OLD_CRC_AT, OLD_CRC_FROM = 16, 17, 21, 12, 16
INSERTED = (b"\xff" * 4 + b"\x0f", b"\xff" * 12, b"\0", b"\xfe\xff\xff\xff\x0f")
HEADS = (b"", b"\0" * 11 + b"\x80\0\0\0\0\x02", b"\0" * 16 + b"\x01", b"\0" * 16 + b"\x02")
ABSURD = (0, 1, 2**31 - 1, 2**31, 2**32 - 1)


def mended(data: bytearray) -> bytes:
    """Its length and CRC are right for what is in it."""
    if len(data) > MAGIC_AT:
        struct.pack_into(">i", data, 8, len(data) - 12)
        if data[MAGIC_AT] == 2 and len(data) >= HEADER_SIZE:
            struct.pack_into(">I", data, V2_CRC_AT, crc32c(bytes(data[V2_CRC_FROM:])))
        elif data[MAGIC_AT] < 2:
            struct.pack_into(">I", data, OLD_CRC_AT, zlib.crc32(data[OLD_CRC_FROM:]))
    return bytes(data)


def damaged(data: bytes, draw: Callable[..., Any], start: int = 0) -> bytearray:
    out = bytearray(data)
    for _ in range(draw(st.integers(1, 2))):
        at = draw(st.integers(min(start, len(out)), len(out)))
        match draw(st.integers(0, 4)):
            case 0:
                out[at : at + 1] = draw(st.binary(min_size=1, max_size=1))
            case 1:
                out[at : at + 4] = struct.pack(">I", draw(st.sampled_from(ABSURD)))
            case 2:
                out[at:at] = draw(
                    st.sampled_from((b"\xff" * 4 + b"\x0f", b"\xff" * 12, b"\0", b"\xfe\xff\xff\xff\x0f"))
                )
            case 3:
                del out[at : at + draw(st.integers(1, 9))]
            case 4:
                del out[at:]
    return out


def with_damage(content: Content, draw: Callable[..., Any]) -> bytes:
    """In its header, its records, or what they are compressed to; the rest is as it should be."""
    data = build(content)
    if content.magic == 2 and content.codec and content.records and draw(st.booleans()):
        section = b"".join(map(bytes, unpacked(content.codec, data[HEADER_SIZE:])))
        return mended(bytearray(data[:HEADER_SIZE] + ENCODE[content.codec](bytes(damaged(section, draw)))))
    return mended(damaged(data, draw))


def headers_of(data: bytes) -> list[tuple[BatchHeader, memoryview]]:
    view = memoryview(data)
    return [(header, view[position : position + header.size]) for position, header in batch_headers(view)]


def ours(data: bytes) -> list[RawRecord] | None:
    """None: refused."""
    try:
        return [record for header, view in headers_of(data) for record in records(header, view)]
    except ValueError:
        return None


class Lengths:
    """`struct` for kafka-python's old messages, which steps back by a negative length; Java takes it for null."""

    pack_into, unpack, calcsize = struct.pack_into, struct.unpack, struct.calcsize

    @staticmethod
    def unpack_from(form: str, *place: Any) -> tuple[Any, ...]:
        read = struct.unpack_from(form, *place)
        if form == ">i" and read[0] < -1:
            raise ValueError("a negative length")
        return read


@pytest.fixture(autouse=True, scope="module")
def _strict() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(legacy_records, "struct", Lengths)
        yield


def theirs(data: bytes) -> list[RawRecord] | None:
    """As kafka-python reads it; None: it can't."""
    found = []
    try:
        for batch in batches_in(data):
            for one in batch:
                headers = tuple((name.encode(), value) for name, value in getattr(one, "headers", ()))
                found.append(
                    RawRecord(one.offset, -1 if one.timestamp is None else one.timestamp, one.key, one.value, headers)
                )
    except Exception:
        return None
    return found


@brief
@given(contents(), st.data())
def test_a_damaged_batch_is_refused_or_read_as_by_others(source: list[Content], data: st.DataObject) -> None:
    for content in source[:2]:
        batch = with_damage(content, data.draw)
        began = time.thread_time()
        found = ours(batch)
        assert time.thread_time() - began < 5
        expected = theirs(batch)
        if found is not None and expected is not None:
            assert found == expected


@brief
@given(contents(), st.sampled_from(range(5)), st.data())
def test_the_intake_sends_the_same_or_refuses(source: list[Content], codec: int, data: st.DataObject) -> None:
    """What a pump makes of it, compressing again: nothing but what a reader reads there."""
    for content in source[:2]:
        batch = with_damage(content, data.draw)
        pool = FramePool(1 << 20, 1)
        frame = pool.take(len(batch))
        frame.view[:] = batch
        intake = Intake(
            read_committed=data.draw(st.booleans()),
            codec=Codec(codec) if codec else None,
            merge_tiny=data.draw(st.booleans()),
        )
        sent: list[RawRecord] = []
        refused = False
        try:
            for item in intake.prepare(frame, frame.view, 0, ()):
                if isinstance(item, Skipped):
                    continue
                offsets = [run.upstream + at for run in item.runs for at in range(min(run.length, 10_000))]
                rewrite(item.view, 0, len(item.view), item.attributes, 1, 0, 0)
                with contextlib.suppress(Exception):  # what goes whole is the target's to judge
                    made = read_back(bytes(item.view))
                    sent += [record._replace(offset=offset) for record, offset in zip(made, offsets, strict=False)]
                item.frame.release()
        except (Obstacle, ValueError):
            refused = True
        frame.release()
        assert pool.in_use == 0
        read = ours(batch)
        if sent and read is not None and not refused:
            assert sent == read


@brief
@given(
    st.binary(max_size=200),
    st.sampled_from(HEADS),
)
@example(b"", b"\0" * 8 + b"\xff\xff\xff\xff" + b"\0" * 60)
def test_whatever_bytes(junk: bytes, head: bytes) -> None:
    began = time.thread_time()
    ours(head + junk)
    ours(mended(bytearray(head + junk)))
    assert time.thread_time() - began < 5


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("codec", [0, 1, 3])
def test_cut_off_at_each_byte(magic: int, codec: int) -> None:
    """The last batch of an answer may be: it is left out. With a length that agrees it is refused."""
    count = 3 if codec or magic == 2 else 1
    stamp = 5 if magic else -1
    content = Content(magic, codec, [RawRecord(at, stamp, b"k", b"v" * 30, ()) for at in range(count)], count)
    data = build(content)
    assert len(ours(data) or ()) == count
    for end in range(len(data)):
        assert ours(data[:end]) == []
        assert ours(mended(bytearray(data[:end]))) in (None, [])
