"""A mirror's rounds, from the orders to the pumps' receipts."""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from pyspark import SparkContext

from sparkmirror.errors import SparkMirrorError
from sparkmirror.events import Event
from sparkmirror.mirror.engine.assignment import PartitionKey
from sparkmirror.mirror.engine.change_watch import ChangeWatch
from sparkmirror.mirror.engine.completion import Completion, send_failure
from sparkmirror.mirror.engine.end_reason import EndReason
from sparkmirror.mirror.engine.flow_driver import FlowDriver
from sparkmirror.mirror.engine.flow_registry import FlowRegistry, at_once
from sparkmirror.mirror.engine.left_out_flows import LeftOutFlows
from sparkmirror.mirror.engine.observer import Observer
from sparkmirror.mirror.engine.planner import ROUND_S, Growth, Planner
from sparkmirror.mirror.engine.round_job import RoundJob
from sparkmirror.mirror.engine.topic_refresh import TopicRefresh
from sparkmirror.pump.messages.control import Phase
from sparkmirror.pump.messages.orders import Receipt

TURN_S = 0.2
"""Seconds between two looks at a running round, or at work that waits."""

REPLAN_S = 300.0
"""Seconds between plans by load.

A round continues if the new plan is the same, or if running tasks can change to it.
"""

AGAIN_S, LONGEST_AGAIN_S = 30.0, 300.0
"""Seconds that a round runs at least without flows that could not be prepared.

Then the round ends once their clusters answer, to try these flows again. The time doubles with each vain attempt.
"""

END_S = 8.0
"""Seconds that a round has to end by itself; then Spark cancels the job.

The time is the pumps' own drain time and a margin.
"""

SAY_S = 1.0
"""Seconds to wait for all flows that are told to end.

If a flow's target hangs, its pumps hear about the end later, or notice the silence.
"""

log = logging.getLogger(__name__)


class RoundRunner:
    """Run a mirror's rounds: `run`, `take_results`, `restart_ended_early`."""

    def __init__(
        self,
        planner: Planner,
        registry: FlowRegistry,
        refresh: TopicRefresh,
        observer: Observer,
        completion: Completion,
        held: Callable[[], list[FlowDriver]],
        show: Callable[[], None],
        stopping: threading.Event,
    ) -> None:
        """Prepare the runner.

        `held` returns the drivers whose flows this process works on, and `show` shows the progress; a round ends soon
        after `stopping` is set.
        """
        self.number = 0
        """Number of rounds started."""
        self.copying: frozenset[str] = frozenset()
        """Flows that this process's pumps are copying."""
        self._planner = planner
        self._registry = registry
        self._refresh = refresh
        self._observer = observer
        self._completion = completion
        self._held = held
        self._show = show
        self._stopping = stopping
        self._again_s = AGAIN_S
        """Seconds until flows left out are tried again."""
        self._changed: set[str] = set()
        """Flows whose partitions differ from this round's orders."""

    def run(self, spark: SparkContext, held: Sequence[FlowDriver], ready: Sequence[FlowDriver]) -> RoundJob:
        """Run a round with the `ready` flows to its end.

        `held` has all flows of this process; a round without some of them ends soon.
        """
        self.number += 1
        self._changed.clear()
        orders = self._planner.orders(self.number, ready)
        partitions = sum(len(flow.routes) for order in orders for flow in order.flows)
        log.info(
            "epoch %d: %d partitions, %d tasks", self.number, partitions, len(orders), extra=Event.EPOCH_STARTED.extra
        )
        self.copying = frozenset(part.flow.name for order in orders for part in order.flows)
        self._observer.slots, self._observer.tasks = self._planner.slots.count, len(orders)
        self._planner.slots.begin(len(orders))
        job = RoundJob(spark, self.number, orders)
        reason = self._wait_for_end(job, spark, held, ready)
        self._end(job, ready)
        if job.ends is None:
            reason = EndReason.FAILED
        log.info("epoch %d: ended: %s", self.number, reason.words, extra=Event.EPOCH_ENDED.extra)
        self._observer.tasks = 0
        for driver in ready:
            driver.view.rounds[reason.value] += 1
        self.copying = frozenset()
        return job

    def _wait_for_end(
        self, job: RoundJob, spark: SparkContext, held: Sequence[FlowDriver], ready: Sequence[FlowDriver]
    ) -> EndReason:
        """Look after a running job until it is done or has to end; return the reason."""
        missing = [driver.flow for driver in held if driver not in ready]
        with LeftOutFlows(missing, self._again_s) as left_out:
            self._again_s = min(2 * self._again_s, LONGEST_AGAIN_S) if missing else AGAIN_S
            return self._watch(job, spark, held, ready, left_out)

    def _watch(
        self,
        job: RoundJob,
        spark: SparkContext,
        held: Sequence[FlowDriver],
        ready: Sequence[FlowDriver],
        left_out: LeftOutFlows,
    ) -> EndReason:
        replan_at = time.monotonic() + REPLAN_S
        ends_at = time.monotonic() + ROUND_S
        changes = ChangeWatch(self._planner, job, self.number, ready)
        while not job.wait(TURN_S):
            if job.has_failed:
                return EndReason.FAILED
            self._show()
            if self._stopping.is_set():
                return EndReason.STOPPED
            if time.monotonic() > ends_at:  # tasks that began later would continue alone for as much longer
                return EndReason.PLANNED
            if left_out.is_back or self._held() != list(held):
                return EndReason.FLOWS
            if not all(driver.leadership.is_active() for driver in ready):  # lost and got back between two looks
                return EndReason.FLOWS
            self._registry.exchange_beats()
            if self._registry.is_due:
                return EndReason.SETTINGS
            if any(driver.reports.ended_early(self.number) for driver in ready):
                return EndReason.PUMP
            self._stop_at_send_failure(ready)
            reason = changes.go_on()
            if reason is None and self._slots_changed(spark, ready):
                reason = changes.begin(EndReason.SLOTS)
            if reason is None and not all([self._refreshed(driver, ready, changes) for driver in ready]):
                reason = changes.begin(EndReason.TOPICS)
            may_replan = not changes.is_under_way and all(driver.topics.checked for driver in ready)
            if reason is None and time.monotonic() > replan_at and may_replan:
                replan_at = time.monotonic() + REPLAN_S
                self._planner.slots.ask(self._registry.tasks_max)
                if not self._planner.is_same_plan(ready):
                    reason = changes.begin(EndReason.LOAD)
            if reason is not None:
                return reason
            self._observer.slots, self._observer.tasks = self._planner.slots.count, len(self._planner.assignment)
        return EndReason.PLANNED

    def _stop_at_send_failure(self, ready: Sequence[FlowDriver]) -> None:
        failures = [(driver.name, send_failure(driver)) for driver in ready]
        lines = [f"{name}: {failure}" for name, failure in failures if failure]
        if lines and not self._stopping.is_set():
            self._completion.abort(lines)
            self._stopping.set()

    def _slots_changed(self, spark: SparkContext, ready: Sequence[FlowDriver]) -> bool:
        return self._planner.slots.changed(
            spark,
            lambda: len(set().union(*(driver.reports.started_tasks(self.number) for driver in ready))),
            lambda: self._planner.is_same_plan(ready),
        )

    def _refreshed(self, driver: FlowDriver, ready: Sequence[FlowDriver], changes: ChangeWatch) -> bool:
        """Run the topic duty if due; True if its outcome needs no other plan."""
        try:
            if self._refresh.refresh(driver):
                self._changed.add(driver.name)
        except (ConnectionError, SparkMirrorError) as error:
            log.warning("flow %s: %s", driver.name, error, extra=Event.TOPIC_REFRESH_FAILED.extra)
        if changes.is_under_way:
            return True
        if driver.orders.is_outlived:  # also if the topics can't be looked at now
            return False
        if driver.name not in self._changed:
            return True
        growth = self._planner.take_in(self.number, driver, ready)
        if growth is not Growth.LATER:
            self._changed.discard(driver.name)
        return growth is not Growth.IMPOSSIBLE

    def _end(self, job: RoundJob, ready: Sequence[FlowDriver]) -> None:
        if not job.wait(0):
            at_once(ready, functools.partial(self._say, phase="ending"), SAY_S)
            if not job.wait(END_S):
                log.warning(
                    "epoch %d did not end by itself and is cancelled", self.number, extra=Event.EPOCH_CANCELLED.extra
                )
                job.cancel()
                job.wait(END_S)

    def _say(self, driver: FlowDriver, phase: Phase) -> None:
        try:
            driver.control.say(self.number, phase)
        except (ConnectionError, SparkMirrorError) as error:
            log.warning("flow %s: %s", driver.name, error, extra=Event.CONTROL_NOT_WRITTEN.extra)

    def take_results(self, job: RoundJob, ready: Sequence[FlowDriver]) -> list[FlowDriver]:
        """Hand an ended job's receipts to the drivers; return the complete drivers.

        Work is complete if the pumps' receipts tell all, and each partition is done or parked.
        """
        receipts: dict[str, dict[PartitionKey, Receipt]] = defaultdict(dict)
        ends = job.ends or []
        told = (receipt for end in ends for receipt in end.receipts)
        for receipt in sorted(told, key=lambda receipt: (receipt.released, -receipt.upstream)):
            key = PartitionKey(receipt.flow, receipt.source_topic, receipt.partition)
            newest = receipts[receipt.flow].get(key)
            # The task that has the partition now knows more, if it has read the position
            receipts[receipt.flow][key] = receipt if newest is None else newest.reaching(receipt)
        complete, has_ended = [], job.ends is not None
        for driver in ready:
            mine, its = receipts[driver.name], [end for end in ends if end.flow == driver.name]
            if has_ended:
                driver.reports.take_receipts(self.number, mine, its)
            in_order = has_ended and all(end.in_order for end in its)
            driver.predecessors.note_end(unclean=not in_order)
            if not driver.predecessors.unclean:
                self._say(driver, "ended")
            if has_ended and all(end.tells_all for end in its) and _covers(mine, driver):
                complete.append(driver)
        return complete

    def restart_ended_early(self, ready: Sequence[FlowDriver]) -> bool:
        """Have drivers become active again whose pumps ended by themselves.

        Returns True if there are any.
        """
        early = False
        for driver in ready:
            why = driver.reports.ended_early(self.number)
            if why:
                log.warning(
                    "flow %s ended in epoch %d: %s", driver.name, self.number, why, extra=Event.FLOW_ENDED_EARLY.extra
                )
                driver.leadership.announce_again()
                early = True
        return early


def _covers(receipts: Mapping[PartitionKey, Receipt], driver: FlowDriver) -> bool:
    """True if all partitions that a flow's pumps copy are done or parked."""
    return driver.pumped().keys() <= receipts.keys() and all(
        receipt.state in ("done", "parked") for receipt in receipts.values()
    )
