"""The directory of downloads that is kept between runs and shared by all of them."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def cache_root() -> Path:
    """Return the downloads' directory: $SPARKMIRROR_CACHE or ~/.cache/sparkmirror."""
    configured = os.environ.get("SPARKMIRROR_CACHE")
    return Path(configured).expanduser().absolute() if configured else Path.home() / ".cache" / "sparkmirror"


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of `path` across processes.

    The kernel frees the lock when its holder dies, in whatever way.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(f"{path.name}.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
