"""A second attempt of a Spark task: the first one may still be alive when it ends (R5)."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from pyspark import TaskContext

from sparkmirror.engine import task
from sparkmirror.messages.orders import FlowEnd, PumpOrder
from sparkmirror.pump.quiet import GRACE_S

ORDER = PumpOrder(epoch=1, task=0, incarnation="i", seconds=60, flows=())


@pytest.mark.parametrize(
    ("attempt", "seconds", "in_doubt"),
    [(0, 1.0, False), (1, 1.0, True), (1, GRACE_S + 1, False), (2, 0.0, True)],
)
def test_an_early_end_of_a_second_attempt_is_in_doubt(
    monkeypatch: pytest.MonkeyPatch, attempt: int, seconds: float, in_doubt: bool
) -> None:
    """The next round must wait as long as this one should have, also if the attempt never had a partition."""
    now = [100.0]

    def pump(order: PumpOrder) -> list[FlowEnd]:
        assert order.attempt == attempt
        now[0] += seconds
        return [FlowEnd(flow="A->B")]

    monkeypatch.setattr(task, "pump", pump)
    monkeypatch.setattr(task, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(TaskContext, "get", lambda: SimpleNamespace(attemptNumber=lambda: attempt))
    ends = task.run_task({0: ORDER.model_dump_json()}, 0)
    assert [FlowEnd.model_validate_json(text).in_doubt for text in ends] == [in_doubt]
