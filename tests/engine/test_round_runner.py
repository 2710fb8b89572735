"""When a round ends, with a job that only goes on."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from sparkmirror.engine import round_runner
from sparkmirror.engine.end_reason import EndReason
from sparkmirror.engine.round_runner import RoundRunner


def test_a_round_ends_a_day_after_it_began(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its pumps end by themselves then, but for those that Spark began again later: they would go on alone."""
    turns = iter(range(3))
    nothing: Any = SimpleNamespace(
        wait=lambda _: next(turns) < 0,
        has_failed=False,
        exchange_beats=lambda: None,
        is_due=False,
        show=lambda: None,
    )
    runner = RoundRunner(nothing, nothing, nothing, nothing, nothing, list, nothing.show, threading.Event())
    monkeypatch.setattr(round_runner, "ROUND_S", -1.0)
    assert runner._wait_for_end(nothing, nothing, [], []) is EndReason.PLANNED  # noqa: SLF001 - its loop alone
