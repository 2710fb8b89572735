"""Files that settings name: read within limits, and below allowed directories."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from pathlib import PurePath

LARGEST = 10_000_000
"""Most bytes in a file.

A system's largest trust store has less than 1,000,000.
"""


def read_named_file(path: str | os.PathLike[str]) -> bytes:
    """Return a file's content.

    Raises `OSError` with a reason in `strerror`, also for anything but a regular file (a device has no end, and a pipe
    may never begin), and for a file above `LARGEST`.
    """
    try:
        _check(os.stat(path))  # opening a device may do something already
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            _check(os.fstat(file.fileno()))
            content = file.read(LARGEST + 1) or b""  # None of a kernel's file that has nothing now
    except ValueError:  # a NUL, or half of a surrogate pair
        raise OSError(errno.EINVAL, "no path has these characters") from None
    if len(content) > LARGEST:
        raise _too_large()
    return content


def is_allowed(path: str, allowed: Sequence[str] | None) -> bool:
    """Tell whether a path is an allowed path, or below one."""
    return allowed is None or any(PurePath(os.path.normpath(path)).is_relative_to(entry) for entry in allowed)


def _check(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is no regular file")
    if status.st_size > LARGEST:
        raise _too_large()


def _too_large() -> OSError:
    return OSError(errno.EFBIG, f"it has more than {LARGEST:,} bytes")
