"""Batches of magic 2 made from a seed: sound ones, and such with truncated, changed, or made-up bytes."""

from __future__ import annotations

import random
import struct
from typing import NamedTuple

from crc32c import crc32c
from tests.support.built import LEADER_EPOCH

from sparkmirror.kafka.wire.batches import (
    ATTRIBUTES_AT,
    HEADER,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    TIMESTAMP_TYPE_BIT,
    BatchHeader,
    batch_headers,
)
from sparkmirror.kafka.wire.varints import written, zigzag

NOW = 1_760_000_000_000
EXTREMES = (0, -1, 1, 1 << 31, -(1 << 31), (1 << 61) - 1, 1 << 61, 1 << 62, -(1 << 62), (1 << 63) - 1, -(1 << 63))
SIZES = (0, 1, 3, 40, 56, 57, 62, 63, 64, 70, 120, 8100, 8190)
JUNK = (b"\x80", b"\xff" * 4 + b"\x0f", b"\xff" * 9 + b"\x01", b"\xff" * 12, b"\0", b"\x01", b"\xfe\xff\xff\xff\x0f")


class Numbers(NamedTuple):
    """What a record says of itself, before it is written."""

    attributes: int
    stamp: int
    delta: int
    body: bytes


def record(numbers: Numbers, shorter: int = 0) -> bytes:
    """The bytes of a record; its length may be a lie."""
    data = bytes((numbers.attributes,)) + written(zigzag(numbers.stamp)) + written(zigzag(numbers.delta)) + numbers.body
    return written(zigzag(len(data) - shorter)) + data


def batch(base: int, section: bytes, records: int, last_delta: int, **others: int) -> bytes:
    """A batch without codec around a section; its CRC is right."""
    fields = {"attributes": 0, "base_timestamp": NOW, "max_timestamp": NOW, "leader_epoch": LEADER_EPOCH} | others
    header = BatchHeader(
        base_offset=base,
        length=HEADER_SIZE + len(section) - LENGTH_OVERHEAD,
        magic=2,
        crc=0,
        last_offset_delta=last_delta,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        records=records,
        **fields,
    )
    data = bytearray(HEADER.pack(*header) + section)
    struct.pack_into(">I", data, 17, crc32c(data[ATTRIBUTES_AT:]))
    return bytes(data)


def altered_batches(source: random.Random) -> list[tuple[BatchHeader, memoryview]]:
    """One to three batches that follow each other; three in four times something is wrong with one of them."""
    base = source.choice((0, 5, 1 << 31, (1 << 62) - 3, source.randrange(1 << 40)))
    made = []
    for _ in range(source.choice((1, 1, 1, 2, 3))):
        data, base = _one(source, base, source.choice(("sound", "lies", "bytes", "bytes")))
        made.append(data)
    log = memoryview(b"".join(made))
    try:
        return [(header, log[position : position + header.size]) for position, header in batch_headers(log)]
    except ValueError:
        return altered_batches(source)


def _one(source: random.Random, base: int, damage: str) -> tuple[bytes, int]:
    count = source.choice((0, 1, 2, 3, 7, 20, 70))
    delta, records, base_timestamp = 0, [], NOW
    gaps = source.random() < 0.5
    if source.random() < 0.1:
        base_timestamp = source.choice(EXTREMES)
    for _ in range(count):
        delta += source.choice((0, 0, 1, 3, 64, 9000)) if gaps else 0
        stamp = source.randrange(1 << source.choice((0, 3, 6, 7, 13, 14, 20, 28, 36)))
        if source.random() < 0.02:
            stamp = source.choice(EXTREMES)
        body = source.randbytes(source.choice(SIZES) if source.random() < 0.2 else source.randrange(80))
        records.append(Numbers(source.choice((0, 0, 0, 1, 255)), stamp, delta, body))
        delta += 1
    last = delta - 1 + (source.randrange(4) if gaps else 0)
    announced = count
    if damage == "lies" and records:
        match source.randrange(5):
            case 0:
                announced += source.choice((-1, 1, 1 << 30, -count - 1))
            case 1:
                last -= source.randrange(1, 3)
            case 2:
                at = source.randrange(count)
                lie = source.choice((-1, 0, records[at - 1].delta, 1 << 30, 1 << 31, (1 << 63) - 1))
                records[at] = records[at]._replace(delta=lie)
            case 3:
                source.shuffle(records)
            case 4:
                base = max(base - source.randrange(3), 0)
    section = b"".join(
        record(numbers, source.choice((0, 1, -1, 2, 1 << 20)) if damage == "lies" and not source.randrange(9) else 0)
        for numbers in records
    )
    if damage == "bytes":
        section = _changed(source, section)
    stamped = TIMESTAMP_TYPE_BIT if source.random() < 0.1 else 0
    last = max(last, 0)
    epoch = source.choice((LEADER_EPOCH, LEADER_EPOCH + 1))
    latest = source.choice((NOW, *EXTREMES)) if source.random() < 0.1 else NOW + 7
    data = batch(
        base,
        section,
        announced,
        last,
        attributes=stamped,
        base_timestamp=base_timestamp,
        max_timestamp=latest,
        leader_epoch=epoch,
    )
    return data, base + last + 1


def _changed(source: random.Random, section: bytes) -> bytes:
    out = bytearray(section)
    for _ in range(source.randrange(1, 4)):
        at = source.randrange(len(out) + 1)
        match source.randrange(5):
            case 0:
                out[at : at + 1] = source.randbytes(1)
            case 1:
                out[at:at] = source.choice(JUNK)
            case 2:
                del out[at : at + source.randrange(1, 9)]
            case 3:
                del out[at:]
            case 4:
                out[at : at + 8] = source.randbytes(source.randrange(12))
    return bytes(out)
