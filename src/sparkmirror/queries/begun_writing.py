"""Write a begun micro-batch after the source has lost some of the records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from pyspark.sql import DataFrame

from sparkmirror.errors import RowsChanged, RowsInDoubt
from sparkmirror.kafka.wire.splice import Run
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.queries.gone_records import GoneRecords
from sparkmirror.sink.agreement import MicroBatch
from sparkmirror.sink.order import AppendedRange, GoneRows
from sparkmirror.sink.source_offsets import packed
from sparkmirror.sink.writing import BatchWriter


class BegunBatch(NamedTuple):
    """A micro-batch that an earlier attempt may have begun to write."""

    batch: MicroBatch
    gone: Sequence[GoneRecords]
    compacted: Mapping[TopicPartition, int]
    """Target partitions whose source is compacted, with the numbers of offsets."""
    copied: Mapping[TopicPartition, int]
    """Numbers of records that earlier attempts appended, where they were counted."""
    is_exact: bool
    """True if each row has a record, in order, and no other records are left out."""

    halts: bool = False
    """True if a loss must not be stepped over."""
    lost: Mapping[TopicPartition, int] = MappingProxyType({})
    """Target partitions with numbers of gone offsets that are told as lost."""

    def runs(
        self, told: Mapping[TopicPartition, bytes], appended: Iterable[AppendedRange]
    ) -> dict[TopicPartition, bytes]:
        """Return the rows' source offsets; none where gone rows have unknown offsets."""
        of_target = {each.target: each for each in self.gone}
        runs = dict(told)
        for each in appended:
            at = each.topic, each.partition
            if each.gone:
                gone = None if at in self.compacted else of_target.get(at)
                is_each = gone is not None and gone.most == each.gone
                runs[at] = packed([Run(gone.begin, gone.most)]) + runs.get(at, b"") if gone and is_each else b""
        return runs


def earlier_records(
    writer: BatchWriter, batch: MicroBatch, *, lacks: bool, is_taken_up: bool, is_compacted: bool
) -> dict[TopicPartition, int]:
    """Return the numbers of earlier attempts' records, where they matter.

    Attempts make different rows if the source `lacks` records, or a compacted one may lack some by now. Then earlier
    attempts are fenced first. So they are where another process has fenced a batch that is taken up.
    """
    if lacks or (is_taken_up and (is_compacted or writer.is_fenced(batch))):
        return writer.take_up(batch)
    return {}


class BegunWriter:
    """Writer of one micro-batch; `tell` notes losses before later rows are written.

    `tell` gets the gone records, and the number of the micro-batch's records in each target partition. A loss that
    halts raises an error.
    """

    def __init__(
        self, writer: BatchWriter, tell: Callable[[Iterable[GoneRecords], Mapping[TopicPartition, int]], None]
    ) -> None:
        self._writer, self._tell = writer, tell

    def write(self, rows: DataFrame | None, begun: BegunBatch) -> list[AppendedRange]:
        """Append the rows that no earlier attempt has appended, as `BatchWriter.write`."""
        try:
            return self._write(rows, begun, {})
        except RowsChanged as error:
            if not begun.compacted or isinstance(error, RowsInDoubt):
                raise
            if not begun.is_exact:
                raise RowsChanged(
                    f"{error}; or a compacted source topic has dropped records since then: delete the topic at the "
                    "target to have it copied again"
                ) from error
        return self._write(rows, begun, begun.compacted)

    def _write(
        self, rows: DataFrame | None, begun: BegunBatch, compacted: Mapping[TopicPartition, int]
    ) -> list[AppendedRange]:
        writer, batch, gone = self._writer, begun.batch, begun.gone
        leaves = {at: GoneRows(offsets, is_compacted=True) for at, offsets in compacted.items()}
        if begun.is_exact and not compacted:
            # A new row may equal one that was compacted: only rows in the earlier records' order are theirs.
            leaves = dict.fromkeys(begun.compacted, GoneRows(0))
        if not begun.copied:
            self._tell(gone, {})
            return writer.write(rows, batch, leaves, is_ordered=begun.is_exact)
        if gone and not begun.is_exact:
            if begun.halts:
                topic, partition = gone[0].target
                raise RowsChanged(
                    f"{topic}-{partition}: an earlier attempt may have copied some of the records that are gone"
                )
            appended = writer.write(rows, batch)  # rows of records that are gone would be left over
            self._tell(gone, {})
            return appended
        copied = begun.copied
        told = {each.target for each in gone if each.is_decided(copied.get(each.target, 0))}
        self._tell([each for each in gone if each.target in told], copied)
        for each in gone:
            most = each.most - begun.lost.get(each.target, 0)
            most = min(most + compacted.get(each.target, 0), copied.get(each.target, 0))
            leaves[each.target] = GoneRows(most, each.target in told, each.target in compacted)
        leaves = {at: leave._replace(counted=copied.get(at, 0)) for at, leave in leaves.items()}
        appended = writer.write(rows, batch, leaves, is_ordered=begun.is_exact)
        held = {(each.topic, each.partition) for each in appended if each.is_held}
        if not held:
            return appended
        self._tell([each for each in gone if each.target in held], copied)
        leaves |= {at: leaves[at]._replace(is_told=True) for at in held}
        return writer.write(rows, batch, leaves, is_ordered=begun.is_exact)
