"""Pump: one Spark task's work for one round."""

from __future__ import annotations

import logging
import os
import resource
import socket
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

from sparkmirror.clock import now_s, wall_ms
from sparkmirror.events import Event
from sparkmirror.kafka.cluster.expected_clusters import EXPECTED
from sparkmirror.log_levels import asked_levels
from sparkmirror.pump.control_channel import ControlChannel
from sparkmirror.pump.flow_pump import FlowPump
from sparkmirror.pump.loop import Loop
from sparkmirror.pump.messages.control import SILENCE_S, ControlState
from sparkmirror.pump.messages.figures import PartitionFigures
from sparkmirror.pump.messages.orders import FlowEnd, FlowOrder, FlowReport, PumpOrder, Receipt
from sparkmirror.pump.report_channel import ReportChannel
from sparkmirror.task_lines import set_up_task_logging

MEMORY_BYTES = 64 << 20
"""Memory for data on the way, in all flows of a pump together.

With Python the process stays below 256 MB.
"""

DRAIN_S = 5.0
"""An ending round's longest wait for acknowledgements."""

RECEIPTS_AT_ONCE = 450
"""Most receipts in one report, which is one record.

A receipt takes some 470 bytes, and a record may have a million bytes.
"""

_TURN_S = 0.5
_CHECK_S = 1.0
_REPORT_S = 1.0

log = logging.getLogger(__name__)


class _PumpRun:
    """One flow in the pump, with the flow's control channel."""

    def __init__(self, order: PumpOrder, flow: FlowOrder, loop: Loop, pump: str, memory_bytes: int) -> None:
        self._order = order
        self._flow = flow
        self._loop = loop
        self._pump_name = pump
        self._heard_at = loop.now
        """Time at which the pump last heard from this round's driver."""
        self._spoke_at = -1
        """Offset of the driver's newest word in the control topic."""
        self._ended_because = ""
        self._taken_over = False
        self._end_told = False
        self._cpu_began_s = time.process_time()
        EXPECTED.expect(loop, flow.flow, source=flow.source_cluster_id, target=flow.cluster_id)
        self.flow_pump = FlowPump(flow, loop, memory_bytes=memory_bytes, task=order.task, attempt=order.attempt)
        self._reports = ReportChannel(flow.flow)
        self._channel = ControlChannel(flow.flow, loop, self._hear)
        self.report()

    def _hear(self, state: ControlState, changed: bool) -> None:
        ours = state.rounds.get(self._order.incarnation)
        rank = self._flow.leader_rank
        if rank >= 0 and state.leader is not None and state.leader.rank > rank:
            self._taken_over = True
            self.end("another process leads this flow now")
        elif ours is not None and (ours.number, ours.phase != "running") > (self._order.epoch, False):
            self.end("")
        spoke_at = state.spoke_at.get(self._order.incarnation, -1)
        if spoke_at != self._spoke_at:  # what others write doesn't tell that the driver lives
            self._spoke_at, self._heard_at = spoke_at, self._loop.now
        if not changed:
            return
        incarnation, epoch, task = self._order.incarnation, self._order.epoch, self._order.task
        if state.words_of(task, incarnation, epoch).attempt > self._order.attempt:
            self._taken_over = True
            self.end("")
        self.flow_pump.follow_moves(state, incarnation, epoch, task)
        if (added := state.added_to(incarnation, epoch)) is not None:
            self.flow_pump.add(added.routes.get(task, ()))
        asked_levels.follow(self.flow_pump.name, state.log_levels)
        self.flow_pump.control(state)

    def end(self, why: str) -> None:
        if why and not self._ended_because:
            log.warning("%s: %s", self.flow_pump.name, why, extra=Event.PUMP_ENDED_EARLY.extra)
            self._ended_because = why
        self.flow_pump.end(DRAIN_S)

    def tell_end(self) -> None:
        """Report at once if this flow has ended by itself.

        The pump's other flows may continue for long.
        """
        if self._ended_because and self.flow_pump.ended and not self._end_told:
            self._end_told = True
            self.report(ended=True)

    def check(self) -> None:
        self.flow_pump.check()
        if self.flow_pump.fenced:
            self._taken_over = True
            self.end(self.flow_pump.fenced)
        if self._loop.now - self._heard_at > SILENCE_S:
            self.end(f"no word from the driver for {SILENCE_S:.0f} s")

    def report(self, *, ended: bool = False) -> None:
        ended = ended or self._end_told
        flow, tally = self.flow_pump, self.flow_pump.tally
        if self._reports.take_gap():
            flow.tell_again()
        news = flow.news(all_again=ended)
        report = FlowReport(
            epoch=self._order.epoch,
            task=self._order.task,
            pump=self._pump_name,
            incarnation=self._order.incarnation,
            at_ms=wall_ms(),
            records=tally.records,
            bytes=tally.bytes,
            partitions=len(flow.copies),
            lag=news.lag,
            latency_ms=tally.take_latency_ms(),
            memory_bytes=resident_bytes(),
            host=socket.gethostname(),
            pid=os.getpid(),
            cpu_s=time.process_time() - self._cpu_began_s,
            in_flight=news.in_flight,
            fetch_ms=tally.source.take_mean_wait_ms(),
            lines=tuple(flow.lines()),
            connections=(tally.source.connections, tally.target.connections),
            totals=tally.totals,
            waiting=news.waiting,
            ended=ended,
            ended_because=self._ended_because,
        )
        for part in with_receipts(report, news.changed, flow.figures(news.changed)):
            self._reports.report(part)

    def close(self) -> FlowEnd:
        flow = self.flow_pump
        has_rival = self._taken_over or flow.has_rival
        end = FlowEnd(
            flow=flow.name,
            pump=self._pump_name,
            receipts=tuple(flow.receipts()),
            in_doubt=has_rival or flow.may_be_written_to,
            has_rival=has_rival,
        )
        self.report(ended=True)
        self._reports.close(2.0)
        self._channel.close(2.0)
        flow.close()
        return end


def with_receipts(
    report: FlowReport, receipts: Sequence[Receipt], figures: Sequence[PartitionFigures] = ()
) -> Iterator[FlowReport]:
    """Yield a report with its receipts and figures, in several parts if necessary.

    Each part becomes one record, and a record has a largest size. A part has the figures of its receipts' partitions.
    """
    by_source = {(each.source_topic, each.partition): each for each in figures}
    for first in range(0, max(len(receipts), 1), RECEIPTS_AT_ONCE):
        part = tuple(receipts[first : first + RECEIPTS_AT_ONCE])
        sources = dict.fromkeys((receipt.source_topic, receipt.partition) for receipt in part)
        theirs = tuple(by_source[source] for source in sources if source in by_source)
        yield report.model_copy(update={"receipts": part, "figures": theirs})


def resident_bytes() -> int:
    """Return this process's resident memory in bytes.

    The peak if the system does not tell the present value.
    """
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def pump(order: PumpOrder) -> list[FlowEnd]:
    """Pump until the round ends; return each flow's end."""
    set_up_task_logging()
    loop = Loop()
    name = f"{order.epoch}/{order.task}/{uuid.uuid4().hex[:8]}"
    runs = [_PumpRun(order, flow, loop, name, MEMORY_BYTES // len(order.flows)) for flow in order.flows]
    deadline = now_s() + order.seconds
    next_check = next_report = loop.now
    try:
        while not all(run.flow_pump.ended for run in runs):
            for run in runs:
                run.flow_pump.flush()
                if run.flow_pump.finished:
                    run.end("")
            loop.turn(_TURN_S)
            if loop.now >= next_check:
                next_check = loop.now + _CHECK_S
                for run in runs:
                    run.check()
                    run.tell_end()
                    if loop.now > deadline:
                        run.end("")
            if loop.now >= next_report:
                next_report = loop.now + _REPORT_S
                for run in runs:
                    run.report()
        return [run.close() for run in runs]
    finally:
        for run in runs:  # Spark may use this process again, for other flows
            asked_levels.follow(run.flow_pump.name, {})
        loop.close()
        EXPECTED.release(loop)
