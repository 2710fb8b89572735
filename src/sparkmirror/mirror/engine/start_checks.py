"""Checks before a mirror creates anything: mistakes shown by its flows' settings."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from sparkmirror.config import FlowConfig
from sparkmirror.errors import ConfigError
from sparkmirror.mirror.sync.flow_troubles import FATAL, SAID_BY_RUN, FlowTrouble, flow_troubles

Place = Callable[[FlowTrouble], tuple[str, str]]
"""Function from a trouble to the file and the key to blame."""


def see_that_flows_fit(flows: Sequence[FlowConfig], place: Place, running: Collection[str]) -> list[str]:
    """Return warnings about the flows, a line each.

    Raises `ConfigError` for the first fatal trouble. Only troubles that involve a flow in `running` count; other flows
    may be other processes'.
    """
    lines = []
    for trouble in flow_troubles(flows):
        if trouble.kind not in SAID_BY_RUN or not {*trouble.flows} & {*running}:
            continue
        file, key = place(trouble)
        error = ConfigError(trouble.line, origin=file, key=key)
        if trouble.kind in FATAL:
            raise error
        lines.append(str(error))
    return lines


def in_config(path: str) -> Place:
    """Return a place that names the file and the last flow to blame.

    Messages without a known line need such a place.
    """
    return lambda trouble: (path, f"{trouble.flows[-1]}.{trouble.key}")
