"""Code for Spark tasks: compare one range, or look through one part of a log.

Orders and answers are JSON.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa
from pydantic import Field
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

from sparkmirror.config import ClusterConfig
from sparkmirror.errors import ConfigError, SetupError, SparkMirrorError
from sparkmirror.exact.position.route import PartitionPair
from sparkmirror.frames.judge import KeysSeen
from sparkmirror.frames.ranges import LogPlan, RangePlan
from sparkmirror.frames.report import RangeReport, ReportModel
from sparkmirror.frames.stream_comparison import Comparer, content_digest, key_digest
from sparkmirror.kafka.cluster.range_reader import LogChanged, OffsetBounds, RangeReader
from sparkmirror.kafka.wire.pieces import held_pieces, readable_pieces, shorten
from sparkmirror.kafka.wire.records import NotChanged
from sparkmirror.mirror.engine.session import in_one_line
from sparkmirror.pump.transforming import transform_of

ANSWER = "answer string"


class CompareOrder(ReportModel):
    """Order to compare one range."""

    source_cluster: ClusterConfig
    target_cluster: ClusterConfig
    source: LogPlan
    target: LogPlan
    partition: int
    read_committed: bool
    target_read_committed: bool
    """True if the target has transactions of its own, from turns of the opposite flow."""
    timestamps: bool
    due_to: int | None
    """Source end at the verification's begin, if there is no map."""
    range: RangePlan
    transforms: Mapping[str, str] = Field(default_factory=dict)
    """Keys of the flow's Connect transforms."""

    @property
    def route(self) -> PartitionPair:
        return PartitionPair(self.source.topic, self.target.topic, self.partition)


class LookOrder(ReportModel):
    """Order to look in one log's offsets [first, end) for wanted keys and contents."""

    cluster: ClusterConfig
    log: LogPlan
    partition: int
    read_committed: bool
    timestamps: bool
    first: int
    end: int
    wanted: int
    """Number of the `Wanted` keys and contents."""
    keys_only: bool
    target_topic: str
    transforms: Mapping[str, str] = Field(default_factory=dict)
    """Keys of the flow's Connect transforms, for the source's log."""


class Wanted(ReportModel):
    """Digests to look for."""

    keys: frozenset[int]
    contents: frozenset[str]


class Answer(ReportModel):
    """Result from a task: a range's report, findings, counts, or a failure's reason.

    A failure's reason is one line.
    """

    report: RangeReport | None = None
    newest: dict[int, int] = Field(default_factory=dict)
    tombstones: dict[int, tuple[int, int]] = Field(default_factory=dict)
    contents: dict[str, int] = Field(default_factory=dict)
    records: int = 0
    """Number of counted records."""
    changed: str = ""
    """Reason why a log could not be looked through to its planned end."""
    failed: str = ""

    def seen(self) -> KeysSeen:
        """Return the findings of a look."""
        return KeysSeen(dict(self.newest), dict(self.tombstones), dict(self.contents))


def run_tasks(spark: SparkSession, orders: Sequence[str], body: Callable[[str], str]) -> list[Answer]:
    """Run one Spark job with a task for each order; answers come in the same order.

    Failed answers are included. Raises `SetupError` if Spark fails: an executor may have been killed, or lack
    sparkmirror, or the answers may be larger than spark.driver.maxResultSize.
    """
    count = len(orders)
    numbered = dict(enumerate(orders))

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from _run(numbered, body, batches)

    try:
        rows = spark.range(0, count, 1, count).mapInArrow(run, "task long, " + ANSWER).collect()
    except Exception as error:  # Spark's own, Py4J's, and those of a JVM that has ended
        raise SetupError(f"Spark failed to run verify's tasks: {_reason(error)}") from error
    return [Answer.model_validate_json(row.answer) for row in sorted(rows, key=lambda row: int(row.task))]


def _reason(error: Exception) -> str:
    """Return Spark's reason in one line.

    The reason for an exception in a task's Python is in its traceback's last line.
    """
    first = in_one_line(error)
    if not isinstance(error, PythonException):
        return first
    last = [line for line in str(error).splitlines() if line[:1].strip()][-1:]
    return " ".join([first, *last])


def failed(error: SparkMirrorError) -> str:
    """Return a task's answer if it can't do its order, as JSON.

    The driver has read the same configuration without a mistake, so a mistake comes with the executor's host.
    """
    reason = "; ".join(str(error).splitlines())
    if isinstance(error, ConfigError):
        reason = f"on the executor's host {socket.gethostname()}: {reason}"
    return Answer(failed=reason).model_dump_json()


def _run(
    orders: Mapping[int, str], body: Callable[[str], str], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for task in batch.column(0).to_pylist():
            yield pa.RecordBatch.from_pydict({"task": [task], "answer": [body(orders[task])]})


def compare_range(order_json: str) -> str:
    order = CompareOrder.model_validate_json(order_json)
    span = order.range
    ours = OffsetBounds(span.first_upstream, span.end_upstream)
    theirs = OffsetBounds(span.first_downstream, span.end_downstream)
    source = _reader(order.source_cluster, order.source, order.partition, ours, order.read_committed)
    target = _reader(order.target_cluster, order.target, order.partition, theirs, order.target_read_committed)
    try:
        with source, target:
            comparison = Comparer(
                source,
                target,
                ours,
                theirs,
                source_expired=source.expired,
                target_expired=target.expired,
                timestamps=order.timestamps,
                cleaned=order.source.compacted or order.target.compacted,
                due_to=order.due_to,
                change=transform_of(order.transforms, order.route),
            ).compare()
    except SparkMirrorError as error:
        return failed(error)
    except (ValueError, LogChanged, NotChanged) as error:
        unknown = max(ours.end - ours.first, 1) if isinstance(error, LogChanged) else 1
        report = RangeReport(
            range=span.range, records=0, bytes=0, whole_batches=0, not_listed=unknown, damage=str(error)
        )
        return Answer(report=report).model_dump_json()
    report = RangeReport(
        range=span.range,
        records=comparison.records,
        bytes=comparison.bytes,
        whole_batches=comparison.whole_batches,
        expired=comparison.expired,
        unmatched=tuple(comparison.unmatched),
        not_listed=comparison.not_listed,
        equal_to=comparison.equal_to,
        behind=comparison.behind,
    )
    return Answer(report=report).model_dump_json()


def look(wanted: Mapping[int, Wanted], order_json: str) -> str:
    order = LookOrder.model_validate_json(order_json)
    bounds = OffsetBounds(order.first, order.end)
    seen = KeysSeen()
    keys = wanted[order.wanted].keys
    contents = frozenset() if order.keys_only else wanted[order.wanted].contents
    change = transform_of(order.transforms, PartitionPair(order.log.topic, order.target_topic, order.partition))
    try:
        with _reader(order.cluster, order.log, order.partition, bounds, order.read_committed) as batches:
            for header, view in batches:
                for piece in (readable_pieces if change is None else held_pieces)(header, view):
                    if change is not None:
                        change(piece, 0)
                        shorten(piece)
                    for offset, timestamp, body in zip(piece.offsets, piece.timestamps, piece.bodies, strict=True):
                        if bounds.first <= offset < bounds.end:
                            _see(seen, keys, contents, offset, timestamp, body, order.timestamps)
    except SparkMirrorError as error:
        return failed(error)
    except LogChanged as error:
        return Answer(changed=str(error)).model_dump_json()
    except (ValueError, NotChanged):  # a damaged batch, or a record that no transform can change: reported before
        pass
    return Answer(newest=seen.newest, tombstones=seen.tombstones, contents=seen.contents).model_dump_json()


def _see(
    seen: KeysSeen,
    keys: frozenset[int],
    contents: frozenset[str],
    offset: int,
    timestamp: int,
    body: bytes,
    timestamps: bool,
) -> None:
    if keys:
        key, tombstone = key_digest(body)
        if key in keys:
            seen.newest[key] = offset
            if tombstone:
                seen.tombstones[key] = offset, timestamp
    if contents:
        content = content_digest(body, timestamp if timestamps else None)
        if content in contents:
            seen.contents.setdefault(content, offset)


def _reader(
    cluster: ClusterConfig, log: LogPlan, partition: int, bounds: OffsetBounds, read_committed: bool
) -> RangeReader:
    return RangeReader(
        cluster,
        log.topic,
        bytes.fromhex(log.topic_id),
        partition,
        bounds,
        read_committed=read_committed,
        compacted=log.compacted,
    )
