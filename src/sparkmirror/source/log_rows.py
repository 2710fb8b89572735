"""Rows of a range of offsets: its records, or its batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from sparkmirror.kafka.cluster.log_range import LogBatch
from sparkmirror.kafka.cluster.range_reader import LogChanged, OffsetBounds, RangeReader
from sparkmirror.kafka.wire.batches import CODECS, MAGIC, TIMESTAMP_TYPE_BIT, TRANSACTIONAL_BIT
from sparkmirror.kafka.wire.old_formats import codec_of
from sparkmirror.source import read_options
from sparkmirror.source.lost_records import lose, lose_offsets
from sparkmirror.source.read_options import ReadOptions
from sparkmirror.source.source_logs import ROLE, OffsetRange
from sparkmirror.source.tables import BATCHES, arrow_schema

_BATCHES_AT_ONCE = 4096
_BATCHES = arrow_schema(BATCHES)


def rows(options: ReadOptions, asked: OffsetRange, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a range, with the schema's columns.

    One answer is fetched while another is used. Raises `RecordsGone` and `ClusterUnreachable`, and ValueError for a
    damaged batch.
    """
    reader = RangeReader(
        options.source,
        asked.topic,
        asked.topic_id,
        asked.partition,
        OffsetBounds(asked.first, asked.end),
        read_committed=options.read_committed,
        compacted=asked.compacted,
        role=ROLE,
        epochs=asked.epochs,
    )
    with reader:
        batches = _complete(reader, options, asked)
        if options.table == read_options.BATCHES:
            made = _described(batches, asked, schema.names)
        else:
            from sparkmirror.arrow.decoding import decoded  # it brings numba, which planning does not need

            made = decoded(batches, asked.topic, asked.partition, asked.first, asked.end, schema.names)
        for batch in made:
            yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)


def _complete(reader: RangeReader, options: ReadOptions, asked: OffsetRange) -> Iterator[LogBatch]:
    """Yield a range's batches; see that none is missing."""
    told = 0
    try:
        for batch in reader:
            told = _see_what_expired(reader, options, asked, told)
            yield batch
        _see_what_expired(reader, options, asked, told)
    except LogChanged as error:
        lose(options, str(error))


def _see_what_expired(reader: RangeReader, options: ReadOptions, asked: OffsetRange, told: int) -> int:
    for first, end in reader.expired[told:]:
        lose_offsets(options, asked.topic, asked.partition, first, end)
    return len(reader.expired)


def _described(batches: Iterable[LogBatch], asked: OffsetRange, names: list[str]) -> Iterator[pa.RecordBatch]:
    """Yield a row for each batch that begins in the range, with these columns."""
    values: list[tuple[object, ...]] = []
    for header, view in batches:
        if not asked.first <= header.base_offset < asked.end:
            continue
        old = header.magic != MAGIC
        stamps = (None, None) if old else (header.base_timestamp * 1000, header.max_timestamp * 1000)
        codec = CODECS[codec_of(view)] if old else header.codec
        transactional = bool(header.attributes & TRANSACTIONAL_BIT)
        producer = (header.producer_id, header.producer_epoch, header.base_sequence, transactional)
        values.append(
            (
                *(asked.topic, asked.partition, header.base_offset, header.next_offset - 1),
                *(None if old else header.records, header.size, codec),
                *(None if old else int(bool(header.attributes & TIMESTAMP_TYPE_BIT)), *stamps),
                *((None,) * len(producer) if old else producer),
                header.magic,
            )
        )
        if len(values) == _BATCHES_AT_ONCE:
            yield _table(values, names)
            values = []
    if values:
        yield _table(values, names)


def _table(values: list[tuple[object, ...]], names: list[str]) -> pa.RecordBatch:
    columns = dict(zip(_BATCHES.names, zip(*values, strict=True), strict=True))
    fields = [_BATCHES.field(name) for name in names]
    return pa.RecordBatch.from_arrays([pa.array(columns[field.name], field.type) for field in fields], names=names)
