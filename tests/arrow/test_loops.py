"""The loops with and without numba: equal digests, partitions, batches and rows."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_loops import plain_loops
from tables import NOW, Row, brief, loops, table, table_rows
from tests.support.built import Content, contents

from logs import log
from sparkmirror.arrow.decoding import decoded
from sparkmirror.arrow.encoding import encode
from sparkmirror.arrow.loops import is_cached
from sparkmirror.arrow.row_columns import RowColumns
from sparkmirror.kafka.wire import compiling, record_kernels
from sparkmirror.kafka.wire.codecs import Codec

PLAIN = plain_loops()

if not compiling.COMPILED:
    pytest.skip("without numba all loops are plain", allow_module_level=True)


def test_the_two_are_not_the_same_loops() -> None:
    assert hasattr(record_kernels.digests, "py_func")
    assert not hasattr(PLAIN.digests, "py_func")


@brief
@given(table_rows, st.integers(0, 9), st.integers(1, 50), st.integers(61, 6000))
def test_rows_to_write(rows: list[Row], before: int, count: int, most: int) -> None:
    results = []
    for module in (record_kernels, PLAIN):
        with loops(module):
            columns = RowColumns.of(table(rows, before=before), NOW)
            made: list[object] = [columns.digests(with_time).tolist() for with_time in (False, True)]
            made.append(columns.partitions(count, -5).tolist())
            at = 0
            while at < len(rows):
                left = np.arange(at, len(rows))
                batch = encode(columns, left, producer_id=5, producer_epoch=2, sequence=at, codec=Codec(0), most=most)
                at += batch.records
                made.append(bytes(batch.data))
        results.append(made)
    assert results[0] == results[1]


@brief
@given(contents(), st.none() | st.integers(0, 1 << 40), st.integers(0, 20), st.integers(0, 60_000))
def test_batches_to_read_sound_or_damaged(made: list[Content], seed: int | None, skipped: int, size: int) -> None:
    batches = log(made, seed)
    begin = batches[0][0].base_offset + skipped
    results = []
    for module in (record_kernels, PLAIN):
        with loops(module):
            rows: list[object] = []
            try:
                rows += list(decoded(batches, "t", 3, begin, begin + size))
            except ValueError as error:
                rows.append(str(error))
        results.append(rows)
    assert results[0] == results[1]


def test_a_cache_is_known_by_its_last_loop(tmp_path: Path) -> None:
    source = tmp_path / "record_kernels.py"
    assert not is_cached(source)
    source.write_text("")
    assert not is_cached(source)
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "record_kernels.filled-1.py311.nbi").write_text("")
    assert not is_cached(source)
    cache = tmp_path / "__pycache__" / "record_kernels.partitions-1.py311.nbi"
    cache.write_text("")
    os.utime(source, (1000, 1000))
    assert is_cached(source)
    os.utime(cache, (999, 999))
    assert not is_cached(source)


def test_the_last_loop_is_the_last() -> None:
    names = re.findall(r"^@loop\(.*?^def (\w+)", Path(record_kernels.__file__).read_text(), re.MULTILINE | re.DOTALL)
    assert names[-1] == "partitions"
