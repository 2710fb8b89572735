"""The log levels of a pump's flows are given back at its end: Spark uses the process again, for other flows."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from sparkmirror.log_levels import asked_levels
from sparkmirror.pump import pump as pump_module
from sparkmirror.pump.messages.orders import PumpOrder

LOGGER = logging.getLogger("sparkmirror.levels_of_ended_pumps")


@pytest.mark.parametrize("fails", [False, True])
def test_a_level_ends_with_the_pump_that_was_asked_for_it(monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    class Run:
        def __init__(self, _: object, flow: str, *__: object) -> None:
            self.flow_pump = SimpleNamespace(name=flow, ended=True)
            asked_levels.follow(flow, {LOGGER.name: "DEBUG"})

        def close(self) -> Any:
            assert LOGGER.level == logging.DEBUG
            if fails:
                raise ConnectionError

    monkeypatch.setattr(pump_module, "_PumpRun", Run)
    flows: Any = ("A->B", "A->C")
    order = PumpOrder(epoch=1, task=0, incarnation="i", seconds=60, flows=()).model_copy(update={"flows": flows})
    if fails:
        with pytest.raises(ConnectionError):
            pump_module.pump(order)
    else:
        pump_module.pump(order)
    assert LOGGER.level == logging.NOTSET
