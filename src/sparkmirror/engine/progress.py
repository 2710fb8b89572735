"""Progress of a running mirror, for people.

There is one value per flow, made from the pumps' reports.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from sparkmirror.engine.assignment import PartitionKey
from sparkmirror.engine.catching_up import CatchingUp, PartitionLag
from sparkmirror.engine.flow_driver import FlowDriver
from sparkmirror.engine.loss_counts import summed_up
from sparkmirror.engine.snapshot import FlowState
from sparkmirror.engine.still_look import StillLook
from sparkmirror.position.cause import Cause
from sparkmirror.sync.group_standing import counted

_WINDOW_S = 5.0
_NO_PARTITION = -1
"""Number in the key of a whole topic that is refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowProgress:
    """A flow at one moment.

    Counts are since this process began to work on the flow.
    """

    flow: str
    state: str
    """State of the flow, in words.

    `joining`, `starting`, `unreachable: why` (a cluster does not answer), `finding out` (a position or an end isn't
    known), `copying`, `held up` (all has caught up except parked partitions, partitions held back by a transaction and
    refused topics; or late records are not copied), `caught up`, `nothing to copy: why`, `standing by: why`, `ending`,
    `done` or `incomplete` (with `--once`); or `translating`, for a flow that copies nothing.
    """
    records: int = 0
    bytes: int = 0
    records_per_s: float = 0.0
    bytes_per_s: float = 0.0
    lag: int | None = 0
    """Upstream offsets not acknowledged at the target yet.

    The lag of all partitions where it is known; None: no lag above 0 is known, and not all are. Refused topics don't
    count.
    """
    unknown: int = 0
    """Number of partitions whose position, or whose end, is not known."""
    eta_s: float | None = None
    """Seconds until all but parked, paused and held-back partitions has caught up.

    None: it has, or that is not known.
    """
    latency_ms: tuple[float, float] | None = None
    """Median and 99th percentile."""
    partitions: int = 0
    done: int = 0
    parked: tuple[str, ...] = ()
    """A line for each partition or topic that can't be copied now."""
    losses: tuple[str, ...] = ()
    """A few words per kind of loss in the ledger that no operator has acknowledged."""
    forecast: str = ""
    """Warning of the first partition that loses records to retention, if that is near."""
    gone: tuple[str, ...] = ()
    """Source topics that were copied and no longer exist."""
    released: tuple[str, ...] = ()
    """Source topics whose writers have moved to the copies.

    Such topics are copied up to their ends, and left alone.
    """
    late: tuple[str, ...] = ()
    """A line for each source partition that got records after its writers moved."""
    waiting: str = ""
    """Reason why pumps wait, or why the source's ends are unknown; else empty."""
    open_transactions: tuple[str, ...] = ()
    """A line for each partition that an open transaction has held back for long."""
    groups: tuple[str, ...] = ()
    """Number of consumer groups in each state, in words."""
    failing: tuple[str, ...] = ()
    """A line for each duty whose last turn failed."""
    memory_bytes: int = 0
    """Memory of the largest pump."""


class _Look(NamedTuple):
    """Facts about all partitions of a flow."""

    state: str
    partitions: int
    told: int
    """Partitions with a receipt."""
    unknown: int
    lag: int | None
    moving_lag: int | None
    """Lag of all partitions but those that are parked or paused."""
    done: int
    parked: tuple[str, ...]


class ProgressMeter:
    """Meter of one flow's progress; rates are over the last seconds."""

    def __init__(self, driver: FlowDriver) -> None:
        self._driver = driver
        self._samples: list[tuple[float, int, int]] = []
        self._catching_up: CatchingUp[PartitionKey] = CatchingUp()
        self._looks: StillLook[_Look] = StillLook()
        self._lock = threading.Lock()
        self._last: tuple[float, str, FlowProgress] = float("-inf"), "", FlowProgress(flow="", state="")

    def read(self, state: str = "", fresh_s: float = 0.0) -> FlowProgress:
        """Return the progress, at most `fresh_s` old; for any thread.

        `state` overrides the state that the figures show.
        """
        with self._lock:
            at, last_state, last = self._last
            if state != last_state or time.monotonic() - at >= fresh_s:
                last = self._read(state)
                self._last = time.monotonic(), state, last
            return last

    def _read(self, state: str) -> FlowProgress:
        view = self._driver.view
        now = time.monotonic()
        records, size = view.counts.total
        self._samples.append((now, records, size))
        self._samples = [sample for sample in self._samples if now - sample[0] <= _WINDOW_S]
        since, old_records, old_size = self._samples[0]
        elapsed = max(now - since, 0.1)
        records_per_s = (records - old_records) / elapsed
        look = self._looks.at(self._driver, lambda: self._look(now))
        synced = self._driver.topics.synced
        moving_lag = look.moving_lag if synced else None
        live = [report for report in list(view.pumps.values()) if not report.ended]
        latencies = [report.latency_ms for report in live if report.latency_ms is not None]
        refused = tuple(f"{topic}: {why}" for topic, why in sorted(self._driver.topics.newest.refused.items()))
        waiting = next((report.waiting for report in live if report.waiting), "")
        waiting = waiting or view.silence(self._driver.flow.source.alias, now)
        now_state = state or self._state(look)
        lags = now_state not in (FlowState.CAUGHT_UP, FlowState.HELD_UP)
        return FlowProgress(
            flow=self._driver.name,
            state=now_state,
            records=records,
            bytes=size,
            records_per_s=records_per_s,
            bytes_per_s=(size - old_size) / elapsed,
            lag=look.lag if synced else None,
            unknown=look.unknown,
            eta_s=moving_lag / records_per_s if lags and moving_lag and records_per_s > 0 else None,
            latency_ms=(max(p50 for p50, _ in latencies), max(p99 for _, p99 in latencies)) if latencies else None,
            partitions=look.partitions,
            done=look.done,
            parked=look.parked + refused,
            losses=summed_up(self._driver.reports.loss_watch.counts),
            forecast=view.forecast.words if view.forecast is not None else "",
            gone=view.gone,
            released=self._driver.topics.done_topics.released,
            late=self._driver.topics.done_topics.late(view.source_ends),
            waiting=waiting,
            open_transactions=self._open_transactions(),
            groups=counted(self._driver.groups.newest.values()),
            failing=tuple(f"{duty}: {why}" for duty, why in sorted(self._driver.failing.items())),
            memory_bytes=max((report.memory_bytes for report in live), default=0),
        )

    def _look(self, now: float) -> tuple[_Look, bool]:
        """Look at all partitions; they stand still if each has caught up with its end."""
        partitions = self._driver.partitions()
        views = list(self._driver.view.partitions.values())
        known = [partition.receipt for partition in views if partition.receipt is not None]
        lags = self._lags(partitions, now)
        unknown = sum(not each.known for each in lags)
        lag = sum(each.lag or 0 for each in lags)
        stuck = {
            (receipt.source_topic, receipt.partition)
            for receipt in known
            if receipt.state == "parked" or receipt.cause is Cause.PAUSED
        } | self._driver.view.held_back.keys()
        moving = [each.lag or 0 for each in lags if each.key[1:] not in stuck and each.known]
        moving_known = all(each.known or each.key[1:] in stuck for each in lags)
        state = self._catching_up.look([*lags, *self._refused()], now)
        late = any(each.missing for each in self._driver.topics.done_topics.late_offsets(self._driver.view.source_ends))
        look = _Look(
            state="held up" if late and state != "finding out" else state,
            partitions=len(partitions),
            told=len(known),
            unknown=unknown,
            lag=None if unknown and not lag else lag,  # a zero beside unknown ones would read as level
            moving_lag=sum(moving) if moving_known else None,
            done=sum(receipt.state == "done" for receipt in known),
            parked=tuple(
                f"{receipt.source_topic}-{receipt.partition}: "
                + (f"halted ({receipt.halted}): " if receipt.halted else "")
                + receipt.reason
                for receipt in known
                if receipt.state == "parked"
            ),
        )
        return look, not unknown and not lag

    def _lags(self, partitions: Iterable[PartitionKey], now: float) -> list[PartitionLag[PartitionKey]]:
        """Return the lag of each partition."""
        view = self._driver.view
        ends = view.known_ends(now)
        views, starts, held_back = dict(view.partitions), view.source_starts, view.held_back
        lags = []
        for key in partitions:
            partition_view, at = views.get(key), key[1:]
            end, readable = view.end_of(key, ends)
            receipt = partition_view.receipt if partition_view is not None else None
            if receipt is None:
                lags.append(PartitionLag(key=key, position=None, end=end, parked=False))
                continue
            lags.append(
                PartitionLag(
                    key=key,
                    position=receipt.upstream if receipt.upstream >= 0 else None,
                    end=end,
                    parked=receipt.state == "parked" or at in held_back,
                    start=starts.get(at, 0),
                    readable=readable,
                )
            )
        return lags

    def _refused(self) -> list[PartitionLag[PartitionKey]]:
        """Return the refused topics as parked partitions, which hold the flow up."""
        keys = [PartitionKey(self._driver.name, topic, _NO_PARTITION) for topic in self._driver.topics.newest.refused]
        return [PartitionLag(key=key, position=None, end=None, parked=True) for key in keys]

    def _open_transactions(self) -> tuple[str, ...]:
        return tuple(
            f"{topic}-{partition} waits for the end of {held.words}; to end it: {held.remedy}"
            for (topic, partition), held in sorted(self._driver.view.held_back.items())
        )

    def _state(self, look: _Look) -> str:
        topics = self._driver.topics
        away = next(filter(None, self._driver.view.away), None)
        if away is not None:
            return f"{FlowState.UNREACHABLE}: {away.words}"
        if not self._driver.flow.copies:
            return "translating"
        if topics.synced and topics.matches.nothing:
            return f"{FlowState.NOTHING}: {topics.matches.nothing}"
        if not topics.synced or look.told < look.partitions:
            return "starting"
        return look.state
