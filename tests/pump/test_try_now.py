"""`sparkmirror retry`: a parked partition is tried at once, once for each word."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from played_run import PlayedRun

from sparkmirror.exact.durable.claims import Claim
from sparkmirror.kafka.cluster.topic_log import LogEntry, LogUnavailable
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.pump.messages.control import ControlState
from sparkmirror.pump.stage import Stage


def test_a_parked_partition_is_tried_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    run = PlayedRun(monkeypatch)
    state = ControlState()

    def claim(claims: Sequence[Claim]) -> None:
        if any(segment.partition == 0 for segment in claims):
            raise LogUnavailable("segments", "a record was refused", ErrorCode.MESSAGE_TOO_LARGE)

    def say(rank: int, *names: str) -> None:
        state.apply([LogEntry(rank, b"retry", json.dumps({"names": names}).encode())])
        run.pump.control(state)

    run.claim = claim
    try:
        run.turn_until(lambda: run.copy_of(0).stage is Stage.PARKED)
        copy = run.copy_of(0)
        assert copy.retry.at > run.loop.now + 3.0
        before = copy.retry.at
        for rank, name in enumerate(("stock", "t:1", "t:00")):
            say(rank, name)
            assert copy.retry.at == before, name
        for rank, names in enumerate(([], ["t"], ["stock", "t:0"]), 10):
            copy.retry.park(run.loop.now)
            say(rank, *names)
            assert copy.retry.at <= run.loop.now, names
            copy.retry.park(run.loop.now)
            say(rank, *names)
            assert copy.retry.at > run.loop.now + 3.0, "the same word again"
        readings = run.readings.count(0)
        say(20)
        run.turn_until(lambda: run.readings.count(0) > readings)
    finally:
        run.close()
