"""Watch over a flow's mirror: it runs while its pumps report. Blocking."""

from __future__ import annotations

from sparkmirror.clock import now_s
from sparkmirror.config import FlowConfig
from sparkmirror.frames.listed_offsets import ends_now
from sparkmirror.pump.messages.receipts import receipts_topic

SILENT_S = 5.0
"""Seconds without a report after which a mirror counts as stopped.

A pump reports each second; between two rounds no pump runs for a second or two.
"""

_ABSENT = -1


class MirrorWatch:
    """Watch one flow's mirror from now on, by the end of its receipts topic."""

    def __init__(self, flow: FlowConfig) -> None:
        self._flow = flow
        self._receipts = (receipts_topic(flow.source.alias), 0)
        self._end = self._end_now()
        self._heard_s = now_s()

    def is_silent(self) -> bool:
        """True if no mirror seems to run. Raises `ClusterUnreachable`."""
        end = self._end_now()
        if end != self._end:
            self._end, self._heard_s = end, now_s()
        return end == _ABSENT or now_s() - self._heard_s >= SILENT_S

    def _end_now(self) -> int:
        return ends_now(self._flow.target, [self._receipts]).get(self._receipts, _ABSENT)
