"""The measurer's own eyes: records walked over as kafka-python writes them, and digests that see every change."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from bench.records import digest, timestamps, without_aborted
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatchBuilder

from sparkmirror.kafka.wire.batches import CODECS, CONTROL_BIT, TRANSACTIONAL_BIT, BatchHeader, batch_headers

modest = settings(max_examples=60, deadline=None)
ABORT, COMMIT = 0, 1


class Written(NamedTuple):
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


records = st.builds(
    Written,
    st.integers(0, 2**41),
    st.none() | st.binary(max_size=40),
    st.none() | st.binary(max_size=400),
    st.lists(st.tuples(st.text(max_size=8), st.none() | st.binary(max_size=20)), max_size=3),
)
codecs = st.sampled_from(["none", "lz4", "zstd"])


def batch(written: list[Written], codec: str = "none", base_offset: int = 0) -> tuple[BatchHeader, memoryview]:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=CODECS.index(codec),
        is_transactional=False,
        producer_id=7,
        producer_epoch=0,
        base_sequence=0,
        batch_size=1 << 20,
    )
    for number, record in enumerate(written):
        builder.append(number, record.timestamp_ms, record.key, record.value, record.headers)
    data = memoryview(bytearray(builder.build()))
    struct.pack_into(">q", data, 0, base_offset)
    ((_, header),) = batch_headers(data)
    return header, data


def of_producer(producer_id: int, base_offset: int, marker: int | None = None) -> tuple[BatchHeader, memoryview]:
    """A transactional batch of one record, or the marker that ends the transaction."""
    key = None if marker is None else struct.pack(">hh", 0, marker)
    header, data = batch([Written(0, key, b"", [])], base_offset=base_offset)
    attributes = TRANSACTIONAL_BIT | (0 if marker is None else CONTROL_BIT)
    return header._replace(producer_id=producer_id, attributes=attributes), data


@given(st.lists(records, min_size=1, max_size=20), codecs)
@modest
def test_timestamps_are_those_written(written: list[Written], codec: str) -> None:
    assert timestamps(*batch(written, codec)) == [record.timestamp_ms for record in written]


@given(st.lists(records, min_size=1, max_size=20), codecs, codecs, st.integers(0, 20))
@modest
def test_the_digest_does_not_depend_on_batches_codecs_or_offsets(
    written: list[Written], codec: str, other: str, cut: int
) -> None:
    whole = digest(iter([batch(written, codec)]))
    parts = [part for part in (written[:cut], written[cut:]) if part]
    pieces = digest(batch(part, other, 1000 + 500 * number) for number, part in enumerate(parts))
    assert (whole.records, whole.digest) == (pieces.records, pieces.digest) == (len(written), whole.digest)
    assert whole.offsets == len(written)
    assert pieces.offsets == (len(written) if len(parts) == 1 else 500 + len(parts[1]))


def test_codecs_and_records_of_a_log_with_several() -> None:
    long = [Written(5, b"key", b"value" * 1000, [])]
    found = digest(iter([batch(long, "zstd"), batch(long, "lz4", 1), batch(long, "lz4", 2)]))
    assert found.codecs == ("lz4", "zstd")
    assert (found.records, found.offsets) == (3, 3)


@given(st.lists(records, min_size=1, max_size=8), st.lists(records, min_size=1, max_size=8))
@modest
def test_the_digest_sees_every_difference(some: list[Written], others: list[Written]) -> None:
    assume(some != others)
    assert digest(iter([batch(some)])).digest != digest(iter([batch(others)])).digest


def test_what_was_aborted_is_left_out_and_what_another_producer_did_is_not() -> None:
    log = [
        of_producer(1, 0),
        of_producer(2, 1),
        of_producer(1, 2, ABORT),
        of_producer(1, 3),
        of_producer(2, 4, COMMIT),
        of_producer(1, 5, COMMIT),
        batch([Written(0, None, b"plain", [])], base_offset=6),
    ]

    def read() -> Iterator[tuple[BatchHeader, memoryview]]:
        return iter(log)

    assert [header.base_offset for header, _ in without_aborted(read)] == [1, 3, 6]
