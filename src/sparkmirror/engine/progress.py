"""What people see while a mirror runs: one value a flow, made from the pumps' reports."""

from __future__ import annotations

import time
from dataclasses import dataclass

from sparkmirror.engine.flow_driver import FlowDriver
from sparkmirror.engine.loss_watch import summed_up
from sparkmirror.sync.group_standing import counted

_WINDOW_S = 5.0


LIVE_S = 1.0
"""A lag that is worked off in less is what is on its way just now."""


@dataclass(frozen=True, slots=True)
class FlowProgress:
    """A flow at one moment. Counts are since this process began to work on it."""

    flow: str
    state: str
    """`joining`, `starting`, `copying`, `caught up`, `standing by: why`, `ending` or `done`; or `translating`, where
    nothing is copied."""
    records: int = 0
    bytes: int = 0
    records_per_s: float = 0.0
    bytes_per_s: float = 0.0
    lag: int = 0
    """Upstream offsets that are not acknowledged at the target yet."""
    eta_s: float | None = None
    latency_ms: tuple[float, float] | None = None
    """p50 and p99."""
    partitions: int = 0
    done: int = 0
    parked: tuple[str, ...] = ()
    """One line for each partition that can't be copied now."""
    losses: tuple[str, ...] = ()
    """A few words on each kind of loss that was found since this process took charge."""
    forecast: str = ""
    """What the source deletes next before it is copied, if that is near."""
    gone: tuple[str, ...] = ()
    """Source topics that were copied and are not there any more."""
    waiting: str = ""
    """Why it waits, if it does."""
    groups: tuple[str, ...] = ()
    """How many consumer groups are in which state."""
    failing: tuple[str, ...] = ()
    """One line for each duty whose last turn failed."""
    memory_bytes: int = 0
    """Of the largest pump."""


class ProgressMeter:
    """Turns one flow's reports into progress; rates are over the last seconds."""

    def __init__(self, driver: FlowDriver) -> None:
        self._driver = driver
        self._samples: list[tuple[float, int, int]] = []

    def read(self, state: str = "") -> FlowProgress:
        """The progress now; `state` overrides what the figures say."""
        view = self._driver.view
        now = time.monotonic()
        records, size = view.records, view.bytes
        self._samples.append((now, records, size))
        self._samples = [sample for sample in self._samples if now - sample[0] <= _WINDOW_S]
        since, old_records, old_size = self._samples[0]
        elapsed = max(now - since, 0.1)
        records_per_s = (records - old_records) / elapsed
        known = [one.receipt for one in list(view.partitions.values()) if one.receipt is not None]
        ends = view.source_ends
        lag = sum(
            max(receipt.source_end, ends.get((receipt.source_topic, receipt.partition), 0), receipt.upstream)
            - receipt.upstream
            for receipt in known
            if receipt.upstream >= 0
        )
        live = [report for report in list(view.pumps.values()) if not report.ended]
        latencies = [report.latency_ms for report in live if report.latency_ms is not None]
        parked = tuple(
            f"{receipt.source_topic}-{receipt.partition}: "
            + (f"halted ({receipt.halted}): " if receipt.halted else "")
            + receipt.reason
            for receipt in known
            if receipt.state == "parked"
        )
        waiting = next((report.waiting for report in live if report.waiting), "")
        return FlowProgress(
            flow=self._driver.name,
            state=state or self._state(len(known), lag, records_per_s),
            records=records,
            bytes=size,
            records_per_s=records_per_s,
            bytes_per_s=(size - old_size) / elapsed,
            lag=lag,
            eta_s=lag / records_per_s if lag and records_per_s > 0 else None,
            latency_ms=(max(p50 for p50, _ in latencies), max(p99 for _, p99 in latencies)) if latencies else None,
            partitions=len(self._driver.partitions()),
            done=sum(receipt.state == "done" for receipt in known),
            parked=parked,
            losses=summed_up(self._driver.losses),
            forecast=view.forecast.words if view.forecast is not None else "",
            gone=view.gone,
            waiting=waiting,
            groups=counted(self._driver.groups.newest.values()),
            failing=tuple(f"{duty}: {why}" for duty, why in sorted(self._driver.failing.items())),
            memory_bytes=max((report.memory_bytes for report in live), default=0),
        )

    def _state(self, known: int, lag: int, records_per_s: float) -> str:
        if not self._driver.flow.copies:
            return "translating"
        partitions = len(self._driver.partitions())
        if known < partitions or not partitions:
            return "starting"
        return "copying" if lag > records_per_s * LIVE_S else "caught up"
