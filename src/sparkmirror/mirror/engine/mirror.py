"""The mirror: all configured flows as one Spark application.

The mirror runs round after round.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession

from sparkmirror.config import FlowConfig, MirrorConfig
from sparkmirror.config.spark_guards import guard_secrets, refuse_little_memory, refuse_two_pumps
from sparkmirror.errors import ClusterUnreachable, ConfigError, CopyIncomplete, SetupError, SparkMirrorError
from sparkmirror.events import Event
from sparkmirror.kafka.cluster.expected_clusters import EXPECTED
from sparkmirror.mirror.engine.assignment import PartitionKey
from sparkmirror.mirror.engine.completion import Completion
from sparkmirror.mirror.engine.duties import LAST_TURNS_S
from sparkmirror.mirror.engine.flow_driver import FlowDriver
from sparkmirror.mirror.engine.flow_registry import FlowRegistry
from sparkmirror.mirror.engine.observer import Observer
from sparkmirror.mirror.engine.planner import Planner
from sparkmirror.mirror.engine.progress_display import OnProgress, ProgressDisplay
from sparkmirror.mirror.engine.publishing import Publishing
from sparkmirror.mirror.engine.queries import SLOTS, Queries
from sparkmirror.mirror.engine.round_job import RoundJob
from sparkmirror.mirror.engine.round_runner import TURN_S, RoundRunner
from sparkmirror.mirror.engine.session import settings_of
from sparkmirror.mirror.engine.slots import Slots
from sparkmirror.mirror.engine.spark_start import SparkStart
from sparkmirror.mirror.engine.surroundings import Surroundings
from sparkmirror.mirror.engine.topic_refresh import TopicRefresh
from sparkmirror.snapshot.flow_state import FlowState, SaidState

TRANSLATE_S = 60.0
"""Seconds for the duties' last turns with `once`, after everything is copied.

These turns translate the groups.
"""

STAND_BY_SESSIONS = 5
"""Session timeouts to wait for the lease with `once`.

They count from the start, or from the lease's loss. A dead holder is replaced within one.
"""

_AFTER_FAILURE_S, _LONGEST_PAUSE_S = 1.0, 30.0
_MOST_DOUBLINGS = 5
_MOST_FAILURES = 5
_MOST_TASKLESS = 10
"""Failed rounds in a row after which a Spark whose tasks never begin is given up.

With their pauses they take some three minutes.
"""

log = logging.getLogger(__name__)


class Mirror:
    """All configured flows; `run` works until `stop`.

    `stop`, from any thread or a signal handler, ends the mirror within seconds.

    - `once`: copy until every partition has caught up with the end offset seen at the start.
    - `use_lease`: False lets several processes work on one flow at the same time; only tests want that.
    - `spark`: the caller's session, left open at the end; its Spark's settings replace the configuration's. Without
      a session the mirror starts a Spark by the configuration.
    - `queries`: the Spark queries of flows that have some.
    """

    def __init__(
        self,
        config: MirrorConfig,
        *,
        once: bool = False,
        use_lease: bool = True,
        on_progress: OnProgress | None = None,
        spark: SparkSession | None = None,
        queries: Queries | None = None,
    ) -> None:
        self._once = once
        self._queries = queries
        self._stop = threading.Event()
        self._failures = 0
        """Number of cluster or round failures in a row."""
        self._taskless = 0
        """Number of failed rounds in a row without a task run by Spark."""
        incarnation = uuid.uuid4().hex
        settings = config.spark if spark is None else settings_of(spark)
        origin = config.path if spark is None else "the session"
        self._mistakes_end = bool(config.flows)
        """True if a mistake ends the run.

        A Connect worker's mirror begins without flows, and is never ended by a mistake.
        """

        def check(flow: FlowConfig) -> None:
            if flow.transform_queries and queries is None:
                name = flow.transform_queries[0].name
                raise ConfigError(
                    "is run by a `sparkmirror run` that starts with it, and by sm.Mirror", origin=f"query {name}"
                )
            guard_secrets(flow, settings, origin)
            refuse_two_pumps(settings, origin)
            if spark is None:
                refuse_little_memory(settings, origin)

        self.registry = FlowRegistry(
            config.model_copy(update={"beats": ()}) if once else config,
            lambda flow: FlowDriver(flow, incarnation, use_lease=use_lease, once=once),
            check,
        )
        self.troubles: dict[str, str] = {}
        """Flows that can't be worked on now, with the reason in a single line."""
        self._spark = SparkStart(settings, spark)
        self._surroundings = Surroundings(
            lambda: [driver.flow for driver in self.drivers],
            lambda name: any(driver.name == name and driver.leadership.elsewhere for driver in self.drivers),
            self._spark.now,
            lease=use_lease,
        )
        self.observer = Observer(lambda: self.drivers, self._state, self._surroundings)
        """Makes the snapshots."""
        self._display = ProgressDisplay(self.observer.snapshot, on_progress)
        self._publishing = Publishing(self.observer.snapshot)
        self._refresh = TopicRefresh()
        self._completion = Completion()
        self._planner = Planner(
            Slots(
                settings,
                self.registry.tasks_max,
                shared=spark is not None,
                reserved=SLOTS if queries is not None else 0,
            ),
            incarnation,
        )
        self._runner = RoundRunner(
            self._planner,
            self.registry,
            self._refresh,
            self.observer,
            self._completion,
            self._held,
            self._display.show,
            self._stop,
        )

    @property
    def drivers(self) -> list[FlowDriver]:
        """Drivers for the process's flows, also while it stands by."""
        return self.registry.drivers

    @property
    def rounds(self) -> int:
        return self._runner.number

    @property
    def copying(self) -> frozenset[str]:
        """Flows that this process's pumps are copying."""
        return self._runner.copying

    @property
    def tick_age_s(self) -> float:
        """Seconds since the control loop's last turn.

        The loop turns several times a second unless held up.
        """
        return self._display.tick_age_s

    def tasks(self, flow: str) -> list[tuple[PartitionKey, ...]]:
        return self._planner.tasks(flow)

    def change(self, config: MirrorConfig, restart: Collection[str] = ()) -> None:
        """Take another configuration, from any thread; returns at once.

        Unchanged flows keep their drivers. Flows that changed or are named by `restart` end in order and begin again.
        All other flows are closed. Spark stays as it was started. `registry.failed` has the flows that can't be opened.
        """
        self.registry.change(config, restart)

    def stop(self) -> None:
        """End the round, give the leases up, and let `run` return."""
        self._stop.set()

    def run(self) -> None:
        """Mirror until stopped or, with `once`, done.

        Raises `ClusterUnreachable` or `ConfigError` before anything is copied. Raises `CopyIncomplete` if `once` could
        not copy everything, or if a partition can't be copied and that ends the run (`LegacyConfig`). Raises
        `SetupError` if Spark does not start, has ended, or runs no task.
        """
        try:
            self.registry.open()
            self.registry.start()
            self._surroundings.start()
            last_held = time.monotonic()
            reserved = SLOTS if self._queries is not None else 0
            while not self._stop.is_set() and not self._finished():
                self._exchange()
                self._publishing.follow(driver.flow for driver in self.drivers)
                held = self._held()
                if not self._spark.is_begun and (held or (self.drivers and self._spark.is_early)):
                    self._spark.begin(self._planner.slots.count + reserved)
                if held:
                    self._work(held)
                    last_held = time.monotonic()
                else:
                    self._stand_by(last_held)
        finally:
            self._close()
        self._completion.demand_no_abort()
        if self._once and not self._stop.is_set():
            self._completion.demand_all_copied(self.drivers)

    def _finished(self) -> bool:
        return self._once and self._completion.are_finished(self.drivers)

    def _held(self) -> list[FlowDriver]:
        return [driver for driver in self.drivers if driver.held() and not self._completion.is_finished(driver.name)]

    def _exchange(self) -> None:
        """Take in the changes that `change` asked for; called between rounds."""
        self.registry.exchange_beats()
        if not self.registry.is_due:
            return
        self._failures = 0
        if self._queries is not None:
            self._queries.close()  # before another process, or a pump, works in their place
        for driver in self.registry.exchange():
            self._refresh.forget(driver.name)
        self._planner.slots.ask(self.registry.tasks_max)

    def _stand_by(self, since: float) -> None:
        session_s = max((driver.flow.group_session_timeout_ms for driver in self.drivers), default=0) / 1000
        if self._once and time.monotonic() - since > STAND_BY_SESSIONS * session_s:
            waiting = [driver for driver in self.drivers if not self._completion.is_finished(driver.name)]
            raise CopyIncomplete("\n".join(f"{driver.name}: {driver.leadership.standing_by}" for driver in waiting))
        self._turn()

    def _turn(self) -> bool:
        """Show the progress and wait a moment; True if the mirror shall stop."""
        self._display.show()
        return self._stop.wait(TURN_S)

    def _work(self, held: Sequence[FlowDriver]) -> None:
        """Run a round of the workable flows, or wait for work."""
        ready = self._prepare(held)
        self._query(ready)
        if any(driver.pumped() for driver in ready):
            spark = self._spark.wait(self._turn)
            if spark is not None:
                self._conclude(self._runner.run(spark, held, ready), ready)
        elif ready:
            self._idle(ready)

    def _query(self, ready: Sequence[FlowDriver]) -> None:
        """Have queries copy the topics that are theirs."""
        if self._queries is None or not any(driver.flow.transform_queries for driver in ready):
            return
        spark = self._spark.wait(self._turn)
        if spark is not None:
            for driver in ready:
                self._queries.keep(driver, spark)

    def _finish(self, driver: FlowDriver) -> None:
        """Finish a flow with `once` when its queries are done, too."""
        while self._queries is not None and not self._queries.are_done(driver):
            self._query([driver])
            if self._turn() or not driver.held():
                return
        self._completion.finish(driver)

    def _prepare(self, held: Sequence[FlowDriver]) -> list[FlowDriver]:
        """Return the drivers whose flows can be worked on now.

        A flow whose clusters are unreachable does not hold up other flows: all clusters are asked at the same time.
        Topics are looked at flow by flow: when two flows could copy into one topic, the second must see the first
        flow's note (`sync.other_flows`).
        """
        with ThreadPoolExecutor(len(held)) as pool:
            errors = list(pool.map(lambda driver: self._attempt(driver, self._activate), held))
        for index, driver in enumerate(held):
            errors[index] = errors[index] or self._attempt(driver, self._look)
        ready = [driver for driver, error in zip(held, errors, strict=True) if error is None]
        first = next((error for error in errors if error is not None), None)
        if first is not None and (not ready or self._once):
            self._fail_or_wait(first)
            return []
        return ready

    def _activate(self, driver: FlowDriver) -> None:
        """Have a driver become active; clusters must answer before a look at topics."""
        driver.become_active()
        if not driver.topics.checked or self._refresh.is_due(driver):
            driver.reach()

    def _look(self, driver: FlowDriver) -> None:
        """Run the topic duty if due, and say that the flow will run."""
        self.troubles.pop(driver.name, None)
        if not driver.topics.checked:
            self._refresh.forget(driver.name)
        self._refresh.refresh(driver)
        if driver.pumped():
            driver.control.say(self.rounds + 1, "running")

    def _attempt(
        self, driver: FlowDriver, step: Callable[[FlowDriver], None]
    ) -> ConnectionError | SparkMirrorError | None:
        """Do a step towards a round; return the error if that fails."""
        try:
            step(driver)
        except (ConnectionError, SparkMirrorError) as error:
            log.warning("flow %s: %s", driver.name, error, extra=Event.FLOW_NOT_READY.extra)
            self.troubles[driver.name] = str(error)
            return error
        return None

    def _fail_or_wait(self, error: Exception) -> None:
        """Raise the error, or pause to try again.

        A cluster may be unreachable for a while, and a standby must outlive that. A wrong configuration ends the run
        unless the mirror began without flows, and so do repeated failures with `once`.
        """
        self._failures += 1
        is_wrong = self._mistakes_end and isinstance(error, ConfigError)
        if is_wrong or (self._once and self._failures >= _MOST_FAILURES):
            raise error if isinstance(error, SparkMirrorError) else ClusterUnreachable(str(error)) from error
        self._pause()

    def _pause(self) -> None:
        """Pause after failures in a row, longer with each.

        A changed configuration, a lease that comes or goes, or a stop ends the pause.
        """
        held = self._held()
        doublings = min(self._failures - 1, _MOST_DOUBLINGS)
        until = time.monotonic() + min(_AFTER_FAILURE_S * 2**doublings, _LONGEST_PAUSE_S)
        while time.monotonic() < until and not self.registry.is_due and self._held() == held and not self._turn():
            pass

    def _idle(self, ready: Sequence[FlowDriver]) -> None:
        """Wait while no topic matches; with `once`, finish the flows.

        The topic duty looks again at the refresh interval.
        """
        if not self._once:
            self._turn()
            return
        self._display.show()
        for driver in ready:
            self._finish(driver)

    def _conclude(self, job: RoundJob, ready: Sequence[FlowDriver]) -> None:
        """Take an ended round's results; pause or raise after a failure."""
        complete = self._runner.take_results(job, ready)
        for driver in complete if self._once else ():
            self._finish(driver)
        self._display.show(now=True)
        early = self._runner.restart_ended_early(ready)
        if job.ends is not None:
            self._failures = self._taskless = 0
            if early:
                self._stop.wait(_AFTER_FAILURE_S)
        elif not self._stop.is_set():
            self._failures += 1
            ran = any(driver.reports.started_tasks(self.rounds) for driver in ready)
            self._taskless = 0 if ran else self._taskless + 1
            if self._once and self._failures >= _MOST_FAILURES:
                raise CopyIncomplete(f"{self._failures} Spark jobs in a row failed, the last one so: {job.failure}")
            if not job.spark_lives():
                raise SetupError(f"Spark has ended ({job.failure}); start sparkmirror again")
            if self._taskless >= _MOST_TASKLESS:  # another process, or a new Spark, may do what this one can't
                raise SetupError(
                    f"Spark ran no task of {self._taskless} rounds in a row ({job.failure}); start sparkmirror again"
                )
            log.warning(
                "epoch %d failed and is planned again: %s", self.rounds, job.failure, extra=Event.EPOCH_FAILED.extra
            )
            self._pause()

    def _state(self, driver: FlowDriver) -> SaidState | None:
        """Return the flow's state if its partitions don't show it."""
        if self._completion.is_finished(driver.name):
            return SaidState(FlowState.INCOMPLETE if self._completion.missing(driver) else FlowState.DONE)
        if elsewhere := EXPECTED.wrong(driver.flow):
            return SaidState(FlowState.WRONG_CLUSTER, elsewhere)
        if not driver.held():
            return driver.leadership.standing
        return SaidState(FlowState.ENDING) if self._stop.is_set() else None

    def _close(self) -> None:
        if self._queries is not None:
            self._queries.close()
        self._surroundings.close()
        self._publishing.close()
        self.registry.close(TRANSLATE_S if self._finished() else LAST_TURNS_S)
        self._spark.close()
