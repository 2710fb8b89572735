"""An answer without records is no proof that there are none: old data may be slow to come (tiered storage)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pytest
from record_batches import Record, batch

from sparkmirror.cluster.client import ClusterClient
from sparkmirror.config import ClusterConfig
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.frames.log_reader import LogChanged, RangeReader
from sparkmirror.frames.stream_comparison import OffsetBounds
from sparkmirror.wire.error_codes import ErrorCode
from sparkmirror.wire.fetch_session import FetchedPartition
from sparkmirror.wire.rpc import RpcConnection

END = 4
WHOLE = batch([(offset, Record(5, b"k", b"%d" % offset)) for offset in range(END)])


class Answering(RangeReader):
    """Gets these answers; what is not said of a log start it asks in vain."""

    answers: Iterator[FetchedPartition]

    def _connect(self, client: ClusterClient) -> RpcConnection:
        class Closed:
            def close(self) -> None:
                pass

        return cast("RpcConnection", Closed())

    def _fetch(self, connection: RpcConnection, offset: int) -> FetchedPartition | None:
        return next(self.answers)

    def _log_start(self, client: ClusterClient) -> int:
        raise ConnectionError("its leader has moved")


def reading(*answers: FetchedPartition) -> Answering:
    config = ClusterConfig(alias="A", bootstrap_servers=("127.0.0.1:1",))
    reader = Answering(config, "orders", bytes(16), 0, OffsetBounds(0, END), read_committed=False)
    reader.answers = iter(answers)
    return reader


def answer(records: memoryview | None = None, error: int = 0) -> FetchedPartition:
    return FetchedPartition("orders", 0, 0, error, END, END, 0, records or memoryview(b""), None)


@pytest.mark.parametrize("empty", [0, 1, 3])
def test_records_may_come_after_some_answers_without_any(empty: int) -> None:
    with reading(*[answer()] * empty, answer(WHOLE.view)) as found:
        assert [one.header.records for one in found] == [END]


def test_at_last_it_is_believed_that_there_are_none() -> None:
    with reading(*[answer()] * 4, answer(WHOLE.view)) as found:
        assert list(found) == []


def test_a_leader_that_moves_while_retention_is_looked_into_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    impatient(monkeypatch)
    gone = answer(error=ErrorCode.OFFSET_OUT_OF_RANGE)
    with reading(*[gone] * 7, answer(WHOLE.view)) as found:
        assert [one.header.records for one in found] == [END]
    with reading(*[gone] * 999) as found, pytest.raises(ClusterUnreachable, match="orders-0: its leader has moved"):
        list(found)


def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparkmirror.frames.log_reader._PAUSE_S", 0.01)
    monkeypatch.setattr("sparkmirror.frames.log_reader._PATIENCE_S", 0.2)


def test_a_log_that_was_cut_short_is_said_to_have_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its leader may only lag for a while; but not for long."""
    impatient(monkeypatch)
    short = answer()._replace(high_watermark=END - 1)
    with reading(*[short] * 7, answer(WHOLE.view)) as found:
        assert [one.header.records for one in found] == [END]
    with (
        reading(*[short] * 999) as found,
        pytest.raises(LogChanged, match="orders-0: its readable part ends at 3"),
    ):
        list(found)


def test_an_offset_above_a_log_is_said_to_have_been_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Answering, "_log_start", lambda self, client: 0)
    with (
        reading(answer(error=ErrorCode.OFFSET_OUT_OF_RANGE)) as found,
        pytest.raises(LogChanged, match="cut below offset 0"),
    ):
        list(found)
