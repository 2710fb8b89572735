"""The flows that a mirror works on, and their drivers.

The drivers are opened, exchanged between rounds, and closed. While a round runs, flows newly asked for are opened in
the background. When the round has ended, the opened drivers take their place: an unchanged flow keeps its driver, a
changed flow hands its lease on.

Requests to the REST interface and a watched Strimzi file ask for flows; an mm2.properties is read at the start alone.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from sparkmirror.config import FlowConfig, MirrorConfig
from sparkmirror.errors import ConfigError, SparkMirrorError
from sparkmirror.events import Event
from sparkmirror.log_levels import asked_levels
from sparkmirror.mirror.engine.beats import Beats
from sparkmirror.mirror.engine.duties import LAST_TURNS_S, Duties
from sparkmirror.mirror.engine.flow_driver import FlowDriver
from sparkmirror.mirror.engine.start_checks import in_config, see_that_flows_fit
from sparkmirror.policy import shared_cluster

CLOSE_S = 6.0
"""Seconds to leave groups and close connections, next to the duties' last turns."""

REOPEN_S = 30.0
"""Seconds between attempts to open a flow that could not be opened.

Likewise for a pair's heartbeats.
"""

log = logging.getLogger(__name__)


class _UnfitPair(NamedTuple):
    """A wanted pair whose heartbeats can't be sent with its settings."""

    flow: FlowConfig
    reason: str
    again_at: float
    """Time of the next attempt, by `time.monotonic`."""


class FlowRegistry:
    """A mirror's drivers: `open` and `start`, then `change` and `exchange`.

    `change` may be called from any thread, `exchange` between rounds. `make` makes a flow's driver; `check` raises
    `ConfigError` for a flow that this mirror can't run.
    """

    def __init__(
        self, config: MirrorConfig, make: Callable[[FlowConfig], FlowDriver], check: Callable[[FlowConfig], None]
    ) -> None:
        self.drivers = [make(flow) for flow in config.flows]
        """Drivers at work; only `exchange` changes the list."""
        self.beats = [Beats(flow) for flow in config.beats]
        self._path = config.path
        self._make = make
        self._check = check
        self._lock = threading.Lock()
        self._wanted = {flow.name: flow for flow in config.flows}
        self._wanted_beats = {flow.name: flow for flow in config.beats}
        self._unfit: dict[str, _UnfitPair] = {}
        self._restart: set[str] = set()
        """Flows whose drivers are to be replaced even if unchanged."""
        self._opened: dict[str, FlowDriver] = {}
        """Open drivers that wait for the round's end."""
        self._opening: dict[str, tuple[FlowConfig, threading.Event]] = {}
        """Flows being opened, by name, each with an event.

        The event is set if the flow need not be opened any more.
        """
        self._failed: dict[str, str] = {}
        self._warned: set[str] = set()
        """Warnings about flows that were already logged.

        Each warning comes once, however often the flow is tried.
        """
        self._exchanging = False
        self._ending: frozenset[str] = frozenset()
        """Flows whose drivers are being closed."""
        self._ended: dict[str, Duties] = {}
        """Duties from each closed flow's last driver."""

    @property
    def tasks_max(self) -> int:
        """Number of tasks for all wanted flows together."""
        with self._lock:
            return sum(flow.tasks_max for flow in self._wanted.values())

    @property
    def failed(self) -> Mapping[str, str]:
        """Flows that could not be opened, with the reason in a single line.

        Pairs whose heartbeats can't be sent are here, too. The registry tries again.
        """
        with self._lock:
            return {name: pair.reason for name, pair in self._unfit.items()} | self._failed

    def open(self) -> None:
        """Connect to all clusters in parallel.

        Raises `ClusterUnreachable` and `ConfigError`.
        """
        for driver in self.drivers:
            self._check(driver.flow)
        flows = [driver.flow for driver in self.drivers]
        see_that_flows_fit(flows, in_config(self._path), [flow.name for flow in flows])
        with ThreadPoolExecutor(max(len(self.drivers), 1)) as pool:
            list(pool.map(lambda driver: driver.open(), self.drivers))
        self._refuse_shared_clusters(self.drivers)

    def start(self) -> None:
        for driver in self.drivers:
            driver.start()
        for beats in self.beats:
            beats.start()

    def _refuse_shared_clusters(self, drivers: Sequence[FlowDriver]) -> None:
        """Raise `ConfigError` if two aliases are one cluster.

        Topics' names can't show that.
        """
        ids = {alias: cluster_id for driver in drivers for alias, cluster_id in driver.cluster_ids.items()}
        reason = shared_cluster(ids)
        if reason is not None:
            raise ConfigError(reason, origin=self._path)

    # --- changes --------------------------------------------------------------------------------

    def change(self, config: MirrorConfig, restart: Collection[str] = ()) -> None:
        """Set the wanted configuration.

        Flows in `restart` are reopened even if unchanged.
        """
        with self._lock:
            self._wanted = {flow.name: flow for flow in config.flows}
            self._wanted_beats = {flow.name: flow for flow in config.beats}
            working = {driver.name: driver.flow for driver in self.drivers}
            self._unfit = {name: pair for name, pair in self._unfit.items() if name not in restart}
            self._restart = {name for name in {*self._restart, *restart} if name in self._wanted}
            coming = {name: flow for name, (flow, _) in self._opening.items()}
            coming |= {name: driver.flow for name, driver in self._opened.items()}
            for name, flow in coming.items():
                if name in restart or flow != self._wanted.get(name):
                    self._give_up(name)
            for name, flow in self._wanted.items():
                if name not in {*self._opening, *self._opened} and (working.get(name) != flow or name in self._restart):
                    self._begin_to_open(flow)

    def _give_up(self, name: str) -> None:
        """Give up a driver that is being opened, or stands ready."""
        self._failed.pop(name, None)
        if (opening := self._opening.pop(name, None)) is not None:
            opening[1].set()
        if (opened := self._opened.pop(name, None)) is not None:
            threading.Thread(target=opened.close, daemon=True).start()

    def _begin_to_open(self, flow: FlowConfig) -> None:
        stop = threading.Event()
        self._opening[flow.name] = flow, stop
        threading.Thread(target=self._open, args=(flow, stop), name=f"open {flow.name}", daemon=True).start()

    def _open(self, flow: FlowConfig, stop: threading.Event) -> None:
        """Try to open a flow, until it is open or no longer wanted."""
        while not stop.is_set():
            driver: FlowDriver | None = None
            why = ""
            try:
                self._check(flow)
                self._warn(see_that_flows_fit([*self._before(flow), flow], in_config(self._path), [flow.name]))
                driver = self._make(flow)
                driver.open()
                others = [other for other in self.drivers if self._wanted.get(other.name) == other.flow]
                self._refuse_shared_clusters([*others, driver])
            except (ConnectionError, SparkMirrorError) as error:
                why = str(error)
                log.warning("flow %s: %s", flow.name, why, extra=Event.FLOW_NOT_OPENED.extra)
            except Exception as error:  # an unforeseen error must not be silent
                why = repr(error)
                log.exception("flow %s can't be opened", flow.name, extra=Event.FLOW_NOT_OPENED.extra)
            with self._lock:
                if not stop.is_set() and not why and driver is not None:
                    self._opened[flow.name] = driver
                    self._opening.pop(flow.name, None)
                    self._failed.pop(flow.name, None)
                    return
                if not stop.is_set():
                    self._failed[flow.name] = why
            if driver is not None:
                driver.close()
            stop.wait(REOPEN_S)

    def _before(self, flow: FlowConfig) -> list[FlowConfig]:
        """Return the flows that a new flow must fit to.

        Such flows are at work, or were asked for before the new flow.
        """
        with self._lock:
            at_work = {driver.name for driver in self.drivers if self._wanted.get(driver.name) == driver.flow}
            names = list(self._wanted)
            earlier = names[: names.index(flow.name)] if flow.name in names else []
            coming = {name for name in earlier if name not in self._failed}
            return [other for name, other in self._wanted.items() if name in at_work | coming and name != flow.name]

    def _warn(self, lines: Sequence[str]) -> None:
        for line in lines:
            if line not in self._warned:
                self._warned.add(line)
                log.warning("%s", line, extra=Event.CONFIG_WARNING.extra)

    @property
    def is_due(self) -> bool:
        with self._lock:
            return bool(self._opened) or bool(self._leaving())

    @property
    def is_up_to_date(self) -> bool:
        """True if the wanted configuration is at work, except flows that failed."""
        with self._lock:
            waiting = self._opening.keys() - self._failed.keys()
            standing = {beats.name: beats.flow for beats in self.beats}
            standing |= {name: pair.flow for name, pair in self._unfit.items()}
            moving = self._exchanging or standing != self._wanted_beats
        return not waiting and not moving and not self.is_due

    def is_changing(self, flow: str) -> bool:
        """True until a driver that is to be closed is closed, and its duties have ended.

        What its pumps have copied may not have been told, and its duties may not have had their last turns.
        """
        with self._lock:
            at_work = [driver.flow for driver in self.drivers if driver.name == flow]
            if flow in self._ending or any(self._wanted.get(flow) != present for present in at_work):
                return True
            ended = self._ended.get(flow)
        return ended is not None and ended.at_work

    def last_failure(self, flow: str, duty: str) -> str:
        """Return why a duty's last turn failed; empty if it did not.

        The duty belongs to the flow's last driver.
        """
        ended = self._ended.get(flow)
        return "" if ended is None else ended.failing.get(duty, "")

    def forget_ended(self, flow: str) -> None:
        """Forget the flow's last driver, as another writer has stored its offsets."""
        self._ended.pop(flow, None)

    def is_restarting(self, flow: str) -> bool:
        return flow in self._restart

    def _leaving(self) -> list[FlowDriver]:
        """Return the drivers that can be closed now.

        A driver can be closed if its flow is no longer wanted, if its successor stands ready, or if its flow changed
        and the successor could not be opened.
        """
        return [
            driver
            for driver in self.drivers
            if driver.name not in self._wanted
            or driver.name in self._opened
            or (driver.name in self._failed and self._wanted[driver.name] != driver.flow)
        ]

    def exchange(self) -> list[FlowDriver]:
        """Close unwanted drivers and start ready ones; return the new drivers.

        No round may run.
        """
        if not self.is_due:
            return []
        with self._lock:
            leaving, opened = self._leaving(), self._opened
            self._opened = {}
            self._restart -= opened.keys()
            # From now on `change` sees the new drivers, and does not begin to open them twice.
            self.drivers = [driver for driver in self.drivers if driver not in leaving] + list(opened.values())
            self._exchanging = True
            self._ending = frozenset(driver.name for driver in leaving)
            self._ended |= {driver.name: duties for driver in leaving if (duties := driver.duties) is not None}
        heirs = {driver.name: driver for driver in leaving if _inherits(opened.get(driver.name), driver)}
        at_once(leaving, lambda driver: driver.close(keep_lease=driver.name in heirs), CLOSE_S + LAST_TURNS_S)
        self._ending = frozenset()
        _forget_levels(driver for driver in leaving if driver.name not in opened)
        for name, driver in opened.items():
            driver.start(heirs.get(name))
        for driver in leaving:
            log.info(
                "flow %s: %s",
                driver.name,
                "has other settings now" if driver.name in opened else "is ended",
                extra=Event.FLOW_CHANGED.extra,
            )
        self._exchanging = False
        return list(opened.values())

    def exchange_beats(self) -> None:
        """Send heartbeats for the pairs wanted now; no round has to end for that."""
        now = time.monotonic()
        with self._lock:
            wanted, unfit = dict(self._wanted_beats), dict(self._unfit)
        stay = [beats for beats in self.beats if wanted.get(beats.name) == beats.flow]
        wait = {name: pair for name, pair in unfit.items() if wanted.get(name) == pair.flow and now < pair.again_at}
        if len(stay) == len(self.beats) and wait == unfit and len(wanted) == len(stay) + len(wait):
            return
        known = {beats.name for beats in stay} | wait.keys()
        new = []
        for name, flow in wanted.items():
            made = self._beats_of(flow, unfit.get(name)) if name not in known else None
            if isinstance(made, _UnfitPair):
                wait[name] = made
            elif made is not None:
                new.append(made)
        for beats in set(self.beats) - set(stay):
            beats.close()
        for beats in new:
            beats.start()
        self.beats = stay + new
        with self._lock:  # a pair that `change` restarts meanwhile is tried at the next call
            self._unfit = {
                name: pair for name, pair in wait.items() if pair is not unfit.get(name) or name in self._unfit
            }

    def _beats_of(self, flow: FlowConfig, before: _UnfitPair | None) -> Beats | _UnfitPair:
        """Return a pair's heartbeat sender, if its settings allow one."""
        unforeseen = False
        try:
            return Beats(flow)
        except SparkMirrorError as error:
            why = str(error)
        except Exception as error:  # a policy's class may raise anything
            why, unforeseen = repr(error), True
        if before is None or before.reason != why:
            log.warning("pair %s: %s", flow.name, why, exc_info=unforeseen, extra=Event.FLOW_NOT_OPENED.extra)
        return _UnfitPair(flow, why, time.monotonic() + REOPEN_S)

    def close(self, duties_s: float) -> None:
        """End all drivers; `duties_s` is the time for the duties' last turns."""
        with self._lock:
            self._wanted = {}
            for name in {*self._opening, *self._opened}:
                self._give_up(name)
        at_once(self.drivers, lambda driver: driver.close(duties_s), CLOSE_S + duties_s)
        _forget_levels(self.drivers)
        for beats in self.beats:
            beats.close()


def _forget_levels(closed: Iterable[FlowDriver]) -> None:
    """Give back the log levels for which only these flows asked."""
    for driver in closed:
        asked_levels.follow(driver.name, {})


def _inherits(heir: FlowDriver | None, driver: FlowDriver) -> bool:
    """True if a driver can continue with its predecessor's lease."""
    if heir is None:
        return False
    mine, theirs = heir.flow, driver.flow
    return (mine.target, mine.group_session_timeout_ms) == (theirs.target, theirs.group_session_timeout_ms)


def at_once(drivers: Sequence[FlowDriver], do: Callable[[FlowDriver], None], wait_s: float) -> None:
    """Call `do` for all drivers in parallel.

    A hanging cluster delays no other flow.
    """

    def one(driver: FlowDriver) -> None:
        try:
            do(driver)
        except Exception as error:
            log.debug("flow %s: %s", driver.name, error)

    threads = [threading.Thread(target=one, args=(driver,), daemon=True) for driver in drivers]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + wait_s
    for thread in threads:
        thread.join(max(deadline - time.monotonic(), 0))
