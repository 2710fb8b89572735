"""Load the compiled walk over records, where it pays.

The walk is compiled by numba, which is optional (`sparkmirror[fast]`). Loading takes half a second and 120 MB, and the
first time on a machine some seconds for compiling. So a process loads it only after it has walked over many records, in
a thread next to its work, and continues in Python until the walk is ready. A machine's processes load one after
another: the first compiles, the next ones read what it left.
"""

from __future__ import annotations

import fcntl
import gc
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from sparkmirror.events import Event

log = logging.getLogger(__name__)

LOADED_AFTER = 20_000
"""Records that a process walks over in Python first."""
FEW_RECORDS = 8
"""Record count from which on the compiled walk is used.

For fewer, the call alone takes longer than the walk in Python.
"""
TURN_S = 60.0
"""Longest wait for the machine's other processes that load."""
KERNELS = Path(__file__).with_name("kernels.py")
"""The loops' file, whose lock gives the turn."""


class WalkLoading:
    """State of the compiled walk in this process."""

    def __init__(self, load: Callable[[], object], after: int = LOADED_AFTER, lock: Path = KERNELS) -> None:
        self._load = load
        self._lock = lock
        self._left: int | None = after
        """Records until loading begins; None: it has begun."""
        self.ready = False
        """True if the walk may be used."""

    def serves(self, records: int) -> bool:
        return self.ready and records >= FEW_RECORDS

    def walked(self, records: int) -> None:
        """Count records walked over in Python, not records that were only announced.

        Loading begins when there were enough.
        """
        if self._left is not None:
            self._left -= records
            if self._left <= 0:
                self._left = None
                threading.Thread(target=self._load_beside, name="load the compiled walk").start()

    def load(self) -> None:
        """Load the walk now. Raises ImportError without numba."""
        self._left = None
        self._load()
        gc.freeze()  # else each collection goes over all that numba has brought
        self.ready = True

    def _load_beside(self) -> None:
        if find_spec("numba") is None:
            return
        began = time.monotonic()
        try:
            with turn(self._lock):
                self.load()
        except Exception as error:  # numba's errors are of many kinds, and the walk in Python is there
            log.warning(
                "the compiled walk over records can't be used, so it is walked in Python: %s",
                error,
                extra=Event.WALK_NOT_LOADED.extra,
            )
        else:
            seconds = time.monotonic() - began
            log.info("the compiled walk over records is in use, after %.1f s", seconds, extra=Event.WALK_LOADED.extra)


@contextmanager
def turn(file: Path = KERNELS) -> Iterator[None]:
    """Hold the file's lock.

    Without it the block begins after `TURN_S`, or where there are no locks.
    """
    try:
        handle = file.open("rb")
    except OSError:
        yield
        return
    with handle:
        end = time.monotonic() + TURN_S
        while time.monotonic() < end:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(0.1)
            except OSError:
                break
            else:
                break
        yield


WALK = WalkLoading(lambda: import_module("sparkmirror.kafka.wire.array_walk"))
"""The walk of this process."""
