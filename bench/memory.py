"""Peak memory of an account's processes: the sum of their proportional set sizes (PSS), sampled.

PSS counts a page that several processes share once in all, so forked Python workers and a JVM compare.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Self

import psutil

from bench.accounting import Account

INTERVAL_S = 1.0


class MemoryWatch:
    """As a context, samples in a thread; `peak_bytes` is the largest sum seen."""

    def __init__(self, account: Account) -> None:
        self.peak_bytes = 0
        self._account = account
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="memory-watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(INTERVAL_S):
            self.peak_bytes = max(self.peak_bytes, sum(map(_pss, self._account.pids())))


def _pss(pid: int) -> int:
    with suppress(psutil.Error, OSError):
        size: int = psutil.Process(pid).memory_full_info().pss
        return size
    return 0
