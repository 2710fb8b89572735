"""End of a partition's copy."""

from __future__ import annotations

from typing import NamedTuple


class CopyEnd(NamedTuple):
    """Source offsets at which a copy ends; None: no end."""

    until: int | None
    """The order's end (`--once`)."""
    done_at: int | None
    """Offset at which writers moved to the target."""

    @property
    def goal(self) -> int | None:
        """Offset that comes first."""
        return min((end for end in self if end is not None), default=None)
