"""A record or a claim too large for the target: its partition is parked, with the size and the key to change."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pytest
from kafka.record.default_records import DefaultRecordBatchBuilder
from model_broker import FRESH_MS, Source, batch_of
from model_pump import Pump, World
from played_run import PlayedRun

from sparkmirror.exact.durable.claims import Claim
from sparkmirror.exact.position.cause import Cause
from sparkmirror.kafka.cluster.topic_log import LogUnavailable
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.pump.refused import Obstructed
from sparkmirror.pump.stage import Stage

LARGE_AT, LARGE_BYTES = 10, 5_000
"""Where the large record is, and its value's size."""


def large_batch() -> bytes:
    """One record, as the source's broker stores it."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=False,
        producer_id=77,
        producer_epoch=3,
        base_sequence=5,
        batch_size=1 << 20,
    )
    builder.append(0, FRESH_MS, None, b"%d" % LARGE_AT + b" " * LARGE_BYTES, [])
    data = builder.build()
    struct.pack_into(">q", data, 0, LARGE_AT)
    return bytes(data)


class WithLarge(Source):
    """Ten small records in a batch, and then a large one."""

    def __init__(self) -> None:
        super().__init__([(LARGE_AT, FRESH_MS)])
        self.end += 1

    def fetch(self, offset: int, batches: int) -> bytes:
        if offset < LARGE_AT:
            return super().fetch(offset, batches)
        return large_batch() if offset == LARGE_AT else b""


def settled(pump: Pump) -> Pump:
    """Until it is parked."""
    for _ in range(20):
        pump.settle()
        if pump.copy.stage is Stage.PARKED:
            return pump
        pump.world.now = max(pump.world.now, pump.copy.retry.at)
    raise AssertionError(pump.copy.trouble.reason)


def test_a_refused_record_is_named_with_its_size_and_the_key_to_change() -> None:
    """It was a batch of its own: there is nothing to split."""
    world = World(Source([(1, FRESH_MS)] * 3))
    size = len(batch_of(0, (0,), 1, FRESH_MS))
    world.target.max_bytes = size - 1
    pump = settled(Pump(world))
    copy = pump.copy
    assert world.target.log == []
    assert copy.trouble.reason == (
        f"source offset 0: MESSAGE_SIZE_TOO_LARGE (10), the batch of {size} bytes is larger than the target's "
        "max.message.bytes"
    )
    assert pump.question is not None
    why = pump.question.refused
    assert why is not None
    copy.explain(why.words, why.with_limits({"max.message.bytes": str(size - 1)}, {"max.message.bytes": "1048588"}))
    assert copy.trouble.reason.endswith(
        f"; topic us.orders has max.message.bytes={size - 1}; its topic at the source has max.message.bytes=1048588"
    )
    assert Obstructed.of(copy.trouble.reason) == (size, None, {"max.message.bytes": 1048588})


def test_a_record_larger_than_what_was_refused_before_is_named_so_and_not_sent() -> None:
    """The target has refused less already; what stood before it is copied."""
    world = World(WithLarge())
    world.target.max_bytes = len(batch_of(0, tuple(range(LARGE_AT)), LARGE_AT, FRESH_MS)) - 1
    pump = settled(Pump(world))
    assert world.target.log == list(range(LARGE_AT))
    assert pump.copy.trouble.cause is Cause.TOO_LARGE
    assert pump.copy.trouble.reason == (
        f"the record at source offset {LARGE_AT} makes a batch of {len(large_batch())} bytes, larger than the "
        f"target's max.message.bytes, as it has refused a batch of {world.target.max_bytes + 1}"
    )


def test_a_partition_whose_claim_is_too_large_is_parked_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others' claims were in the same request; it tries again after a pause that grows."""
    run = PlayedRun(monkeypatch)
    tries: list[Sequence[Claim]] = []

    def claim(claims: Sequence[Claim]) -> None:
        tries.append(claims)
        if any(segment.partition == 0 for segment in claims):
            raise LogUnavailable("segments", "a record was refused", ErrorCode.MESSAGE_TOO_LARGE)

    run.claim = claim
    try:
        run.turn_until(lambda: run.sent == {1, 2} and run.copy_of(0).stage is Stage.PARKED)
        assert run.copy_of(0).trouble.cause is Cause.TOO_LARGE
        assert "raise max.message.bytes of that topic at the target" in run.pump.receipts()[0].reason
        for leader in run.brokers:
            run.acknowledge(leader, {})
        run.turn_until(lambda: run.records() == [0, 10, 10])
        assert len([1 for claims in tries if [one.partition for one in claims] == [0]]) == 1, "it was tried alone once"
        assert run.copy_of(0).retry.at - run.loop.now > 3.0
    finally:
        run.close()
