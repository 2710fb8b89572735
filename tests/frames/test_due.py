"""Records are counted at their offsets, whatever batches they are in."""

from __future__ import annotations

import pytest
from record_batches import Record, batch

from sparkmirror.config import ClusterConfig
from sparkmirror.config.model import REVEAL
from sparkmirror.frames import due
from sparkmirror.frames.due import CountOrder, count_records
from sparkmirror.frames.ranges import LogPlan
from sparkmirror.frames.verify_task import Answer
from sparkmirror.kafka.cluster.log_range import LogBatch


class Read(list[LogBatch]):
    """Batches as `RangeReader` gives them."""

    def __init__(self, *_: object, **__: object) -> None:
        super().__init__([batch([(at, Record(1, b"key", b"value")) for at in offsets]) for offsets in OFFSETS])

    def __enter__(self) -> Read:
        return self

    def __exit__(self, *_: object) -> None: ...


OFFSETS = [(0, 8, 9), (10, 11, 12), (13, 19)]
"""The cleaner has left these: of the first batch it has kept the base offset."""


@pytest.mark.parametrize(
    ("first", "end", "records"), [(0, 20, 8), (1, 8, 0), (1, 9, 1), (5, 12, 4), (10, 13, 3), (14, 19, 0)]
)
def test_records_outside_the_range_dont_count(
    first: int, end: int, records: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(due, "RangeReader", Read)
    order = CountOrder(
        cluster=ClusterConfig(alias="A", bootstrap_servers=("a:1",)),
        log=LogPlan(topic="orders", topic_id="", start=0, end=20),
        partition=0,
        read_committed=False,
        first=first,
        end=end,
    )
    read = [made for made in Read() if made.header.next_offset > first and made.header.base_offset < end]
    monkeypatch.setattr(Read, "__iter__", lambda _: iter(read))
    answer = Answer.model_validate_json(count_records(order.model_dump_json(context=REVEAL)))
    assert answer.records == records
