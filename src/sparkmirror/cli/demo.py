"""`sparkmirror demo`."""

from __future__ import annotations


def demo() -> None:
    """Two clusters, a flow, and the proof."""
