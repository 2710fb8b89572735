"""One way to fetch outside a pump: throttled clients wait, broken connections are closed; no other module fetches."""

from __future__ import annotations

from pathlib import Path

import pytest

import sparkmirror
from sparkmirror.kafka.cluster.fetch_once import FetchBounds, FetchReply, fetch_once, only_part
from sparkmirror.kafka.wire.answer_bounds import AnswerBound
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.rpc import BrokerUnreachable

SOURCE = Path(sparkmirror.__file__).parent
BOUNDS = FetchBounds(max_bytes=1000, partition_bytes=1000)
ASKED, IDS = {("orders", 0): 5}, {"orders": bytes(15) + b"1"}


def nothing_fetched(throttle_ms: int, error: int = 0) -> bytes:
    """An answer without a partition, in version 13."""
    return bytes.fromhex(f"00000001 00 {throttle_ms:08x} {error:04x} 00000001 01 00")


class InventedLeader:
    """A stand-in for a client and its connection to one broker."""

    client_id = "test"

    def __init__(self, answer: bytes | None) -> None:
        self.answer = answer
        self.closed: list[int] = []

    def broker(self, node_id: int) -> InventedLeader:
        return self

    def version(self, *_: object) -> int:
        return 13

    def exchange_raw(self, buffers: list[bytes], bound: AnswerBound) -> memoryview:
        assert bound.bytes > BOUNDS.max_bytes
        if self.answer is None:
            raise BrokerUnreachable("gone")
        return memoryview(self.answer)

    def hang_up(self, node_id: int) -> None:
        self.closed.append(node_id)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    waited: list[float] = []
    monkeypatch.setattr("time.sleep", waited.append)
    return waited


def fetched(leader: InventedLeader) -> FetchReply:
    return fetch_once(leader, 7, ASKED, IDS, BOUNDS)  # type: ignore[arg-type]  # all that it looks at


@pytest.mark.parametrize(("throttle_ms", "waited"), [(0, []), (300, [0.3]), (3_600_000, [5.0])])
def test_a_throttled_client_waits(throttle_ms: int, waited: list[float], pauses: list[float]) -> None:
    reply = fetched(InventedLeader(nothing_fetched(throttle_ms)))
    assert pauses == waited
    assert reply.throttled == bool(throttle_ms)
    assert only_part(reply) == ErrorCode.THROTTLING_QUOTA_EXCEEDED


def test_an_error_of_the_whole_request(pauses: list[float]) -> None:
    reply = fetched(InventedLeader(nothing_fetched(0, ErrorCode.KAFKA_STORAGE_ERROR)))
    assert only_part(reply) == reply.error == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_broken_connection_is_closed() -> None:
    leader = InventedLeader(None)
    with pytest.raises(BrokerUnreachable):
        fetched(leader)
    assert leader.closed == [7]


def test_nobody_else_fetches() -> None:
    """A pump has its own sessions, which continue from request to request."""
    fetchers = {
        str(file.relative_to(SOURCE))
        for file in SOURCE.rglob("*.py")
        if "FetchSession(" in file.read_text() and "pump" not in file.parts
    }
    assert fetchers == {"kafka/cluster/fetch_once.py"}
