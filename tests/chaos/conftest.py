"""A small arena, one broker a side, each behind a proxy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from chaos.arena import Arena

_HERE = Path(__file__).parent
_running: list[Arena] = []


@pytest.fixture(scope="session")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    """Return an arena for the tests of this directory; every broker is up again when a test ends."""
    with Arena(tmp_path_factory.mktemp("arena", numbered=False), brokers=1, keep_logs=True) as arena:
        _running.append(arena)
        yield arena


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """End the arena after the directory's last test: its brokers take part of the machine, and the run continues."""
    if nextitem is None or nextitem.path.parent != _HERE:
        while _running:
            _running.pop().close()
