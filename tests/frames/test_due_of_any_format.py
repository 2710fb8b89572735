"""The count of what was not copied yet: records, whatever the batches are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.support.built import Content, source_batches

from sparkmirror.config import ClusterConfig
from sparkmirror.config.model import REVEAL
from sparkmirror.frames import due
from sparkmirror.frames.due import CountOrder, count_records
from sparkmirror.frames.ranges import LogPlan
from sparkmirror.frames.verify_task import Answer
from sparkmirror.kafka.cluster.log_range import LogBatch
from sparkmirror.kafka.wire.pieces import RawRecord
from sparkmirror.kafka.wire.unpacking import PIECE_BYTES

GZIP = 1
WITHOUT_TOMBSTONES = {
    "transforms": "drop",
    "transforms.drop.type": "Filter",
    "transforms.drop.predicate": "deleted",
    "predicates": "deleted",
    "predicates.deleted.type": "RecordIsTombstone",
}


def counted(
    monkeypatch: pytest.MonkeyPatch,
    contents: list[Content],
    first: int,
    end: int,
    transforms: dict[str, str] | None = None,
) -> int:
    """The records at these offsets of a log with these batches."""

    @contextmanager
    def reader(*_: object, **__: object) -> Iterator[Iterator[LogBatch]]:
        yield (LogBatch(*one) for one in source_batches(contents))

    monkeypatch.setattr(due, "RangeReader", reader)
    order = CountOrder(
        cluster=ClusterConfig(alias="A", bootstrap_servers=("127.0.0.1:1",)),
        log=LogPlan(topic="orders", topic_id=bytes(16).hex(), start=0, end=end),
        partition=0,
        read_committed=False,
        first=first,
        end=end,
        target_topic="A.orders",
        transforms=transforms or {},
    )
    return Answer.model_validate_json(count_records(order.model_dump_json(context=REVEAL))).records


def batch(magic: int, offsets: range, value: bytes | None = b"v") -> Content:
    timestamp = 5 if magic else -1
    return Content(magic, GZIP, [RawRecord(at, timestamp, b"k", value, ()) for at in offsets], offsets.stop)


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_each_record_of_a_compressed_batch_counts(monkeypatch: pytest.MonkeyPatch, magic: int) -> None:
    """But for those that were copied before, and those written since."""
    log = [batch(magic, range(1000)), batch(magic, range(1000, 2000))]
    assert counted(monkeypatch, log, 0, 2000) == 2000
    assert counted(monkeypatch, log, 700, 1100) == 400


def test_a_large_record_counts_unless_a_transform_drops_it(monkeypatch: pytest.MonkeyPatch) -> None:
    log = [batch(2, range(1), bytes(PIECE_BYTES + 1000)), batch(2, range(1, 4), None)]
    assert counted(monkeypatch, log, 0, 4) == 4
    assert counted(monkeypatch, log, 0, 4, WITHOUT_TOMBSTONES) == 1
