"""What a driver writes to the control topic, and when it may."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.engine.driver_control import DriverControl
from sparkmirror.messages.moves import RouteMoves
from sparkmirror.messages.orders import AddedRoutes

ADDED = AddedRoutes(incarnation="i", epoch=1, routes={}, shares={})
MOVES = RouteMoves(incarnation="i", epoch=1, moves=(), shares={})


@pytest.mark.parametrize("held", [True, False])
def test_without_the_lease_no_partition_is_given_to_a_task(monkeypatch: pytest.MonkeyPatch, held: bool) -> None:
    """Words that waited, while the process was suspended, would stand behind its successor's."""
    source, target = (ClusterConfig(alias=alias, bootstrap_servers=("127.0.0.1:1",)) for alias in "ab")
    control = DriverControl(FlowConfig(source=source, target=target), "i", lambda: held)
    written: list[Any] = []
    monkeypatch.setattr(control, "_control", SimpleNamespace(add=written.append, move=written.append))
    acts: list[Callable[[], None]] = [lambda: control.add(ADDED), lambda: control.move(MOVES)]
    for act in acts:
        if held:
            act()
        else:
            with pytest.raises(ConnectionError, match="the lease is no longer held"):
                act()
    assert written == ([ADDED, MOVES] if held else [])
    control.close()
