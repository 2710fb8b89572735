"""Parts of a batch query, and the rows of each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from sparkmirror.source.lost_records import lose_offsets
from sparkmirror.source.range_cuts import cut
from sparkmirror.source.read_options import OF_FLOWS, ReadOptions
from sparkmirror.source.source_logs import OffsetRange, SourceLogs

if TYPE_CHECKING:
    from sparkmirror.source.flow_tables import FlowPart

    Part = OffsetRange | FlowPart


def planned(options: ReadOptions) -> list[Part]:
    """Return the parts of a batch query, for a task each.

    Raises `ConfigError` and `ClusterUnreachable`.
    """
    if options.table in OF_FLOWS:
        from sparkmirror.source.flow_tables import parts

        return list(parts(options))
    logs = SourceLogs(options)
    try:
        partitions = logs.partitions()
        starts, ends = logs.placed(options.starting, partitions), logs.placed(options.ending, partitions)
        kept = logs.earliest(partitions) if options.starting.offsets else starts
        ranges = []
        for at in partitions:
            if starts[at] < kept[at]:
                lose_offsets(options, *at, starts[at], kept[at])
            ranges.append(logs.range_of(at, max(starts[at], kept[at]), ends[at]))
        return list(cut(ranges, options.fewest_ranges, options.most_per_range))
    finally:
        logs.close()


def part_rows(options: ReadOptions, part: Part, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield a part's rows, with the schema's columns.

    Raises `RecordsGone` and `ClusterUnreachable`, and ValueError for a damaged batch.
    """
    if isinstance(part, OffsetRange):
        from sparkmirror.source import log_rows

        return log_rows.rows(options, part, schema)
    from sparkmirror.source import flow_tables

    return flow_tables.rows(options, part, schema)
