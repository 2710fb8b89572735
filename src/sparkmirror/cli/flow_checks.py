"""Checks of a run's flows before the run creates anything.

Each message names its place in the user's files.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from sparkmirror.cli.logs import warn
from sparkmirror.config import MirrorConfig
from sparkmirror.config.effective import EffectiveValue
from sparkmirror.config.formats import Reading, model_of
from sparkmirror.errors import ConfigError
from sparkmirror.mirror.engine.start_checks import Place, see_that_flows_fit
from sparkmirror.mirror.sync.flow_troubles import FlowTrouble

_ENABLED = "enabled"


def check_flows(
    reading: Reading, config: MirrorConfig, values: Iterable[EffectiveValue], clusters: Sequence[str]
) -> None:
    """Warn of odd flows, and raise `ConfigError` for impossible flows.

    With `clusters` the file's other flows count, too: other processes run those flows.
    """
    flows = config.flows
    if clusters:
        with suppress(ConfigError):  # mistakes that concern other processes only, which complain themselves
            whole, values = model_of(reading)
            flows = whole.flows
    for line in see_that_flows_fit(flows, _in_files(reading, values), {flow.name for flow in config.flows}):
        warn(line)


def _in_files(reading: Reading, values: Iterable[EffectiveValue]) -> Place:
    """Return a function that finds the place of a flow's trouble.

    The place is the line that states the setting to blame for one of the flows, else the line that enables the last
    flow.
    """
    stated = {(value.flow, _name(value)): value.where for value in values}
    lines = {entry.key: entry.line for entry in reading.entries}

    def place(trouble: FlowTrouble) -> tuple[str, str]:
        asked = [(flow, trouble.key) for flow in trouble.flows] + [(trouble.flows[-1], _ENABLED)]
        for setting in asked:
            file, colon, rest = stated.get(setting, "").rpartition(": ")
            key = rest.partition(" = ")[0]
            if colon:
                line = f", line {lines[key]}" if lines.get(key) else ""
                return file.removesuffix(line) + line, key
        return reading.path, f"{trouble.flows[-1]}.{trouble.key}"

    return place


def _name(value: EffectiveValue) -> str:
    return value.key.removeprefix(f"{value.flow}.")
