"""Rows of a range of a log whose batches have formats of all ages."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.built import Content, contents, source_batches

from sparkmirror.kafka.cluster.range_reader import RangeReader
from sparkmirror.kafka.wire.fetch_session import FetchedPartition
from sparkmirror.source import log_rows
from sparkmirror.source.read_options import read_options
from sparkmirror.source.source_logs import OffsetRange
from sparkmirror.source.tables import BATCHES, arrow_schema

OPTIONS = read_options({"kafka.bootstrap.servers": "a:1", "subscribe": "t", "table": "batches"}, streaming=False)


def of_log(log: list[Content]) -> type[RangeReader]:
    """A reader whose leader answers as Kafka's do: from the batch on that has the offset."""

    class Reader(RangeReader):
        def _connect(self, client: object) -> Any:
            return SimpleNamespace(close=lambda: None)

        def _fetch(self, connection: object, offset: int) -> FetchedPartition:
            views = [view for header, view in source_batches(log) if header.next_offset > offset]
            end = log[-1].next_offset
            return FetchedPartition("t", 0, offset, 0, end, end, 0, memoryview(b"".join(views)), None)

    return Reader


@given(log=contents(), place=st.integers(0, 1 << 30))
def test_each_batch_has_one_row_wherever_the_ranges_are_cut(log: list[Content], place: int) -> None:
    """A message of an old format with many records has its last one's offset, and is read for each of them."""
    first, end = 0, log[-1].next_offset
    start = min((one.offset for content in log for one in content.records), default=first)
    cut = start + place % (end - start + 1)
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_rows, "RangeReader", of_log(log))
        for one, other in ((first, cut), (cut, end)):
            asked = OffsetRange(topic="t", topic_id=b"", partition=0, first=one, end=other)
            for rows in log_rows.rows(OPTIONS, asked, arrow_schema(BATCHES)):
                found += rows.column("base_offset").to_pylist()
    assert found == [header.base_offset for header, _ in source_batches(log) if header.magic < 2 or header.records]
