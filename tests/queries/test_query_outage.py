"""A query survives an outage of any length."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from sparkmirror.errors import ClusterUnreachable
from sparkmirror.queries.query_worker import QueryWorker


class Pauses(threading.Event):
    """It notes the pauses and lets none last."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.seconds.append(timeout)
        return False


def test_pauses_between_failures_double_up_to_half_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """2 to the number of failures is more than a float holds after 1,024 of them: a night without the target."""
    worker = QueryWorker.__new__(QueryWorker)
    pauses = worker.stopping = Pauses()
    worker.driver = SimpleNamespace(topics=SimpleNamespace(ends=None))  # type: ignore[assignment]

    def fail() -> bool:
        raise ClusterUnreachable("the target is down")

    monkeypatch.setattr(worker, "_copy", fail)
    monkeypatch.setattr(worker, "_told", lambda error: None)
    monkeypatch.setattr(worker, "_goes_on", lambda: len(pauses.seconds) < 1_100)
    worker.run()
    assert pauses.seconds[:6] == [1, 2, 4, 8, 16, 30]
    assert set(pauses.seconds[5:]) == {30}
    assert len(pauses.seconds) == 1_100
