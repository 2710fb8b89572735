"""Batches of keys and values: what is compressed says the same to each reader, also to that of release 0.1."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from kafka.record.default_records import DefaultRecordBatch

from sparkmirror.kafka.cluster.entry_batches import entry_batches
from sparkmirror.kafka.wire.batches import batch_headers
from sparkmirror.kafka.wire.pieces import records

AT_MS = 1_700_000_000_000
Entry = tuple[bytes, bytes | None]

LIKE_CLAIMS: list[Entry] = [(b"key-%d" % number, bytes([1, 2] * 100 + [number])) for number in range(9)]
TOMBSTONES: list[Entry] = [(b"key-%d" % number, None) for number in range(100)]
NOISE: list[Entry] = [(b"key", random.Random(1).randbytes(2000))]


def read(batch: memoryview) -> list[Entry]:
    """As this release's `TopicLog` reads it."""
    ((position, header),) = batch_headers(batch)
    assert (position, header.size) == (0, len(batch))
    assert not header.is_corrupt(batch, 0)
    found = list(records(header, batch))
    assert [one.offset for one in found] == list(range(header.last_offset_delta + 1))
    assert {one.timestamp for one in found} == {AT_MS}
    return [(one.key or b"", one.value) for one in found]


def read_by_release_0_1(batch: memoryview) -> list[Entry]:
    """Its `TopicLog` leaves batches to kafka-python."""
    stored = DefaultRecordBatch(bytes(batch))
    assert stored.validate_crc()
    return [(record.key, record.value) for record in stored]


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("entries", [LIKE_CLAIMS, TOMBSTONES, NOISE, LIKE_CLAIMS[:1]])
def test_what_is_written_is_read_by_both_releases(entries: Sequence[Entry], packed: bool) -> None:
    (batch,) = entry_batches(entries, AT_MS, packed=packed)
    assert read(batch) == read_by_release_0_1(batch) == list(entries)


@pytest.mark.parametrize(
    ("entries", "smaller"), [(LIKE_CLAIMS, True), (TOMBSTONES, True), (NOISE, False), (LIKE_CLAIMS[:1], False)]
)
def test_a_batch_is_compressed_where_that_makes_it_smaller(entries: Sequence[Entry], smaller: bool) -> None:
    (plain,) = entry_batches(entries, AT_MS, packed=False)
    (packed,) = entry_batches(entries, AT_MS, packed=True)
    ((_, header),) = batch_headers(packed)
    assert header.codec == ("gzip" if smaller else "none")
    assert (len(packed) < len(plain) / 2) == smaller
    assert smaller or packed == plain


def test_no_batch_is_larger_than_a_broker_takes() -> None:
    entries = [(b"key-%d" % number, bytes(9000)) for number in range(200)]
    batches = list(entry_batches(entries, AT_MS, packed=True))
    assert len(batches) == 4
    assert [one for batch in batches for one in read(batch)] == entries
    assert max(map(len, entry_batches(entries, AT_MS, packed=False))) < 1_000_000
