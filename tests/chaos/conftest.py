"""A small arena, one broker a side, each behind a proxy."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from chaos.arena import Arena


@pytest.fixture(scope="session")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    """Return an arena for the tests of this directory; every broker is up again when a test ends."""
    with Arena(tmp_path_factory.mktemp("arena", numbered=False), brokers=1, keep_logs=True) as arena:
        yield arena
