"""A worker whose mirror has ended by itself says so, if nothing can come of this process any more."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.connectors import worker_file

from sparkmirror.connect.worker import ConnectWorker
from sparkmirror.errors import ConfigError, SetupError


@pytest.mark.parametrize(
    "error", [SetupError("Spark has ended"), ConfigError("wrong", origin="file"), KeyError("a fault of ours"), None]
)
def test_the_end_of_its_mirror_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception | None
) -> None:
    told: list[Exception] = []
    worker: Any = ConnectWorker(worker_file(), "worker:8083", on_end=told.append)

    def run() -> None:
        if error is not None:
            raise error

    monkeypatch.setattr(worker._mirror, "run", run)  # noqa: SLF001 - a test's way in
    worker.start()
    worker.close()
    assert told == ([] if error is None else [error])
    traces = [record.exc_info is not None for record in caplog.records if record.levelname == "ERROR"]
    assert traces == [isinstance(error, KeyError)] * len(told), "only a fault of sparkmirror's has a traceback"
