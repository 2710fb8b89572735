"""A flow's past, for the page's curves."""

from __future__ import annotations

from collections.abc import Iterable

from sparkmirror.look.page.rows import rounded
from sparkmirror.look.page.sentences import KEEPS_UP_S, Tone
from sparkmirror.snapshot.history import Sample
from sparkmirror.snapshot.snapshot import FlowState

_TONES = {
    FlowState.WRONG_CLUSTER: Tone.BAD,
    FlowState.STANDING_BY: Tone.STANDBY,
    FlowState.JOINING: Tone.UNKNOWN,
    FlowState.ENDING: Tone.WORKING,
    FlowState.DONE: Tone.GOOD,
    FlowState.INCOMPLETE: Tone.BAD,
    FlowState.UNREACHABLE: Tone.BAD,
    FlowState.TRANSLATING: Tone.WORKING,
    FlowState.STARTING: Tone.UNKNOWN,
    FlowState.FINDING_OUT: Tone.UNKNOWN,
    FlowState.COPYING: Tone.WORKING,
    FlowState.HELD_UP: Tone.BAD,
    FlowState.NOTHING: Tone.BAD,
    FlowState.WAITS: Tone.WORKING,
    FlowState.CAUGHT_UP: Tone.GOOD,
}


def past(samples: Iterable[Sample], since_s: int = 0) -> list[list[object]]:
    """Return the samples from a time on.

    A sample is a list: time, tone, state, lag, lag in seconds, rate.
    """
    return [
        [
            sample.at_s,
            _tone(sample).value,
            sample.state.value,
            sample.lag,
            rounded(sample.lag_s),
            rounded(sample.records_per_s),
        ]
        for sample in samples
        if sample.at_s >= since_s
    ]


def _tone(sample: Sample) -> Tone:
    if sample.stuck:
        return Tone.BAD
    keeps_up = sample.lag_s is not None and sample.lag_s <= KEEPS_UP_S
    return Tone.GOOD if sample.state is FlowState.COPYING and keeps_up else _TONES[sample.state]
