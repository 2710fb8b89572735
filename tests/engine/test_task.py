"""A further attempt of a Spark task: an earlier one may still be alive (R5)."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from pyspark import TaskContext

from sparkmirror.mirror.engine import task
from sparkmirror.pump.messages.orders import FlowEnd, PumpOrder

ORDER = PumpOrder(epoch=1, task=0, incarnation="i", seconds=60, flows=())


@pytest.mark.parametrize("attempt", [0, 1, 2])
@pytest.mark.parametrize("in_doubt", [False, True])
def test_the_pump_hears_which_attempt_it_is(monkeypatch: pytest.MonkeyPatch, attempt: int, in_doubt: bool) -> None:
    """What its ends say then is held by `tests/pump/test_moved_routes.py`."""

    def pump(order: PumpOrder) -> list[FlowEnd]:
        assert order == (ORDER.again(attempt) if attempt else ORDER)
        assert order.attempt == attempt
        return [FlowEnd(flow="A->B", in_doubt=in_doubt)]

    monkeypatch.setattr(task, "pump", pump)
    monkeypatch.setattr(TaskContext, "get", lambda: SimpleNamespace(attemptNumber=lambda: attempt))
    ends = task.run_task({0: task.pack(ORDER)}, 0)
    assert [FlowEnd.model_validate_json(text).in_doubt for text in ends] == [in_doubt]
