"""The search of one log for keys and contents that are unmatched on the other side."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from record_batches import Record, batches

from sparkmirror.config import ClusterConfig, FlowConfig, MirrorConfig
from sparkmirror.config.model import REVEAL
from sparkmirror.frames import Options, verify_task
from sparkmirror.frames.due import CountOrder
from sparkmirror.frames.ranges import LogPlan, PartitionPlan, RangePlan
from sparkmirror.frames.stream_comparison import content_digest, key_digest
from sparkmirror.frames.verify import _VerifyRun
from sparkmirror.frames.verify_task import Answer, CompareOrder, LookOrder, Wanted, look
from sparkmirror.kafka.cluster.log_range import LogBatch
from sparkmirror.kafka.wire.pieces import raw_parts
from sparkmirror.kafka.wire.unpacking import PIECE_BYTES

ON_KEYS = {
    "transforms": "ours",
    "transforms.ours.type": "InsertField$Key",
    "transforms.ours.static.field": "region",
    "transforms.ours.static.value": "eu",
}
ORIGINALS = [(offset, Record(7, b'{"id":%d}' % offset, b"value", ())) for offset in range(9)]
COPY = Record(7, b'{"id":4,"region":"eu"}', b"value", ())
LARGE = b"x" * (PIECE_BYTES + 1000)


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, Record]]:
    """The source's records, which a test may change."""
    records = [*ORIGINALS]

    @contextmanager
    def reader(*_: object) -> Iterator[Iterator[LogBatch]]:
        yield batches(records, [4], 1)

    monkeypatch.setattr(verify_task, "_reader", reader)
    return records


def found(transforms: dict[str, str], copy: Record = COPY) -> Answer:
    ((_, _, body),) = (part for batch in batches([(0, copy)], [1]) for part in raw_parts(*batch))
    wanted = Wanted(keys=frozenset({key_digest(body)[0]}), contents=frozenset({content_digest(body, None)}))
    order = LookOrder(
        cluster=ClusterConfig(alias="A", bootstrap_servers=("127.0.0.1:1",)),
        log=LogPlan(topic="orders", topic_id=bytes(16).hex(), start=0, end=9),
        partition=0,
        read_committed=False,
        timestamps=False,
        first=0,
        end=9,
        wanted=0,
        keys_only=False,
        target_topic="A.orders",
        transforms=transforms,
    )
    return Answer.model_validate_json(look({0: wanted}, order.model_dump_json(context=REVEAL)))


@pytest.mark.usefixtures("source")
def test_a_copys_key_is_found_among_what_the_transforms_make_of_the_source() -> None:
    """Else the copy of a record that is elsewhere at the source, or was compacted there, would be superfluous."""
    seen = found(ON_KEYS).seen()
    assert list(seen.newest.values()) == [4]
    assert list(seen.contents.values()) == [4]
    without = found({}).seen()
    assert (without.newest, without.contents) == ({}, {})


def test_a_large_records_copy_is_found_as_the_transforms_made_it(source: list[tuple[int, Record]]) -> None:
    """It has no digest of a key; its content is one."""
    source[4] = 4, ORIGINALS[4][1]._replace(value=LARGE)
    seen = found(ON_KEYS, COPY._replace(value=LARGE)).seen()
    assert list(seen.contents.values()) == [4]


def test_only_topics_of_heartbeats_are_compared_without_transforms() -> None:
    """By the flow's policy, as the pumps copy: not those whose names only end so."""
    source, target = (ClusterConfig(alias=alias, bootstrap_servers=("127.0.0.1:1",)) for alias in "AB")
    flow = FlowConfig(source=source, target=target, connect_transforms=ON_KEYS)
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=1))
    run = _VerifyRun(spark, MirrorConfig(path="", flows=(flow,)), Options(), lambda _: None)

    def transforms(topic: str) -> list[bool]:
        log = LogPlan(topic=topic, topic_id="", start=0, end=9)
        span = RangePlan(range=0, first_upstream=0, end_upstream=9, first_downstream=0, end_downstream=9)
        plan = PartitionPlan(
            flow=flow.name,
            partition=0,
            source=log,
            target=log,
            isolation="read_uncommitted",
            timestamps=True,
            bytes_per_offset=1,
            ranges=(span,),
        )
        compared = CompareOrder.model_validate_json(run._compare_order(plan, span))  # noqa: SLF001
        counted = CountOrder.model_validate_json(run._count_order(plan))  # noqa: SLF001
        return [bool(order.transforms) for order in (compared, counted)]

    assert transforms("device-heartbeats") == [True, True]
    assert transforms("A.heartbeats") == [False, False]
