"""A worker whose mirror has ended by itself says so, if nothing can come of this process any more."""

from __future__ import annotations

from typing import Any

import pytest
from tests.connect.connectors import worker_file

from sparkmirror.connect.worker import ConnectWorker
from sparkmirror.errors import ConfigError, SetupError


@pytest.mark.parametrize(
    ("error", "is_told"),
    [(SetupError("Spark has ended"), True), (ConfigError("wrong", origin="file"), False), (None, False)],
)
def test_the_end_of_its_spark_is_told(monkeypatch: pytest.MonkeyPatch, error: Exception | None, is_told: bool) -> None:
    told: list[SetupError] = []
    worker: Any = ConnectWorker(worker_file(), "worker:8083", on_setup_error=told.append)

    def run() -> None:
        if error is not None:
            raise error

    monkeypatch.setattr(worker._mirror, "run", run)  # noqa: SLF001 - a test's way in
    worker.start()
    worker.close()
    assert told == ([error] if is_told else [])
