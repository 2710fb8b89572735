"""The mirror: all flows of one configuration as one Spark application, epoch after epoch."""

from __future__ import annotations

import functools
import logging
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from contextlib import suppress

from pyspark.sql import SparkSession

from sparkmirror.config import MirrorConfig
from sparkmirror.durable.losses import LossKind
from sparkmirror.engine.assignment import Assignment, PartitionKey, plan
from sparkmirror.engine.duties import LAST_TURNS_S
from sparkmirror.engine.end_reason import EndReason
from sparkmirror.engine.epoch import EpochJob
from sparkmirror.engine.flow_driver import FlowDriver
from sparkmirror.engine.growth import grow, grown, shares
from sparkmirror.engine.observer import Observer
from sparkmirror.engine.progress import FlowProgress, ProgressMeter
from sparkmirror.engine.publishing import Publishing
from sparkmirror.engine.roster import Roster, at_once
from sparkmirror.engine.session import guard_secrets, open_session, starts_early
from sparkmirror.engine.slots import Slots
from sparkmirror.engine.surroundings import Surroundings
from sparkmirror.errors import ClusterUnreachable, ConfigError, CopyIncomplete, SetupError, SparkMirrorError
from sparkmirror.events import Event
from sparkmirror.messages.orders import PumpOrder, Receipt

REPLAN_S = 300.0
"""How often the partitions are planned anew, by load. An epoch whose plan stays what it was goes on."""

EPOCH_S = 86_400.0
"""How long an epoch lasts at most: what its tasks hold (connections, claims) is built anew each day."""

END_S = 8.0
"""How long an epoch may take to end by itself before it is cancelled: the pumps' own drain time and a margin."""

AGAIN_S = 30.0
"""How long an epoch runs without the flows whose clusters were away when it was planned."""

SAY_S = 1.0
"""How long all flows are waited for that are told to end; one whose target hangs hears it later, or its silence."""

TRANSLATE_S = 60.0
"""With `once`, when all is copied: how long the last turns of the duties may take; they translate the groups."""

STAND_BY_SESSIONS = 5
"""With `once`: how many session timeouts to wait for the lease. A dead holder is replaced within one."""

INCOMPLETE = frozenset({LossKind.EXPIRED, LossKind.TRUNCATED})
"""With `once`: losses that make the copy incomplete, though it went on behind them (`docs/losses.md`)."""

_TURN_S = 0.2
_PROGRESS_S, _LONGEST_PROGRESS_S = 0.5, 2.0
_PROGRESS_SHARE = 0.005
"""Of a core: with many partitions progress is shown less often."""
_AFTER_FAILURE_S, _LONGEST_PAUSE_S = 1.0, 30.0
_MOST_FAILURES = 5

log = logging.getLogger(__name__)

OnProgress = Callable[[Sequence[FlowProgress]], None]


class Mirror:
    """Run it with `run`; `stop`, from any thread or a signal handler, ends it within seconds.

    `once`: copy until every partition has caught up with the end offset seen at the start.
    `use_lease`: False lets several processes work on one flow at the same time; only tests want that.
    `spark`: a session of the caller's, which is left open; else one is made as the configuration says.
    """

    def __init__(
        self,
        config: MirrorConfig,
        *,
        once: bool = False,
        use_lease: bool = True,
        on_progress: OnProgress | None = None,
        spark: SparkSession | None = None,
    ) -> None:
        self._config = config
        self._once = once
        self._on_progress = on_progress
        self._incarnation = uuid.uuid4().hex
        self.roster = Roster(
            config.model_copy(update={"beats": ()}) if once else config,
            lambda flow: FlowDriver(flow, self._incarnation, use_lease=use_lease, once=once),
            lambda flow: guard_secrets(flow, config.spark, config.path),
        )
        self._meters = {driver.name: ProgressMeter(driver) for driver in self.drivers}
        self._surroundings = Surroundings(lambda: [one.flow for one in self.drivers], self._spark_now, lease=use_lease)
        self.observer = Observer(lambda: self.drivers, self._meters, self._state, self._surroundings)
        """Tells what is going on."""
        self._publishing = Publishing(self.observer.snapshot)
        self._stop = threading.Event()
        self._given_session = spark
        self._session: Future[SparkSession] | None = None
        self._ticked = time.monotonic()
        self.epoch = 0
        """How many epochs were started."""
        self._failures = 0
        self._slots = Slots(config.spark, self._asked())
        self._assignment: Assignment = ()
        self._refresh_at: dict[str, float] = {}
        self._progress_at = 0.0
        self._done: set[str] = set()
        self._missing: defaultdict[str, list[str]] = defaultdict(list)
        self._aborted: list[str] = []
        self._changed: set[str] = set()
        """Flows that have other partitions than this epoch's orders say."""
        self.copying: frozenset[str] = frozenset()
        """Flows that pumps of this process are at work on."""
        self.troubles: dict[str, str] = {}
        """Flows that can't be worked on now, and why in one line."""

    @property
    def drivers(self) -> list[FlowDriver]:
        """Of the flows that are worked on, or stood by for."""
        return self.roster.drivers

    def change(self, config: MirrorConfig, anew: Collection[str] = ()) -> None:
        """Take another configuration, from any thread; returns at once.

        Flows that stay the same keep their drivers, those that changed or are named by `anew` are ended in order
        and begin anew, others are closed. Spark stays as it was started. What can't be opened is in `roster.failed`.
        """
        self._config = config.model_copy(update={"spark": self._config.spark})
        self.roster.change(config, anew)

    @property
    def tick_age_s(self) -> float:
        """How long ago the control loop turned last; it does so several times a second unless something holds it up."""
        return time.monotonic() - self._ticked

    def tasks(self, flow: str) -> list[tuple[PartitionKey, ...]]:
        """What each of the tasks that serve a flow copies."""
        parts = [tuple(key for key in keys if key.flow == flow) for keys in self._assignment]
        return [part for part in parts if part]

    def _start_session(self) -> Future[SparkSession]:
        """Start Spark in a thread that doesn't hold up the end of the process."""
        session: Future[SparkSession] = Future()

        def start() -> None:
            try:
                session.set_result(self._given_session or open_session(self._config.spark, self._slots.count))
            except Exception as error:
                session.set_exception(error)

        threading.Thread(target=start, name="spark", daemon=True).start()
        return session

    def _asked(self) -> int:
        return sum(flow.tasks_max for flow in self._config.flows)

    def stop(self) -> None:
        """End the epoch, give the leases up, and let `run` return."""
        self._stop.set()

    def run(self) -> None:
        """Mirror until stopped or, with `once`, done.

        Raises `ClusterUnreachable` or `ConfigError` before anything is copied, and `CopyIncomplete` where
        `once` could not copy everything, or a partition can't be copied and that ends the run (`LegacyConfig`).
        """
        try:
            self.roster.open()
            self.roster.start()
            self._surroundings.start()
            started = time.monotonic()
            while not self._stop.is_set() and not self._finished():
                self._exchange()
                self._publishing.follow(driver.flow for driver in self.drivers)
                held = self._held()
                # On this machine a waiting Spark costs memory only, and no takeover has to wait for it.
                if self._session is None and (held or (self.drivers and starts_early(self._config.spark))):
                    self._session = self._start_session()
                if not held:
                    self._stand_by(started)
                    continue
                ready = self._prepare(held)
                if not ready:
                    continue
                if any(driver.partitions() for driver in ready):
                    spark = self._spark_when_up()
                    if spark is not None:
                        self._run_epoch(spark, held, ready)
                else:
                    self._idle(ready)
        finally:
            self._close()
        self._account()

    def _exchange(self) -> None:
        """Between epochs: take in what `change` asked for."""
        self.roster.exchange_beats()
        if not self.roster.is_due:
            return
        for driver in self.roster.exchange():
            self._meters[driver.name] = ProgressMeter(driver)
            self._refresh_at.pop(driver.name, None)
        self._slots.ask(self._asked())

    def _stand_by(self, since: float) -> None:
        self._show()
        session_s = max((driver.flow.group_session_timeout_ms for driver in self.drivers), default=0) / 1000
        if self._once and time.monotonic() - since > STAND_BY_SESSIONS * session_s:
            waiting = [driver for driver in self.drivers if driver.name not in self._done]
            raise CopyIncomplete("\n".join(f"{driver.name}: {driver.standing_by}" for driver in waiting))
        self._stop.wait(_TURN_S)

    def _spark_when_up(self) -> SparkSession | None:
        """Wait for Spark, but not longer than until we are stopped."""
        while self._session is not None and not self._session.done():
            self._show()
            if self._stop.wait(_TURN_S):
                return None
        return self._session.result() if self._session is not None else None

    def _spark_now(self) -> SparkSession | None:
        up = self._session is not None and self._session.done() and self._session.exception() is None
        return self._session.result() if self._session is not None and up else None

    # --- between epochs -------------------------------------------------------------------------

    def _held(self) -> list[FlowDriver]:
        return [driver for driver in self.drivers if driver.held() and driver.name not in self._done]

    def _finished(self) -> bool:
        return self._once and len(self._done) == len(self.drivers)

    def _prepare(self, held: Sequence[FlowDriver]) -> list[FlowDriver]:
        """The flows that can be worked on now; one whose clusters are away does not hold up the others."""
        ready = []
        errors: list[Exception] = []
        for driver in held:
            try:
                driver.take_charge()
                self.troubles.pop(driver.name, None)
                if not driver.looked_over:
                    self._refresh_at.pop(driver.name, None)
                self._refresh(driver)
                if driver.partitions():
                    driver.say(self.epoch + 1, "running")
                ready.append(driver)
            except (ConnectionError, SparkMirrorError) as error:
                log.warning("flow %s: %s", driver.name, error, extra=Event.FLOW_NOT_READY.extra)
                self.troubles[driver.name] = str(error)
                errors.append(error)
        if errors and (not ready or self._once):
            self._fail_or_wait(errors[0])
            return []
        return ready

    def _fail_or_wait(self, error: Exception) -> None:
        """A cluster may be away for a while, and a standby must outlive that; what is wrong, or due once, ends."""
        self._failures += 1
        if isinstance(error, ConfigError) or (self._once and self._failures >= _MOST_FAILURES):
            raise error if isinstance(error, SparkMirrorError) else ClusterUnreachable(str(error)) from error
        self._pause()

    def _pause(self) -> None:
        """After failures in a row, the longer the more there were; what is asked for meanwhile does not wait."""
        until = time.monotonic() + min(_AFTER_FAILURE_S * 2 ** (self._failures - 1), _LONGEST_PAUSE_S)
        while time.monotonic() < until and not self.roster.is_due and not self._stop.wait(_TURN_S):
            self._show()

    def _refresh(self, driver: FlowDriver) -> bool:
        """Run the topic duty if it is due; whether it changed what there is to pump."""
        now = time.monotonic()
        if now < self._refresh_at.get(driver.name, 0.0) and not driver.done_topics.changed:
            return False
        interval = driver.flow.refresh_topics_interval_seconds
        self._refresh_at[driver.name] = now + min(interval, AGAIN_S)  # if it fails now
        changed = driver.sync_topics()
        if not driver.takeover.waiting:
            self._refresh_at[driver.name] = now + interval if driver.flow.refresh_topics_enabled else float("inf")
        return changed

    def _idle(self, held: Sequence[FlowDriver]) -> None:
        """Nothing matches yet: look again at the refresh interval, or give up if it is to be done once."""
        self._show()
        if self._once:
            for driver in held:
                self._finish(driver)
        else:
            self._stop.wait(_TURN_S)

    def _finish(self, driver: FlowDriver) -> None:
        """With `once`: nothing is left to do for a flow."""
        self._done.add(driver.name)
        try:
            driver.read_losses()
        except (ConnectionError, SparkMirrorError) as error:
            self._missing[driver.name].append(f"{driver.name}: whether anything was lost is not known: {error}")
        if driver.flow.copies and not driver.partitions() and not driver.owed and not driver.done_topics.released:
            topics = ",".join(driver.flow.topics)
            self._missing[driver.name].append(f"{driver.name}: no topic of the source matches topics={topics}")

    # --- an epoch -------------------------------------------------------------------------------

    def _run_epoch(self, spark: SparkSession, held: Sequence[FlowDriver], ready: Sequence[FlowDriver]) -> None:
        self.epoch += 1
        self._changed.clear()
        orders = self._orders(ready)
        partitions = sum(len(flow.routes) for order in orders for flow in order.flows)
        log.info(
            "epoch %d: %d partitions, %d tasks", self.epoch, partitions, len(orders), extra=Event.EPOCH_STARTED.extra
        )
        self.copying = frozenset(part.flow.name for order in orders for part in order.flows)
        self.observer.slots, self.observer.tasks = self._slots.count, len(orders)
        self._slots.begin(len(orders))
        job = EpochJob(spark, self.epoch, orders)
        reason = self._wait_for_end(job, spark, held, ready)
        self._end(job, ready)
        if job.receipts is None:
            reason = EndReason.FAILED
        log.info("epoch %d: ended: %s", self.epoch, reason.words, extra=Event.EPOCH_ENDED.extra)
        self.observer.tasks = 0
        for driver in ready:
            driver.view.epochs[reason.value] += 1
        self.copying = frozenset()
        self._settle(job, ready)

    def _wait_for_end(
        self, job: EpochJob, spark: SparkSession, held: Sequence[FlowDriver], ready: Sequence[FlowDriver]
    ) -> EndReason:
        """Look after a job that runs until it is done or shall end, and return why."""
        again_at = time.monotonic() + AGAIN_S if len(ready) < len(held) else float("inf")
        replan_at = time.monotonic() + REPLAN_S
        while not job.wait(_TURN_S):
            self._show()
            if self._stop.is_set():
                return EndReason.STOPPED
            if time.monotonic() > again_at or self._held() != list(held):
                return EndReason.FLOWS
            self.roster.exchange_beats()
            if self.roster.is_due:
                return EndReason.SETTINGS
            if any(driver.ended_early(self.epoch) for driver in ready):
                return EndReason.PUMP
            self._stop_at_send_failure(ready)
            if self._slots.changed(spark, lambda: len(self._started(ready)), lambda: self._is_same_plan(ready)):
                return EndReason.SLOTS
            if not all([self._refreshed(driver, ready) for driver in ready]):
                return EndReason.TOPICS
            if time.monotonic() > replan_at:
                replan_at = time.monotonic() + REPLAN_S
                self._slots.ask(self._asked())
                if not self._is_same_plan(ready):
                    return EndReason.LOAD
        return EndReason.PLANNED

    def _stop_at_send_failure(self, ready: Sequence[FlowDriver]) -> None:
        failed = [f"{driver.name}: {driver.send_failure}" for driver in ready if driver.send_failure]
        if failed and not self._stop.is_set():
            self._aborted = failed
            self.stop()

    def _refreshed(self, driver: FlowDriver, ready: Sequence[FlowDriver]) -> bool:
        """Run the topic duty if it is due; whether the epoch can go on with what there is now."""
        try:
            if self._refresh(driver):
                self._changed.add(driver.name)
        except (ConnectionError, SparkMirrorError) as error:
            log.warning("flow %s: %s", driver.name, error, extra=Event.TOPIC_REFRESH_FAILED.extra)
        return driver.name not in self._changed or self._takes_in(driver, ready)

    def _takes_in(self, driver: FlowDriver, ready: Sequence[FlowDriver]) -> bool:
        """Hand new partitions to tasks that run: the end of an epoch would hold up all the others."""
        if not driver.only_grown:
            return False
        taken = grow(self._assignment, driver.name, (load for one in ready for load in one.loads()))
        if taken is None:
            return False
        if not taken.keys() <= driver.started_tasks(self.epoch):
            return True  # they hear of it when they have said that they run
        assignment = grown(self._assignment, taken)
        try:
            driver.add(self.epoch, taken, shares(assignment, driver.name))
        except (ConnectionError, SparkMirrorError) as error:  # nobody knows whether they have heard it
            log.warning("flow %s: %s", driver.name, error, extra=Event.CONTROL_NOT_WRITTEN.extra)
            return False
        self._assignment = assignment
        driver.tasks = _tasks(assignment, driver.name)
        self._changed.discard(driver.name)
        log.info(
            "epoch %d: %d partitions more", self.epoch, sum(map(len, taken.values())), extra=Event.EPOCH_GROWN.extra
        )
        return True

    def _plan(self, held: Sequence[FlowDriver]) -> Assignment:
        loads = [load for driver in held for load in driver.loads()]
        caps = {driver.name: driver.flow.tasks_max for driver in held}
        return plan(loads, self._slots.count, caps, self._assignment)

    def _is_same_plan(self, held: Sequence[FlowDriver]) -> bool:
        return self._plan(held) == self._assignment

    def _orders(self, held: Sequence[FlowDriver]) -> list[PumpOrder]:
        self._assignment = self._plan(held)
        by_name = {driver.name: driver for driver in held}
        parts = {driver.name: shares(self._assignment, driver.name) for driver in held}
        for driver in held:
            driver.forget_orders()
            driver.tasks = _tasks(self._assignment, driver.name)
        orders = []
        for task, keys in enumerate(self._assignment):
            by_flow: dict[str, list[PartitionKey]] = defaultdict(list)
            for key in keys:
                by_flow[key.flow].append(key)
            orders.append(
                PumpOrder(
                    epoch=self.epoch,
                    task=task,
                    incarnation=self._incarnation,
                    seconds=EPOCH_S,
                    flows=tuple(by_name[flow].order(keys, parts[flow][task]) for flow, keys in by_flow.items()),
                )
            )
        return orders

    def _started(self, held: Sequence[FlowDriver]) -> set[int]:
        return set().union(*(driver.started_tasks(self.epoch) for driver in held))

    def _end(self, job: EpochJob, held: Sequence[FlowDriver]) -> None:
        if not job.wait(0):
            at_once(held, functools.partial(self._say, phase="ending"), SAY_S)
            if not job.wait(END_S):
                log.warning(
                    "epoch %d did not end by itself and is cancelled", self.epoch, extra=Event.EPOCH_CANCELLED.extra
                )
                job.cancel()
                job.wait(END_S)

    def _settle(self, job: EpochJob, held: Sequence[FlowDriver]) -> None:
        receipts: dict[str, dict[PartitionKey, Receipt]] = defaultdict(dict)
        for receipt in job.receipts or ():
            receipts[receipt.flow][PartitionKey(receipt.flow, receipt.source_topic, receipt.partition)] = receipt
        for driver in held:
            if job.receipts is not None:
                driver.take_receipts(self.epoch, receipts[driver.name])
            in_order = job.receipts is not None and not any(one.in_doubt for one in receipts[driver.name].values())
            driver.note_end(unclean=not in_order)
            if not driver.unclean:
                self._say(driver, "ended")
            mine = receipts[driver.name]
            complete = driver.partitions().keys() <= mine.keys() and all(map(_is_settled, mine.values()))
            if self._once and complete and in_order:
                self._finish(driver)
        self._show(now=True)
        early = False
        for driver in held:
            why = driver.ended_early(self.epoch)
            if why:
                log.warning(
                    "flow %s ended in epoch %d: %s", driver.name, self.epoch, why, extra=Event.FLOW_ENDED_EARLY.extra
                )
                driver.take_charge_again()
                early = True
        if job.receipts is not None:
            self._failures = 0
            if early:
                self._stop.wait(_AFTER_FAILURE_S)
        elif not self._stop.is_set():
            self._failures += 1
            if self._once and self._failures >= _MOST_FAILURES:
                raise CopyIncomplete(f"{self._failures} epochs in a row failed, the last one so: {job.failure}")
            if not job.spark_lives():
                raise SetupError(f"Spark has ended ({job.failure}); start sparkmirror again")
            log.warning(
                "epoch %d failed and is planned anew: %s", self.epoch, job.failure, extra=Event.EPOCH_FAILED.extra
            )
            self._pause()

    def _say(self, driver: FlowDriver, phase: str) -> None:
        try:
            driver.say(self.epoch, "ending" if phase == "ending" else "ended")
        except (ConnectionError, SparkMirrorError) as error:
            log.warning("flow %s: %s", driver.name, error, extra=Event.CONTROL_NOT_WRITTEN.extra)

    # --- the end --------------------------------------------------------------------------------

    def _show(self, *, now: bool = False) -> None:
        self._ticked = time.monotonic()
        if self._on_progress is None or (not now and time.monotonic() < self._progress_at):
            return
        began = time.thread_time()
        self._on_progress([self._meters[driver.name].read(self._state(driver)) for driver in self.drivers])
        cost_s = time.thread_time() - began
        self._progress_at = time.monotonic() + min(max(_PROGRESS_S, cost_s / _PROGRESS_SHARE), _LONGEST_PROGRESS_S)

    def _state(self, driver: FlowDriver) -> str:
        if driver.name in self._done:
            return "incomplete" if self._missing_of(driver) else "done"
        if not driver.held():
            return driver.standing_by
        return "ending" if self._stop.is_set() else ""

    def _close(self) -> None:
        self._surroundings.close()
        self._publishing.close()
        duties_s = TRANSLATE_S if self._finished() else LAST_TURNS_S
        self.roster.close(duties_s)
        if self._session is not None and self._session.done() and self._given_session is None:
            with suppress(Exception):  # the JVM may be gone already
                self._session.result().stop()

    def _account(self) -> None:
        """Raise if something was not copied, with `once`, or where that ends a run."""
        if self._aborted:
            raise CopyIncomplete("\n".join(f"{line}; stopped (abort.on.send.failure)" for line in self._aborted))
        if not self._once or self._stop.is_set():
            return
        lines = [line for driver in self.drivers for line in self._missing_of(driver)]
        if lines:
            raise CopyIncomplete("\n".join(lines))

    def _missing_of(self, driver: FlowDriver) -> list[str]:
        """With `once`: a line for each thing that a flow has not copied."""
        return [
            *self._missing.get(driver.name, ()),
            *(f"{driver.name}: {what} was not copied: {why}" for what, why in sorted(driver.owed.items())),
            *(
                _stopped(driver.name, view.receipt)
                for view in list(driver.view.partitions.values())
                if view.receipt is not None and view.receipt.state == "parked"
            ),
            *(
                f"{driver.name}: {loss.kind}: {loss.words}"
                for loss in driver.losses
                if loss.kind in INCOMPLETE and loss.action != "halted"
            ),
        ]


def _tasks(assignment: Assignment, flow: str) -> dict[PartitionKey, int]:
    """Which task copies each of a flow's partitions."""
    return {key: task for task, keys in enumerate(assignment) for key in keys if key.flow == flow}


def _stopped(flow: str, receipt: Receipt) -> str:
    where = f"{flow}: {receipt.source_topic}-{receipt.partition}"
    if receipt.halted:
        return f"{where} is halted ({receipt.halted}): {receipt.reason}"
    return f"{where} stopped at offset {receipt.upstream}: {receipt.reason}"


def _is_settled(receipt: Receipt) -> bool:
    return receipt.state in ("done", "parked")
