"""Hours of a mirror's past, bounded in memory: a sample per flow and step."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from threading import Lock
from typing import NamedTuple, TypeVar

from sparkmirror.snapshot.snapshot import Flow, FlowState, Role

STEP_S = 30
"""Seconds in a sample."""

LENGTH = 12 * 3600 // STEP_S
"""Number of samples for a flow: twelve hours, about 0.3 MB."""

MOST_FLOWS = 200
"""Number of flows with a history, at most."""

_STATES = list(FlowState)


class Sample(NamedTuple):
    """A step in a flow's past; a process without the lease has no figures."""

    at_s: int
    """The step's begin, in seconds since 1970."""
    state: FlowState
    """Most urgent state in the step, in the order of `FlowState`."""
    stuck: bool
    """True if a partition was parked or held back by a transaction."""
    lag: int | None
    """Largest lag in the step."""
    lag_s: float | None
    records_per_s: float | None
    """Newest rate in the step."""


class FlowHistory:
    """Histories for a mirror's flows; for any thread.

    Snapshots are made anyway: every 5 s a snapshot is published. A step's first snapshot begins a sample, and further
    snapshots add to the sample. A step without a snapshot has no sample.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._samples: dict[str, deque[Sample]] = {}

    def take(self, flows: Iterable[Flow]) -> None:
        """Take a snapshot's flows, and forget all further flows."""
        there = {flow.flow: flow for flow in flows}
        with self._lock:
            for gone in self._samples.keys() - there.keys():
                del self._samples[gone]
            for name, flow in there.items():
                if name not in self._samples and len(self._samples) >= MOST_FLOWS:
                    continue
                samples = self._samples.setdefault(name, deque(maxlen=LENGTH))
                sample = _sample(flow)
                if samples and samples[-1].at_s >= sample.at_s:
                    samples[-1] = _joined(samples[-1], sample)
                else:
                    samples.append(sample)

    def of(self, flow: str) -> tuple[Sample, ...]:
        """Return a flow's samples, the oldest first; empty for an unknown flow."""
        with self._lock:
            return tuple(self._samples.get(flow, ()))


def _sample(flow: Flow) -> Sample:
    leads = flow.role is Role.LEADER
    return Sample(
        at_s=flow.at_ms // 1000 // STEP_S * STEP_S,
        state=flow.state,
        stuck=leads and bool(flow.parked or flow.open_transactions),
        lag=flow.lag if leads and not flow.unknown else None,
        lag_s=flow.lag_s if leads and not flow.unknown else None,
        records_per_s=flow.records_per_s if leads else None,
    )


def _joined(before: Sample, newest: Sample) -> Sample:
    return Sample(
        at_s=before.at_s,
        state=min(before.state, newest.state, key=_STATES.index),
        stuck=before.stuck or newest.stuck,
        lag=_larger(before.lag, newest.lag),
        lag_s=_larger(before.lag_s, newest.lag_s),
        records_per_s=newest.records_per_s if newest.records_per_s is not None else before.records_per_s,
    )


_Figure = TypeVar("_Figure", int, float)


def _larger(before: _Figure | None, newest: _Figure | None) -> _Figure | None:
    return max((figure for figure in (before, newest) if figure is not None), default=None)
