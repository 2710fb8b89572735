"""Remove the server's paths from texts that HTTP clients see."""

from __future__ import annotations

import re
from collections.abc import Iterable

_PATH = re.compile(r"(?<![\w./:-])(?:/[\w.+@~-]+){2,}")
"""Absolute path with two parts or more, outside a URL."""


def without_paths(text: str, own: Iterable[str]) -> str:
    """Return `text` with each path cut to its last part.

    Paths within a value in `own`, which the client gave, stay whole.
    """
    given = list(own)

    def shown(path: re.Match[str]) -> str:
        return path[0] if any(path[0] in value for value in given) else path[0].rpartition("/")[2]

    return _PATH.sub(shown, text)
