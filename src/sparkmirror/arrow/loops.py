"""The compiled loops between records and columns, loaded in turn.

A machine's processes wait for the first, which compiles for some seconds. Once numba's cache is there they load at the
same time.
"""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

from sparkmirror.kafka.wire.compiling import COMPILED
from sparkmirror.kafka.wire.walk_loading import KERNELS, turn

_SOURCE = KERNELS.with_name("record_kernels.py")
_LAST_LOOP = "partitions"
"""The loop at the module's end, which is compiled last."""


def is_cached(source: Path = _SOURCE) -> bool:
    """True if numba's cache next to the loops is complete, and newer than they are.

    False if the cache is elsewhere, as where the package can't be written to.
    """
    try:
        written = source.stat().st_mtime
        caches = source.with_name("__pycache__").glob(f"{source.stem}.{_LAST_LOOP}-*.nbi")
        return any(cache.stat().st_mtime > written for cache in caches)
    except OSError:
        return False


with nullcontext() if not COMPILED or is_cached() else turn():
    from sparkmirror.kafka.wire import record_kernels

__all__ = ["record_kernels"]
