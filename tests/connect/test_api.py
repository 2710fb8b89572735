"""Requests whose answers need no broker; that they are a real worker's is seen in `test_beside_connect.py`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.connect.in_memory_api import InMemoryApi, in_memory_api
from tests.connect.rest_cases import connector

from sparkmirror.errors import ClusterUnreachable

SOURCE = connector("Source", "source:9092", "target:9092")


@pytest.fixture
def api() -> Iterator[InMemoryApi]:
    """An interface with one connector, `shop`."""
    with in_memory_api() as opened:
        assert opened.ask("PUT", "/connectors/shop/config", SOURCE)[0] == 201
        yield opened


def test_what_cannot_be_written_can_be_asked_for_again(api: InMemoryApi) -> None:
    api.configs.broken = api.statuses.broken = ClusterUnreachable("no broker answers")
    status, said = api.ask("PUT", "/connectors/shop/pause")
    assert status == 500
    assert "can be safely retried (no broker answers)" in str(said)
    api.configs.broken = None
    assert api.ask("PUT", "/connectors/shop/pause")[0] == 202  # the status is written later
    api.herder.close()
