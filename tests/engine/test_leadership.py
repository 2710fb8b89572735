"""What the active driver of a flow knows of its target."""

from __future__ import annotations

from typing import Any

import pytest

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.mirror.engine import leadership
from sparkmirror.mirror.engine.leadership import STATE_LIFETIME_DEFAULT_MS, Leadership


@pytest.mark.parametrize("error", [ConnectionError("reset"), ClusterUnreachable("cluster b: no broker answers")])
def test_without_an_answer_the_known_lifetime_stays(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """The topic duty, which asks each time, continues: it has its own words for a target that is away."""
    nothing: Any = None
    source, target = (ClusterConfig(alias=alias, bootstrap_servers=(f"{alias}:1",)) for alias in "ab")
    held = Leadership(FlowConfig(source=source, target=target), nothing, use_lease=False)
    answers: list[Any] = [3_600_000, error, None]

    def answer(_: object) -> int | None:
        told = answers.pop(0)
        if isinstance(told, Exception):
            raise told
        return told if told is None else int(told)

    monkeypatch.setattr(leadership, "producer_state_ms", answer)
    assert held.state_lifetime_ms == STATE_LIFETIME_DEFAULT_MS
    for _ in range(3):
        held.ask_state_lifetime(nothing)
        assert held.state_lifetime_ms == 3_600_000
