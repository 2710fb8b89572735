"""Watch pumps' reports, losses and operators' words on a flow."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping

from sparkmirror.config import FlowConfig
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.log_levels import asked_levels
from sparkmirror.mirror.engine.assignment import PartitionKey
from sparkmirror.mirror.engine.driver_control import DriverControl
from sparkmirror.mirror.engine.flow_view import FlowView, PartitionView
from sparkmirror.mirror.engine.loss_watch import LossWatch
from sparkmirror.pump.messages.control import TICK_S, ControlState, control_topic
from sparkmirror.pump.messages.orders import FlowEnd, FlowReport, Receipt
from sparkmirror.pump.messages.receipts import read_reports, receipts_topic

WATCH_S = 0.4
"""Seconds between readings of the receipts topic."""

_WAIT_MS = 600
"""Milliseconds for which a reading waits for a report.

Pumps report each second, so hardly a reading is in vain.
"""

CLOCKS_MS = 60_000
"""Milliseconds by which the driver's clock may be ahead of the pumps' clocks.

Reports from other drivers' pumps are left out anyway.
"""

_FAILED_WATCH_PAUSE_S = 1.0

log = logging.getLogger(__name__)


class ReportWatch:
    """Follow one flow's receipts topic, loss ledger and control topic.

    `watch` runs in its own thread, also while this process stands by; the results are in the flow's view.
    """

    def __init__(
        self, flow: FlowConfig, incarnation: str, view: FlowView, control: DriverControl, held: Callable[[], bool]
    ) -> None:
        self.heard = ControlState()
        """The control topic's state, kept also while this process stands by."""
        self.loss_watch = LossWatch(flow)
        self._flow = flow
        self._incarnation = incarnation
        self._view = view
        self._control = control
        self._held = held
        self._ended_round = 0
        """Newest round whose final receipts are known."""
        self._taking = threading.Lock()
        """Lock against a report amid a round's final receipts.

        The receipts know more.
        """
        self._began_ms = int(time.time() * 1000)

    def begin(self) -> None:
        """Read the loss ledger, and forget the receipts before the lease."""
        self.loss_watch.start()
        for view in list(self._view.partitions.values()):
            view.forget()

    def watch(self, closing: threading.Event) -> None:
        """Follow the topics until `closing` is set."""
        flow = self._flow
        client = ClusterClient(flow.target, f"{flow.name}|sparkmirror-watch")
        control = TopicLog(client, control_topic(flow.source.alias))
        follow_at, heard_at, control_offset = 0.0, 0.0, 0
        receipts = TopicLog(client, receipts_topic(flow.source.alias))
        offset: int | None = None
        while not closing.wait(WATCH_S):
            try:
                if offset is None:  # pumps may have reported already, and later report only changes
                    offset = receipts.since(0, self._began_ms - CLOCKS_MS)
                entries, offset = receipts.read(0, offset, wait_ms=_WAIT_MS)
                for report in read_reports(entries):
                    if report.incarnation == self._incarnation and self._is_of_this_driver(report.epoch):
                        self._note(report)
                self.loss_watch.read()
                if time.monotonic() >= heard_at:
                    heard_at = time.monotonic() + TICK_S
                    entries, control_offset = control.read(0, control_offset)
                    self.heard.apply(entries)
                    if not closing.is_set():  # a closed flow asks for no levels
                        asked_levels.follow(flow.name, self.heard.log_levels)
                if self._held() and time.monotonic() >= follow_at:
                    follow_at = time.monotonic() + TICK_S
                    self._control.follow_done_topics(control, self._view.receipts)
            except Exception as error:  # figures may be late, but this thread must not end
                log.debug("flow %s: %s", flow.name, error)
                closing.wait(_FAILED_WATCH_PAUSE_S)
        client.close()

    def _is_of_this_driver(self, round_number: int) -> bool:
        first = self._control.first_round
        return first is not None and round_number >= first

    def _note(self, report: FlowReport) -> None:
        with self._taking:
            is_newest = self._view.note(report)
            if not is_newest or report.epoch <= self._ended_round:
                self._view.take_counts(report)
                return
            self._view.take_report(self._flow.name, report)
        for receipt in report.receipts:
            self._control.done_topics.reach(receipt)

    def take_receipts(
        self, round_number: int, receipts: Mapping[PartitionKey, Receipt], ends: Iterable[FlowEnd]
    ) -> None:
        """Take each partition's final receipt in a round, and its pumps' ends."""
        with self._taking:
            self._ended_round = round_number
            for key, receipt in receipts.items():
                self._view.partitions.setdefault(key, PartitionView()).end_with(receipt)
            self._view.end_round(round_number, ends)
        for receipt in receipts.values():
            self._control.done_topics.reach(receipt)

    def started_tasks(self, round_number: int) -> set[int]:
        return {
            report.task
            for report in list(self._view.pumps.values())
            if report.epoch == round_number and report.incarnation == self._incarnation
        }

    def ended_early(self, round_number: int) -> str:
        """Return why a round's pump ended this flow by itself; empty if none did."""
        reports = [report for report in list(self._view.pumps.values()) if report.epoch == round_number]
        return next((report.ended_because for report in reports if report.ended and report.ended_because), "")

    def close(self) -> None:
        self.loss_watch.close()
