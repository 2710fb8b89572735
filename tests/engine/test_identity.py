"""How a producer id is asked for: brokers that aren't ready yet are asked again (R13)."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from sparkmirror.errors import ClusterUnreachable
from sparkmirror.kafka.cluster import producers


class StubClient:
    """In a cluster's place: gives these error codes, one for each request. A real fresh broker does so by chance."""

    config = SimpleNamespace(alias="eu")

    def __init__(self, codes: list[int]) -> None:
        self.codes = codes

    def ask_any(self, _request: object) -> SimpleNamespace:
        return SimpleNamespace(error_code=self.codes.pop(0), producer_id=7, producer_epoch=3)


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producers, "_ID_PAUSE_S", 0.0)


def test_a_fresh_broker_is_asked_again() -> None:
    client = StubClient([14, 15, 16, 14, 0])
    assert producers.new_producer_id(client) == (7, 3)  # type: ignore[arg-type]
    assert client.codes == []


def test_a_refusal_is_not_repeated() -> None:
    client = StubClient([31, 0])
    with pytest.raises(ClusterUnreachable, match="grant sparkmirror's principal IDEMPOTENT_WRITE"):
        producers.new_producer_id(client)  # type: ignore[arg-type]
    assert client.codes == [0]
