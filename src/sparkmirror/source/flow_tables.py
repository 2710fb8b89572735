"""Tables about a mirror's flows: offset maps, groups, receipts and losses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from sparkmirror.config import FlowConfig
from sparkmirror.frames.flow_rows import group_rows, loss_rows
from sparkmirror.frames.offset_runs import CopiedPartition, copied_partitions, run_batches
from sparkmirror.frames.receipts import receipt_batches
from sparkmirror.snapshot.status_topic import fresh, read_status
from sparkmirror.source.read_options import ReadOptions
from sparkmirror.source.tables import arrow_schema, declared

STALE_S = 60.0
"""Age in seconds from which a published status is refused.

`sparkmirror status` has the same.
"""


@dataclass(frozen=True, slots=True)
class FlowPart:
    """A part of a table, for one task."""

    flow: FlowConfig
    partitions: tuple[CopiedPartition, ...] = ()
    """Partitions whose offset maps are wanted."""


def parts(options: ReadOptions) -> list[FlowPart]:
    """Return the parts of a table; `minPartitions` cuts offset maps.

    Raises `ClusterUnreachable`.
    """
    if options.table != "offset_map":
        return [FlowPart(flow) for flow in options.flows]
    made = []
    for flow in options.flows:
        wanted = copied_partitions(flow)
        count = max(min(options.fewest_ranges or 1, len(wanted)), 1)
        made += [FlowPart(flow, tuple(wanted[number::count])) for number in range(count)]
    return made


def rows(options: ReadOptions, part: FlowPart, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield a part's rows, with the schema's columns. Raises `ClusterUnreachable`."""
    for batch in _batches(options, part):
        columns = [batch.column(batch.schema.get_field_index(name)) for name in schema.names]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _batches(options: ReadOptions, part: FlowPart) -> Iterator[pa.RecordBatch]:
    flow, table = part.flow, arrow_schema(declared(options))
    if options.table in ("offset_map", "receipts"):
        made = run_batches(flow, part.partitions) if options.table == "offset_map" else receipt_batches(flow)
        for batch in made:
            named = pa.repeat(pa.scalar(flow.name), batch.num_rows)
            yield pa.RecordBatch.from_arrays([named, *batch.columns], names=["flow", *batch.schema.names])
        return
    values = loss_rows(flow) if options.table == "losses" else group_rows(*fresh(flow, read_status(flow), STALE_S))
    if values:
        columns = zip(*values, strict=True)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, table, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=table)
