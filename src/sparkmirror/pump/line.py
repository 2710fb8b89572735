"""A pump's line to the driver: commands in from the control topic, reports out to the receipts topic.

One thread a flow. It must outlive hiccups of the target: an error is kept for the report and it tries again.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from sparkmirror.cluster.client import ClusterClient
from sparkmirror.cluster.topic_log import TopicLog
from sparkmirror.config import FlowConfig
from sparkmirror.messages.control import ControlState, control_topic
from sparkmirror.messages.orders import FlowReport
from sparkmirror.messages.receipts import publish, receipts_topic
from sparkmirror.pump.loop import Loop

_WAIT_MS = 300
_RETRY_S = 0.5
log = logging.getLogger(__name__)
_MOST_UNSENT = 100


class Line:
    """`heard` is called in the loop, with the whole state, after every read that brought something."""

    def __init__(self, flow: FlowConfig, loop: Loop, heard: Callable[[ControlState], None]) -> None:
        self._loop = loop
        self._heard = heard
        self._client = ClusterClient(flow.target, f"{flow.name}|sparkmirror-control")
        self._control = TopicLog(self._client, control_topic(flow.source.alias))
        self._receipts = TopicLog(self._client, receipts_topic(flow.source.alias))
        self._state = ControlState()
        self._reports: queue.SimpleQueue[FlowReport] = queue.SimpleQueue()
        self._unsent: deque[FlowReport] = deque(maxlen=_MOST_UNSENT)
        """What could not be published yet; the oldest are given up first."""
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"line {flow.name}", daemon=True)
        self._thread.start()

    def report(self, report: FlowReport) -> None:
        """Send it soon; never blocks."""
        self._reports.put(report)

    def close(self, timeout_s: float) -> None:
        """Send what is left, and stop."""
        self._closing.set()
        self._thread.join(timeout_s)

    def _run(self) -> None:
        offset = 0
        while not self._closing.is_set():
            try:
                entries, offset = self._control.read(0, offset, wait_ms=_WAIT_MS)
                if entries:
                    self._state.apply(entries)
                    self._loop.post(lambda: self._heard(self._state))
                self._send()
            except Exception as error:  # this thread must not end; the loop's own clock notices the silence
                log.debug("%s", error)
                time.sleep(_RETRY_S)
        with suppress(Exception):  # the epoch's receipts go back through Spark as well
            self._send()
        self._client.close()

    def _send(self) -> None:
        while not self._reports.empty():
            self._unsent.append(self._reports.get())
        if self._unsent:
            publish(self._receipts, self._unsent)
            self._unsent.clear()
