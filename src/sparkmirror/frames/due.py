"""Records due since a verification's begin and absent at its end, with reasons."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing

from pydantic import Field

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.errors import ClusterUnreachable, SparkMirrorError
from sparkmirror.exact.position.route import PartitionPair
from sparkmirror.frames.listed_offsets import ROLE
from sparkmirror.frames.ranges import RANGE_BYTES, LogPlan
from sparkmirror.frames.report import ReportModel
from sparkmirror.frames.verify_task import Answer, failed
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.range_reader import LogChanged, OffsetBounds, RangeReader
from sparkmirror.kafka.cluster.topic_log import LogUnavailable, TopicLog
from sparkmirror.kafka.wire.batches import MAGIC, BatchHeader
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.pieces import held_pieces
from sparkmirror.kafka.wire.records import NotChanged, RecordChange
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.pump.messages.orders import Receipt
from sparkmirror.pump.messages.receipts import read_reports, receipts_topic
from sparkmirror.pump.transforming import transform_of

NO_PARTITION = "no such topic or partition at the target"
PARKED = "parked"
NOT_COPIED = "not copied yet"
GONE = "the source topic was deleted meanwhile"


class CountOrder(ReportModel):
    """Order to count records at source offsets [first, end).

    Markers do not count, nor, at read_committed, aborted data.
    """

    cluster: ClusterConfig
    log: LogPlan
    partition: int
    read_committed: bool
    first: int
    end: int
    target_topic: str = ""
    transforms: Mapping[str, str] = Field(default_factory=dict)
    """Keys of the flow's Connect transforms, which may drop records."""


def count_records(order_json: str) -> str:
    """Count records by a `CountOrder`, in a Spark task.

    Behind `RANGE_BYTES` an offset counts as a record.
    """
    order = CountOrder.model_validate_json(order_json)
    bounds = OffsetBounds(order.first, order.end)
    topic_id = bytes.fromhex(order.log.topic_id)
    records = read = 0
    change = transform_of(order.transforms, PartitionPair(order.log.topic, order.target_topic, order.partition))
    try:
        with RangeReader(
            order.cluster,
            order.log.topic,
            topic_id,
            order.partition,
            bounds,
            read_committed=order.read_committed,
            compacted=order.log.compacted,
        ) as batches:
            for header, view in batches:
                # An old format's header tells no count.
                is_whole = order.first <= header.base_offset and header.next_offset <= order.end
                if change is None and header.magic == MAGIC and is_whole:
                    records += header.records
                else:
                    records += _kept(order, header, view, change)
                read += len(view)
                if read >= RANGE_BYTES:
                    records += max(order.end - max(header.next_offset, order.first), 0)
                    break
    except SparkMirrorError as error:
        return failed(error)
    except (ValueError, LogChanged, NotChanged):  # whatever the log holds now, the offsets were not copied
        records = order.end - order.first
    return Answer(records=records).model_dump_json()


def _kept(order: CountOrder, header: BatchHeader, view: memoryview, change: RecordChange | None) -> int:
    """Return the number of wanted records in a batch that transforms, if any, leave."""
    kept = 0
    for piece in held_pieces(header, view):
        piece.drop_before(order.first)
        piece.drop_from(order.end)
        if change is not None:
            change(piece, 0)
        kept += len(piece)
    return kept


def parked(flow: FlowConfig) -> Mapping[TopicPartition, str]:
    """Return source partitions that the mirror last reported as parked.

    Each partition comes with the reason. Raises `ClusterUnreachable`.
    """
    newest: dict[TopicPartition, Receipt] = {}
    with closing(ClusterClient(flow.target, ROLE)) as client:
        try:
            entries, _ = TopicLog(client, receipts_topic(flow.source.alias)).read(0, 0)
        except LogUnavailable as error:
            if error.code not in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.TOPIC_AUTHORIZATION_FAILED):
                raise ClusterUnreachable(f"flow {flow.name}: {error}") from error
            return {}
        except ConnectionError as error:
            raise ClusterUnreachable(f"flow {flow.name}: {error}") from error
    for report in read_reports(entries):
        newest |= {(receipt.source_topic, receipt.partition): receipt for receipt in report.receipts}
    return {partition: receipt.reason for partition, receipt in newest.items() if receipt.state == "parked"}
