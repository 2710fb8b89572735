"""Read one flow's positions, and ask the target, in one thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import suppress

from sparkmirror.clock import now_s
from sparkmirror.exact.durable.claim_log import ClaimLog
from sparkmirror.exact.durable.claims import segments_topic
from sparkmirror.exact.durable.losses import LossLedger, losses_topic
from sparkmirror.exact.position.cause import Cause
from sparkmirror.exact.position.reader import PositionReader
from sparkmirror.exact.position.resolving import Superseded
from sparkmirror.exact.position.route import PartitionPair, PartitionReading, Refusal
from sparkmirror.kafka.cluster.topic_configs import topic_configs
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.pump.background import Background
from sparkmirror.pump.flow_clients import FlowClients
from sparkmirror.pump.loop import Loop
from sparkmirror.pump.messages.orders import FlowOrder, RouteOrder
from sparkmirror.pump.partition import PartitionCopy
from sparkmirror.pump.ready import Question
from sparkmirror.pump.refused import Refused
from sparkmirror.pump.rights_reader import RightsReader

AHEAD_AT_ONCE = 100
"""Most partitions to read ahead for in one piece.

A position that is wanted at once waits for the piece.
"""

POLICIES_S = 300.0
"""Interval of reading cleanup policies again: a newly compacted topic needs R19."""


class PositionReadings:
    """Read one flow's positions.

    `on_read` is called with each answer, `on_superseded` with the reason why this pump may never write again, and
    `on_changed_policies` with the source topics that have another cleanup policy.
    """

    def __init__(
        self,
        order: FlowOrder,
        loop: Loop,
        clients: FlowClients,
        *,
        on_read: Callable[[PartitionCopy, PartitionReading | Refusal], None],
        on_superseded: Callable[[str], None],
        on_changed_policies: Callable[[Set[str]], None],
    ) -> None:
        flow, source = order.flow, order.flow.source.alias
        claim_log = ClaimLog(TopicLog(clients.positions, segments_topic(source)), order.homes)
        ledger = LossLedger(TopicLog(clients.positions, losses_topic(source)))
        self.reader = PositionReader(
            clients.source,
            clients.target,
            claim_log,
            ledger,
            flow.loss,
            order.identity,
            now_s,
            read_committed=flow.fetch.isolation_level == "read_committed",
            turns=bool(flow.turn),
        )
        self._loop = loop
        self._source, self._target = clients.source, clients.target
        self._rights = RightsReader(clients.source, clients.target)
        self._background = Background(
            loop, f"sparkmirror {flow.name}", (clients.source, clients.target, clients.positions)
        )
        self._on_read = on_read
        self._on_superseded = on_superseded
        self._on_changed_policies = on_changed_policies
        self._refused: dict[PartitionPair, Refusal] = {}
        """Partitions that the driver refuses to have copied."""
        self._to_read: list[PartitionCopy] = []
        self._is_reading = False
        self._policies_at = loop.now + POLICIES_S

    def know(self, routes: Iterable[RouteOrder]) -> None:
        """Note the routes that the driver refuses."""
        for route in routes:
            if route.refused:
                self._refused[route.route] = Refusal(route.refused, cause=Cause.TAKEOVER)
            else:
                self._refused.pop(route.route, None)

    def writers_moved(self, ends: Mapping[TopicPartition, int]) -> None:
        """Take the published ends of source partitions."""
        self.reader.writers_moved(ends)

    def look_ahead(
        self, routes: Sequence[RouteOrder], then: Callable[[Mapping[PartitionPair, tuple[int, int]]], None]
    ) -> None:
        """Read what is sure to be needed for positions of these routes soon.

        `then` is called with each pair's leaders, at the source and at the target.
        """
        pairs = [route.route for route in routes]
        parts = [pairs[first : first + AHEAD_AT_ONCE] for first in range(0, len(pairs), AHEAD_AT_ONCE)]
        leaders: dict[PartitionPair, tuple[int, int]] = {}

        def go_on() -> None:
            if parts:
                part = parts.pop()
                self._background.do(lambda: self.reader.look_ahead(part), take, lambda _: take({}))
            else:
                then(leaders)

        def take(more: Mapping[PartitionPair, tuple[int, int]]) -> None:
            leaders.update(more)
            go_on()

        go_on()

    def want(self, copy: PartitionCopy) -> None:
        """Have a position read at the next `flush`."""
        self._to_read.append(copy)

    def flush(self) -> None:
        """Begin to read the positions that are wanted.

        Those that are wanted during a reading are read afterwards, all at once.
        """
        if not self._to_read or self._is_reading:
            return
        copies, self._to_read = self._to_read, []
        for copy in copies:
            if (refusal := self._refused.get(copy.route)) is not None:
                self._on_read(copy, refusal)
        by_route = {copy.route: copy for copy in copies if copy.route not in self._refused}
        reported = {route: copy.progress.reported for route, copy in by_route.items()}
        last = {route: copy.last_copied for route, copy in by_route.items()}

        def hand_out(results: Mapping[PartitionPair, PartitionReading | Refusal]) -> None:
            self._loop.post(lambda: self._answer({by_route.pop(route): result for route, result in results.items()}))

        def read() -> None:
            self.reader.lost_claims.last = last
            self.reader.read(reported, hand_out)

        self._is_reading = True
        self._background.do(
            read,
            lambda _: self._end_reading(),
            lambda error: self._fail(list(by_route.values()), error),
        )

    def _end_reading(self) -> None:
        self._is_reading = False

    def _answer(self, results: Mapping[PartitionCopy, PartitionReading | Refusal]) -> None:
        for copy, result in results.items():
            self._on_read(copy, result)

    def _fail(self, copies: Sequence[PartitionCopy], error: Exception) -> None:
        self._is_reading = False
        if isinstance(error, Superseded):
            self._on_superseded(str(error))
        refusal = Refusal(str(error) or type(error).__name__, transient=True, cause=Cause.UNREACHABLE)
        for copy in copies:
            self._on_read(copy, refusal)

    def ask(self, copy: PartitionCopy, question: Question) -> None:
        """Ask for a topic's settings; positions asked for later are read later."""
        names, target, source = question.names, copy.route.target_topic, copy.route.source_topic
        refused = question.refused

        def at_target() -> dict[str, str]:
            return topic_configs(self._target, (target,), names)[target]

        def limits(why: Refused) -> str:
            at_source = {}
            with suppress(ConnectionError):
                at_source = topic_configs(self._source, (source,), names)[source]
            return why.with_limits(at_target(), at_source)

        if refused is None:
            self._background.do(at_target, copy.trust.learn, lambda _: None)
        else:
            self._explain(copy, refused.words, lambda: limits(refused))

    def explain_rights(self, copy: PartitionCopy) -> None:
        """Ask which rights a refused partition lacks, once for each refusal."""
        trouble = copy.trouble
        if not trouble.explained:
            copy.trouble = trouble._replace(explained=True)
            self._explain(copy, trouble.reason, lambda: "; ".join([trouble.reason, *self._rights.of(copy.route)]))

    def _explain(self, copy: PartitionCopy, reason: str, line: Callable[[], str]) -> None:
        self._background.do(line, lambda longer: copy.explain(reason, longer), lambda _: None)

    def check(self) -> None:
        """Look now and then for newly compacted topics."""
        if self._loop.now >= self._policies_at:
            self._policies_at = self._loop.now + POLICIES_S
            self._background.do(self.reader.changed_policies, self._on_changed_policies, lambda _: None)

    def close(self) -> None:
        self._background.close()
