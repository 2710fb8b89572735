"""Paths of the server, which are nobody's business who asks over HTTP."""

from __future__ import annotations

import re
from collections.abc import Iterable

_PATH = re.compile(r"(?<![\w./:-])(?:/[\w.+@~-]+){2,}")
"""An absolute path of two parts or more, and no part of a URL."""


def without_paths(text: str, own: Iterable[str]) -> str:
    """`text` with the last part alone of each path, but for those that stand in `own`, which who asks has given."""
    given = list(own)

    def shown(path: re.Match[str]) -> str:
        return path[0] if any(path[0] in value for value in given) else path[0].rpartition("/")[2]

    return _PATH.sub(shown, text)
