"""Report channel to the driver: receipts and figures, in the receipts topic.

Each flow has a thread and a connection for its reports: a hanging leader of the receipts topic must not keep the pump
from hearing the driver (`control_channel`). After an error the thread tries again, with the unsent reports kept.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import deque
from contextlib import suppress

from sparkmirror.config import FlowConfig
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.pump.messages.orders import FlowReport
from sparkmirror.pump.messages.receipts import publish, receipts_topic

_WAIT_S = 0.3
_RETRY_S = 0.5
_MOST_UNSENT = 100
log = logging.getLogger(__name__)


class ReportChannel:
    """One flow's report channel."""

    def __init__(self, flow: FlowConfig) -> None:
        self._client = ClusterClient(flow.target, f"{flow.name}|sparkmirror-reports")
        self._receipts = TopicLog(self._client, receipts_topic(flow.source.alias))
        self._reports: queue.SimpleQueue[FlowReport] = queue.SimpleQueue()
        self._unsent: deque[FlowReport] = deque(maxlen=_MOST_UNSENT)
        """Reports that could not be published yet; the oldest are given up first."""
        self._gave_up = False
        self._gap = threading.Event()
        """Set once a report is published after others were given up."""
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"report channel {flow.name}", daemon=True)
        self._thread.start()

    def report(self, report: FlowReport) -> None:
        """Have a report sent soon; never blocks."""
        self._reports.put(report)

    def take_gap(self) -> bool:
        """Return True once the topic lacks reports that were given up."""
        gap = self._gap.is_set()
        self._gap.clear()
        return gap

    def close(self, timeout_s: float) -> None:
        """Send the remaining reports, and stop."""
        self._closing.set()
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                self._take(_WAIT_S)
                self._send()
            except Exception as error:  # the thread must not end
                log.debug("%s", error)
                time.sleep(_RETRY_S)
        with suppress(Exception):  # Spark brings the round's receipts to the driver as well
            self._send()
        self._client.close()

    def _take(self, timeout_s: float) -> None:
        with suppress(queue.Empty):
            self._keep(self._reports.get(timeout=timeout_s))

    def _keep(self, report: FlowReport) -> None:
        self._gave_up |= len(self._unsent) == _MOST_UNSENT
        self._unsent.append(report)

    def _send(self) -> None:
        while not self._reports.empty():
            self._keep(self._reports.get())
        if self._unsent:
            publish(self._receipts, self._unsent)
            self._unsent.clear()
            if self._gave_up:
                self._gave_up = False
                self._gap.set()
