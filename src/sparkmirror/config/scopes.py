"""A key's scope: the cluster or flow, the role and the name.

`us->eu.source.consumer.fetch.max.bytes` has a flow, a role and a name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import permutations

from sparkmirror.config import known_keys
from sparkmirror.config.duty_settings import DUTY_SETTINGS
from sparkmirror.config.entries import Entry
from sparkmirror.config.schema_settings import SCHEMA_SETTINGS
from sparkmirror.config.settings import FLOW_SETTINGS, LOSS_SETTINGS

WHOLE_NAMES = {*known_keys.CONNECTOR, *known_keys.CONNECTOR_BASE, *known_keys.CONNECT} | {
    setting.name for setting in (*FLOW_SETTINGS, *DUTY_SETTINGS, *LOSS_SETTINGS, *SCHEMA_SETTINGS)
}
"""Names that are never split, though they may begin like an alias or a role.

Examples are `admin.timeout.ms` and `source.cluster.alias`.
"""


class Level(Enum):
    """A key's reach."""

    TOP = "top"
    CLUSTER = "cluster"
    FLOW = "flow"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopedKey:
    """An entry's key in parts; `prefix + role + name` is the key again."""

    entry: Entry
    level: Level
    prefix: str
    """`us->eu.`, `us.` or empty."""
    role: str
    """Role from `ROLES`, or empty."""
    name: str


class Scopes:
    """Splitter for keys, with the clusters' aliases and the flows that will run."""

    def __init__(self, aliases: Sequence[str], flows: Iterable[tuple[str, str]]) -> None:
        self.flows = tuple(flows)
        running = {alias for flow in self.flows for alias in flow}
        self._reach: dict[str, tuple[Level, bool]] = {
            f"{alias}.": (Level.CLUSTER, alias in running) for alias in aliases
        } | {
            f"{source}->{target}.": (Level.FLOW, (source, target) in self.flows)
            for source, target in permutations(aliases, 2)
        }

    @property
    def prefixes(self) -> list[str]:
        """Key prefixes, aliases and flows, each with its dot."""
        return list(self._reach)

    def split(self, entry: Entry) -> ScopedKey | None:
        """Split the entry's key.

        None if the key concerns only clusters and flows that don't run.
        """
        # An alias may be the start of another alias, or of a known name.
        own = [prefix for prefix in self._reach if entry.key.startswith(prefix)]
        prefix = "" if entry.key in WHOLE_NAMES else max(own, key=len, default="")
        level, runs = self._reach.get(prefix, (Level.TOP, True))
        if not runs:
            return None
        rest = entry.key.removeprefix(prefix)
        roles = () if rest in WHOLE_NAMES else known_keys.ROLES
        role = next((role for role in roles if rest.startswith(role)), "")
        return ScopedKey(entry=entry, level=level, prefix=prefix, role=role, name=rest.removeprefix(role))
