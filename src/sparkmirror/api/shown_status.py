"""State and figures of a mirror's flows, as a notebook shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from sparkmirror.api.html import table
from sparkmirror.config import FlowConfig
from sparkmirror.look.doctor.flow_status import line, row
from sparkmirror.mirror.engine.flow_health import is_healthy
from sparkmirror.snapshot.snapshot import Flow, Snapshot
from sparkmirror.snapshot.status_topic import fresh, read_status

STALE_S = 60.0
"""Age in seconds from which a published status is refused.

`sparkmirror status` has the same.
"""


class AgedFlow(NamedTuple):
    """A flow with its figures' age."""

    flow: Flow
    age_s: float

    def __repr__(self) -> str:
        return line(*self)


class MirrorStatus(Mapping[str, AgedFlow]):
    """Status of each flow by name; a table in a notebook, else a line a flow."""

    def __init__(self, flows: Sequence[AgedFlow]) -> None:
        self._flows = {each.flow.flow: each for each in flows}

    @property
    def is_healthy(self) -> bool:
        """True if `sparkmirror status --check` would end with 0."""
        return all(is_healthy(each.flow) for each in self._flows.values())

    @property
    def rows(self) -> list[dict[str, object]]:
        """A row a flow, with the fields of `sparkmirror status -o json`."""
        return [row(*each) for each in self._flows.values()]

    def __getitem__(self, name: str) -> AgedFlow:
        return self._flows[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._flows)

    def __len__(self) -> int:
        return len(self._flows)

    def __repr__(self) -> str:
        return "\n".join(map(repr, self._flows.values())) or "no flows"

    def _repr_html_(self) -> str:
        shown = ("flow", "state", "reason", "progress", "records", "records_per_s", "lag", "parked", "losses")
        return table("sparkmirror", shown, ([_shown(each[name]) for name in shown] for each in self.rows))


def _shown(value: object) -> object:
    return round(value, 3) if isinstance(value, float) else value


def status_of(snapshot: Snapshot) -> MirrorStatus:
    return MirrorStatus([AgedFlow(flow, 0.0) for flow in snapshot.flows])


def published_status(flows: Sequence[FlowConfig]) -> MirrorStatus:
    """Return the status that a running mirror publishes; raises `ClusterUnreachable`."""
    return MirrorStatus([AgedFlow(*fresh(flow, read_status(flow), STALE_S)) for flow in flows])
