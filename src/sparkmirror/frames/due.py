"""What was at the source when a verification began and is not at the target at its end: how many records, and why."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing

from sparkmirror.cluster.client import ClusterClient
from sparkmirror.cluster.topic_log import LogUnavailable, TopicLog
from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.frames.claims import TOPIC_NOT_AUTHORIZED, UNKNOWN_TOPIC
from sparkmirror.frames.compare import OffsetBounds
from sparkmirror.frames.listed_offsets import ROLE
from sparkmirror.frames.log_reader import LogChanged, RangeReader
from sparkmirror.frames.ranges import RANGE_BYTES, LogPlan
from sparkmirror.frames.report import ReportModel
from sparkmirror.frames.task import Answer
from sparkmirror.messages.orders import Receipt
from sparkmirror.messages.receipts import read_reports, receipts_topic
from sparkmirror.wire.batches import MAGIC
from sparkmirror.wire.topic_partition import TopicPartition

NO_PARTITION = "no such topic or partition at the target"
PARKED = "parked"
NOT_COPIED = "not copied yet"
GONE = "the source topic was deleted meanwhile"


class CountOrder(ReportModel):
    """Count the records of source offsets [first, end): markers and, at read_committed, aborted data are none."""

    cluster: ClusterConfig
    log: LogPlan
    partition: int
    read_committed: bool
    first: int
    end: int


def count_records(order_json: str) -> str:
    """Count what a `CountOrder` says; behind `RANGE_BYTES` an offset counts as a record. Runs in a Spark task."""
    order = CountOrder.model_validate_json(order_json)
    bounds = OffsetBounds(order.first, order.end)
    topic_id = bytes.fromhex(order.log.topic_id)
    records = read = 0
    try:
        with RangeReader(
            order.cluster, order.log.topic, topic_id, order.partition, bounds, read_committed=order.read_committed
        ) as batches:
            for header, view in batches:
                if header.magic != MAGIC:
                    records += 1
                else:
                    inside = min(header.next_offset, order.end) - max(header.base_offset, order.first)
                    records += min(header.records, inside)
                read += len(view)
                if read >= RANGE_BYTES:
                    records += max(order.end - max(header.next_offset, order.first), 0)
                    break
    except ClusterUnreachable as error:
        return Answer(failed=str(error)).model_dump_json()
    except (ValueError, LogChanged):  # whatever is there now, it was not copied
        records = order.end - order.first
    return Answer(records=records).model_dump_json()


def parked(flow: FlowConfig) -> Mapping[TopicPartition, str]:
    """Source partitions that the mirror has said last that it can't copy now, and why. Raises `ClusterUnreachable`."""
    newest: dict[TopicPartition, Receipt] = {}
    with closing(ClusterClient(flow.target, ROLE)) as client:
        try:
            entries, _ = TopicLog(client, receipts_topic(flow.source.alias)).read(0, 0)
        except LogUnavailable as error:
            if error.code not in (UNKNOWN_TOPIC, TOPIC_NOT_AUTHORIZED):
                raise ClusterUnreachable(f"flow {flow.name}: {error}") from error
            return {}
        except ConnectionError as error:
            raise ClusterUnreachable(f"flow {flow.name}: {error}") from error
    for report in read_reports(entries):
        newest |= {(one.source_topic, one.partition): one for one in report.receipts}
    return {where: one.reason for where, one in newest.items() if one.state == "parked"}
