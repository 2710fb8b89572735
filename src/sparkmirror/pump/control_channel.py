"""Control channel from the driver: commands, as the control topic tells.

Each flow has a thread for its channel. The thread must outlive the target's hiccups: after an error the thread tries
again. It waits for nothing else, as a pump that hears nothing for a while ends.
"""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections.abc import Callable, Sequence

from sparkmirror.config import FlowConfig
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import LogEntry, TopicLog
from sparkmirror.pump.loop import Loop
from sparkmirror.pump.messages.control import ControlState, control_topic

_WAIT_MS = 300
_RETRY_S = 0.5
log = logging.getLogger(__name__)


class ControlChannel:
    """One flow's control channel.

    After every read with new records the loop calls `heard` with the whole state, and True if it may have changed. The
    driver's ticks change nothing.
    """

    def __init__(self, flow: FlowConfig, loop: Loop, heard: Callable[[ControlState, bool], None]) -> None:
        self._loop = loop
        self._heard = heard
        self._client = ClusterClient(flow.target, f"{flow.name}|sparkmirror-control")
        self._control = TopicLog(self._client, control_topic(flow.source.alias))
        self._state = ControlState()
        """The loop's: it is read there while the thread waits for the next records."""
        self._is_first = True
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"control channel {flow.name}", daemon=True)
        self._thread.start()

    def close(self, timeout_s: float) -> None:
        self._closing.set()
        self._thread.join(timeout_s)

    def _run(self) -> None:
        offset = 0
        while not self._closing.is_set():
            try:
                entries, offset = self._control.read(0, offset, wait_ms=_WAIT_MS)
                if entries:
                    self._loop.post(functools.partial(self._take, entries))
            except Exception as error:  # the thread must not end; the pump notices the driver's silence by its clock
                log.debug("%s", error)
                time.sleep(_RETRY_S)
        self._client.close()

    def _take(self, entries: Sequence[LogEntry]) -> None:
        changed = self._state.apply(entries) or self._is_first
        self._is_first = False
        self._heard(self._state, changed)
