"""What is behind is what may be read: not the records of a transaction that is open."""

from __future__ import annotations

from typing import Literal

import pytest
from played_run import PlayedRun


@pytest.mark.parametrize(("isolation", "end"), [("read_committed", 40), ("read_uncommitted", 45)])
def test_the_lag_is_of_what_may_be_read(
    monkeypatch: pytest.MonkeyPatch, isolation: Literal["read_uncommitted", "read_committed"], end: int
) -> None:
    run = PlayedRun(monkeypatch, partitions=(0,), isolation=isolation)
    try:
        run.open_offsets = 5
        run.turn_until(lambda: run.sent == {0})
        (receipt,) = run.pump.receipts()
        assert receipt.source_end == end
    finally:
        run.close()
