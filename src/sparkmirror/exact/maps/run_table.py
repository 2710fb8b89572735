"""Table of copied runs in int64 columns: in memory, or in a nameless file.

The table uses the file past a limit of runs. A run is (upstream, downstream, count): `count` records whose offsets grow
by one on both sides. Runs are stored in blocks of rows; each block's first offsets stay in memory, so that a search
reads one block. 100 million runs take 2.4 GB on disk and a 3 MB index in memory, however often the table is asked.
"""

from __future__ import annotations

import os
import tempfile
from array import array
from bisect import bisect_right
from typing import IO

BLOCK_ROWS = 512
MEMORY_RUNS = 1_000_000
"""Runs kept in memory, 24 bytes each; further runs go to a file."""

UPSTREAM, DOWNSTREAM, COUNT = range(3)
_COLUMNS = 3
_ROW_BYTES = 8 * _COLUMNS
_NO_BLOCK = -1, memoryview(b"").cast("q")


class RunTable:
    """Run table: append by growing downstream offset, then `seal`, then search.

    `cut` drops runs, so that different runs can be appended.
    """

    def __init__(self, memory_runs: int = MEMORY_RUNS) -> None:
        self._memory_runs = memory_runs
        self._tail = array("q")
        self._blocks: list[array[int]] = []
        self._file: IO[bytes] | None = None
        self._starts = array("q"), array("q")
        self._loaded = _NO_BLOCK
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def spilled(self) -> bool:
        """True if the runs are in a file."""
        return self._file is not None

    def append(self, upstream: int, downstream: int, count: int) -> None:
        """Append a run that is after all runs downstream."""
        if not self._tail:
            self._starts[UPSTREAM].append(upstream)
            self._starts[DOWNSTREAM].append(downstream)
        self._tail.extend((upstream, downstream, count))
        self._length += 1
        if len(self._tail) == BLOCK_ROWS * _COLUMNS:
            self._put_away()

    def seal(self) -> None:
        """End the table: no run follows, unless `cut` comes first."""
        if self._tail:
            self._put_away()

    def cut(self, length: int) -> None:
        """Drop all runs but the first `length`; further runs can be appended then."""
        if self._tail:
            self._put_away()
        if length >= self._length and length % BLOCK_ROWS == 0:
            return
        number, rows = divmod(length, BLOCK_ROWS)
        kept = self._load(number)[: rows * _COLUMNS].tolist() if rows else []
        del self._blocks[number:]
        for starts in self._starts:
            del starts[number + bool(rows) :]
        if self._file is not None:
            self._file.seek(number * BLOCK_ROWS * _ROW_BYTES)
            self._file.truncate()
        self._tail = array("q", kept)
        self._loaded = _NO_BLOCK
        self._length = length

    def row(self, index: int) -> tuple[int, int, int]:
        number, row = divmod(index, BLOCK_ROWS)
        block, at = self._load(number), row * _COLUMNS
        return block[at], block[at + 1], block[at + 2]

    def find(self, column: int, offset: int, first: int, end: int) -> int:
        """Return the index of the last run in [first, end) that begins by `offset`.

        The run begins at or below `offset` in the column. Return first - 1 if there is none. `column` is UPSTREAM or
        DOWNSTREAM, and must grow from first to end.
        """
        if first >= end:
            return first - 1
        low, high = first // BLOCK_ROWS, (end - 1) // BLOCK_ROWS
        number = bisect_right(self._starts[column], offset, low + 1, high + 1) - 1
        base = number * BLOCK_ROWS
        rows = self._load(number)[column::_COLUMNS]
        return base + bisect_right(rows, offset, max(first - base, 0), min(end - base, BLOCK_ROWS)) - 1

    def close(self) -> None:
        """Give the file's space back."""
        if self._file is not None:
            self._file.close()

    def _load(self, number: int) -> memoryview[int]:
        loaded, block = self._loaded
        if loaded != number:
            if self._file is None:
                block = memoryview(self._blocks[number])
            else:
                size = BLOCK_ROWS * _ROW_BYTES
                block = memoryview(os.pread(self._file.fileno(), size, number * size)).cast("q")
            self._loaded = number, block
        return block

    def _put_away(self) -> None:
        self._blocks.append(self._tail)
        self._tail = array("q")
        if self._file is None and self._length > self._memory_runs:
            self._file = tempfile.TemporaryFile(prefix="sparkmirror-runs-", buffering=1 << 20)  # noqa: SIM115 - close
        if self._file is not None:
            for block in self._blocks:
                self._file.write(block)
            self._blocks.clear()
            self._file.flush()
