"""A micro-batch written by the driver: agree, append in tasks, audit."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterator, Mapping

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from sparkmirror import errors
from sparkmirror.clock import wall_ms
from sparkmirror.config import ClusterConfig
from sparkmirror.config.spark_guards import guard_secrets
from sparkmirror.errors import AttemptFenced, ClusterTrouble, ClusterUnreachable, SetupError, SparkMirrorError
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.wire.codecs import Codec
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.mirror.engine.session import in_one_line, settings_of
from sparkmirror.sink.agreement import MicroBatch, SinkAgreement
from sparkmirror.sink.appender import TaskAppender
from sparkmirror.sink.audit import audit
from sparkmirror.sink.fencing import counts_at_rest
from sparkmirror.sink.gathering import SOURCE_OFFSET, gathered, record_columns, tell_topics
from sparkmirror.sink.order import AppendedRange, AppendOrder, GoneRows
from sparkmirror.sink.preparing import ASK_MS, prepared
from sparkmirror.sink.source_offsets import SourceOffsets

RESULT = (
    "topic string, partition int, records long, first_offset long, last_offset long, earlier long, gone long, "
    "is_held boolean, runs binary"
)
_ROLE = "sparkmirror-sink"
_PYTHONS = re.compile(r"^\s*([\w.]+(?:Error|Exception): .+)$", re.MULTILINE)
_OURS = re.compile(r"sparkmirror\.errors\.(\w+): (.*)")


class BatchWriter:
    """Writer of a query's micro-batches to one cluster, in the driver."""

    def __init__(
        self, cluster: ClusterConfig, topic: str, codec: Codec, *, is_gathered: bool, in_order: bool = False
    ) -> None:
        """Prepare a writer.

        With `in_order` rows keep the order of the column `offset`.
        """
        self._cluster, self._topic, self._codec, self._is_gathered = cluster, topic, codec, is_gathered
        self._more = (SOURCE_OFFSET,) if in_order else ()
        self._begins: Mapping[TopicPartition, int] = {}
        self._fence = -1
        """Offset of this process's newest fence in the control topic."""
        self._state_ms = self._asked_ms = 0
        self._runs: dict[TopicPartition, bytes] = {}
        self._newest: MicroBatch | None = None
        """Newest batch that this process has written."""
        self._newest_ms = self._first_attempt_ms = 0
        self._is_repeated = False

    def expect(self, begins: Mapping[TopicPartition, int], first_attempt_ms: int, *, is_repeated: bool) -> None:
        """Take what is known of the next batch's earlier attempts.

        They have no records before the target offsets `begins`, and were not before `first_attempt_ms`; there are none
        unless `is_repeated`.
        """
        self._begins, self._first_attempt_ms, self._is_repeated = begins, first_attempt_ms, is_repeated

    @property
    def runs(self) -> Mapping[TopicPartition, bytes]:
        """Source offsets of the last batch's rows, as `SourceOffsets.runs` has them."""
        return self._runs

    def write(
        self,
        frame: DataFrame | None,
        batch: MicroBatch,
        gone: Mapping[TopicPartition, GoneRows] | None = None,
        *,
        is_ordered: bool = False,
    ) -> list[AppendedRange]:
        """Append rows that no earlier attempt has appended; return all records' places.

        With `is_ordered` each attempt has a partition's rows in the same order. Without a frame there are no rows:
        earlier attempts must have had none either, but for `gone` rows. Raises `RowsRefused`, `RowsChanged`,
        `AttemptFenced`, `UnfitTarget`, `ClusterUnreachable` and `SetupError`.
        """
        began_ms = wall_ms()
        rows = None if frame is None else self._rows(frame)
        self._runs = {}
        with self._asking() as client:
            order = self._order(client, batch)._replace(gone=gone, is_ordered=is_ordered)
            ranges: list[AppendedRange] = []
            if rows is not None:
                if not self._is_gathered:
                    rows = gathered(rows, order, max(rows.sparkSession.sparkContext.defaultParallelism, 1))
                ranges, self._runs = _appended(rows, order)
            told = {(each.topic, each.partition) for each in ranges}
            ranges += _known(order, (gone or {}).keys() - told)
            audit(client, order, ranges, self._topics(client, batch), in_logs=rows is None or bool(gone))
        if any(each.is_fresh for each in ranges):  # else the next batch may have been tried long ago
            self._newest, self._newest_ms = batch, began_ms
        return ranges

    def _rows(self, frame: DataFrame) -> DataFrame:
        rows = record_columns(frame, self._topic, self._more)
        guard_secrets(self._cluster, settings_of(frame.sparkSession), "the sink")
        return rows

    def is_fenced(self, batch: MicroBatch) -> bool:
        """Tell whether another process has fenced a batch's attempts."""
        with self._asking() as client:
            return self._agreement(client, batch).newest_fence(batch.number) > self._fence

    def take_up(self, batch: MicroBatch) -> dict[TopicPartition, int]:
        """Fence a batch's earlier attempts, and wait until they append nothing more.

        Return the numbers of their records, by partition. Takes 8 s or more. Raises as `counts_at_rest`.
        """
        with self._asking() as client:
            agreement = self._agreement(client, batch)
            self._fence = agreement.fence(batch.number)
            topics = (lambda: [self._topic]) if self._topic else agreement.topics
            return counts_at_rest(client, self._order(client, batch), topics)

    def topics(self, batch: MicroBatch) -> list[str]:
        """Return the topics with rows of the batch's query."""
        with self._asking() as client:
            return self._topics(client, batch)

    def _topics(self, client: ClusterClient, batch: MicroBatch) -> list[str]:
        return [self._topic] if self._topic else self._agreement(client, batch).topics()

    @staticmethod
    def _agreement(client: ClusterClient, batch: MicroBatch) -> SinkAgreement:
        return SinkAgreement(client, batch.query, batch.generation)

    @contextlib.contextmanager
    def _asking(self) -> Iterator[ClusterClient]:
        with contextlib.closing(ClusterClient(self._cluster, _ROLE)) as client:
            try:
                if wall_ms() - self._asked_ms > ASK_MS:
                    self._state_ms, self._asked_ms = prepared(client), wall_ms()
                yield client
            except ClusterTrouble as error:
                raise ClusterUnreachable(f"cluster {self._cluster.alias}: {error}") from error

    def _order(self, client: ClusterClient, batch: MicroBatch) -> AppendOrder:
        agreement = self._agreement(client, batch)
        if agreement.newest_fence(batch.number) > self._fence:
            raise AttemptFenced(f"another process has taken up batch {batch.number} of the query")
        agreed_to = agreement.read_to
        producer = agreement.producer()  # if it proposes one, it may read a newer fence: tasks must see that
        return AppendOrder(
            cluster=self._cluster,
            batch=batch,
            producer_id=producer.producer_id,
            codec=self._codec,
            topic=self._topic,
            state_ms=self._state_ms,
            first_attempt_ms=max(
                producer.created_ms, self._first_attempt_ms, self._newest_ms if self._follows(batch) else 0
            ),
            is_repeated=self._is_repeated,
            begins=self._begins,
            agreed_to=agreed_to,
        )

    def _follows(self, batch: MicroBatch) -> bool:
        """True if this process wrote the batch before, so no attempt is older."""
        return self._newest is not None and self._newest == MicroBatch(batch.query, batch.number - 1)


def _appended(rows: DataFrame, order: AppendOrder) -> tuple[list[AppendedRange], dict[TopicPartition, bytes]]:
    def append(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        appender, offsets = TaskAppender(order), SourceOffsets()
        try:
            for batch in batches:
                if batch.num_rows:
                    # Where rows have their places already, nothing else has asked for their topics.
                    tell_topics(order, () if order.topic else batch.column("topic").unique().to_pylist())
                    appender.take(offsets.without(batch))
            ranges = appender.finish()
        finally:
            appender.close()
        if ranges:
            columns = [*zip(*ranges, strict=True), [offsets.runs(each[:2]) for each in ranges]]
            names = [column.split()[0] for column in RESULT.split(", ")]
            types = [pa.string(), pa.int32(), *[pa.int64()] * 5, pa.bool_(), pa.binary()]
            arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, names=names)

    try:
        results = [tuple(row) for row in rows.mapInArrow(append, RESULT).collect()]
    except PySparkException as error:
        raise _told(error) from error
    return [AppendedRange._make(row[:-1]) for row in results], {row[:2]: bytes(row[-1]) for row in results}


def _known(order: AppendOrder, partitions: Collection[TopicPartition]) -> list[AppendedRange]:
    """Return the batch's records in partitions without rows now."""
    appender = TaskAppender(order)
    try:
        appender.expect(partitions)
        return appender.finish()
    finally:
        appender.close()


def _told(error: Exception) -> SparkMirrorError:
    """Return a task's own error, or one line on Spark's."""
    for name, words in _OURS.findall(str(error))[-1:]:
        kind = getattr(errors, name, None)
        if isinstance(kind, type) and issubclass(kind, SparkMirrorError):
            return kind.of_text(words)
    causes = _PYTHONS.findall(str(error))
    return SetupError(f"Spark could not write the batch: {causes[-1] if causes else in_one_line(error)}")
