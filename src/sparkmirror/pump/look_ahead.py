"""Prepare a pump for partitions that other tasks still copy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from sparkmirror.exact.position.route import PartitionPair
from sparkmirror.pump.claim_writer import ClaimWriter
from sparkmirror.pump.loop import Loop
from sparkmirror.pump.messages.orders import RouteOrder
from sparkmirror.pump.readings import PositionReadings
from sparkmirror.pump.source_connections import SourceConnections
from sparkmirror.pump.target_connections import TargetConnections

AHEAD_S = 5.0
"""Longest preparation; then the partition comes all the same."""

Prepared = Callable[[Mapping[PartitionPair, int]], None]
"""Call when all is ready for pairs, with each one's target leader."""


class _Awaited(NamedTuple):
    leaders: Mapping[PartitionPair, tuple[int, int]]
    """Each pair's leaders on both sides."""
    then: Prepared
    until: float
    """Latest time to tell."""


class LookAhead:
    """Prepare one flow's pump for partitions that come from other tasks.

    What a position reading will need is read, connections are made, and no fetch is under way for which the source
    could wait long: the partition's first fetch would have to wait as long.
    """

    def __init__(
        self,
        loop: Loop,
        readings: PositionReadings,
        claims: ClaimWriter,
        sources: SourceConnections,
        targets: TargetConnections,
    ) -> None:
        self._loop = loop
        self._readings = readings
        self._claims = claims
        self._sources = sources
        self._targets = targets
        self._waiting: list[_Awaited] = []

    def begin(self, routes: Sequence[RouteOrder], then: Prepared) -> None:
        """Prepare for these routes; call `then` once all is ready, perhaps twice.

        The call has each pair's target leader, or nothing if not all could be made ready in time.
        """
        until = self._loop.now + AHEAD_S
        self._loop.at(until, lambda: then({}))
        self._claims.reach()
        self._readings.look_ahead(routes, lambda leaders: self._connect(_Awaited(leaders, then, until)))

    def _connect(self, wait: _Awaited) -> None:
        for source, target in set(wait.leaders.values()):
            self._sources.expect(source)
            self._targets.dial_ahead(target)
        self._waiting.append(wait)

    def flush(self) -> None:
        """Tell those for whom all is ready."""
        self._waiting = [wait for wait in self._waiting if self._loop.now <= wait.until]
        for wait in list(self._waiting):
            pairs = set(wait.leaders.values())
            if all(self._sources.is_prompt(source) and self._targets.is_connected(target) for source, target in pairs):
                self._waiting.remove(wait)
                for source, _ in pairs:
                    self._sources.expect(source)
                wait.then({pair: target for pair, (_, target) in wait.leaders.items()})
