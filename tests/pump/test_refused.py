"""What is said of a batch that the target refuses for good."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from model_broker import FRESH_MS, batch_of

from sparkmirror.kafka.wire.buffers import FramePool
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.produce import Ack
from sparkmirror.kafka.wire.splice import Run
from sparkmirror.kafka.wire.unpacking import Oversized
from sparkmirror.pump import refused
from sparkmirror.pump.batch import Batch

ACK = Ack((b"t", 0), ErrorCode.INVALID_TIMESTAMP, -1, -1, ((3, ""),), "")


def a_batch() -> Batch:
    data = batch_of(0, tuple(range(10)), 10, FRESH_MS)
    frame = FramePool(1 << 12, keep=1).take(len(data))
    frame.view[: len(data)] = data
    return Batch(frame, frame.view[: len(data)], 0, (Run(0, 10),), 10, 10, FRESH_MS, FRESH_MS, -1)


def test_a_timestamp_that_is_refused_is_named() -> None:
    said = refused.refused(a_batch(), ACK, "A.t").words
    assert said.startswith("source offset 3: INVALID_TIMESTAMP")
    assert f"timestamp {FRESH_MS}, 1970-" in said


def test_a_batch_that_cant_be_unpacked_is_named_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """It went whole: nothing had to unpack it before."""

    def raw_parts(*_: object) -> Iterator[tuple[int, int, int]]:
        raise Oversized(1 << 30, 1 << 25)

    monkeypatch.setattr(refused, "raw_parts", raw_parts)
    assert f"timestamp {FRESH_MS}, 1970-" in refused.refused(a_batch(), ACK, "A.t").words
