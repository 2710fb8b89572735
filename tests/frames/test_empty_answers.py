"""An answer without records is no proof that there are none: old data may be slow to come (tiered storage)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pytest
from record_batches import Record, batch

from sparkmirror.config import ClusterConfig
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.range_reader import LogChanged, OffsetBounds, RangeReader
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.fetch_session import FetchedPartition
from sparkmirror.kafka.wire.rpc import RpcConnection

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


def reading(*answers: FetchedPartition, read_committed: bool = False, compacted: bool = False) -> Answering:
    config = ClusterConfig(alias="A", bootstrap_servers=("127.0.0.1:1",))
    bounds = OffsetBounds(0, END)
    reader = Answering(config, "orders", bytes(16), 0, bounds, read_committed=read_committed, compacted=compacted)
    reader.answers = iter(answers)
    return reader


def answer(records: memoryview | None = None, error: int = 0) -> FetchedPartition:
    return FetchedPartition("orders", 0, 0, error, END, END, 0, records or memoryview(b""), None)


@pytest.mark.parametrize(("empty", "compacted"), [(0, True), (3, True), (9, False)])
def test_records_may_come_after_some_answers_without_any(
    empty: int, compacted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    impatient(monkeypatch)
    with reading(*[answer()] * empty, answer(WHOLE.view), compacted=compacted) as found:
        assert [one.header.records for one in found] == [END]


def test_at_last_it_is_believed_that_a_cleaner_took_them(monkeypatch: pytest.MonkeyPatch) -> None:
    impatient(monkeypatch)
    with reading(*[answer()] * 4, answer(WHOLE.view), compacted=True) as found:
        assert list(found) == []


@pytest.mark.parametrize("read_committed", [False, True])
def test_of_a_log_that_is_not_compacted_it_is_never_believed(
    read_committed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    impatient(monkeypatch)
    unread = pytest.raises(ClusterUnreachable, match="orders-0: no record comes at offset 0, though its end is 4")
    with reading(*[answer()] * 999, read_committed=read_committed) as found, unread:
        list(found)


def test_a_batch_that_is_cut_off_is_no_empty_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    impatient(monkeypatch)
    with reading(*[answer(WHOLE.view[:-1])] * 999, compacted=True) as found, pytest.raises(ClusterUnreachable):
        list(found)


def test_a_leader_that_moves_while_retention_is_looked_into_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    impatient(monkeypatch)
    gone = answer(error=ErrorCode.OFFSET_OUT_OF_RANGE)
    with reading(*[gone] * 7, answer(WHOLE.view)) as found:
        assert [one.header.records for one in found] == [END]
    with reading(*[gone] * 999) as found, pytest.raises(ClusterUnreachable, match="orders-0: its leader has moved"):
        list(found)


def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparkmirror.kafka.cluster.range_reader._PAUSE_S", 0.01)
    monkeypatch.setattr("sparkmirror.kafka.cluster.range_reader._EMPTY_PAUSE_S", 0.01)
    monkeypatch.setattr("sparkmirror.kafka.cluster.range_reader._PATIENCE_S", 0.2)


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
