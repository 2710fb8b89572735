"""What a mirror looks for before it creates anything: mistakes that its flows' settings show."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from sparkmirror.config import FlowConfig
from sparkmirror.errors import ConfigError
from sparkmirror.sync.flow_troubles import FATAL, SAID_BY_RUN, FlowTrouble, flow_troubles

Place = Callable[[FlowTrouble], tuple[str, str]]
"""Where a file says what is wrong, and under which key."""


def see_that_flows_fit(flows: Sequence[FlowConfig], place: Place, running: Collection[str]) -> list[str]:
    """Warnings about the flows, a line each; raises `ConfigError` for the first thing that is fatal.

    Said is only what flows of these names, `running`, have a part in; others may be other processes'.
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
    """By the file and the last flow that is to blame, where lines are not known."""
    return lambda trouble: (path, f"{trouble.flows[-1]}.{trouble.key}")
