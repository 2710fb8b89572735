"""Records of a batch: where they come from upstream."""

from __future__ import annotations

from typing import NamedTuple


class Run(NamedTuple):
    """Records whose source offsets follow one another."""

    upstream: int
    count: int
