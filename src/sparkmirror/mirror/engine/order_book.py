"""Orders from a flow's driver to the present round's pumps."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from sparkmirror.config import FlowConfig
from sparkmirror.exact.position.route import PartitionPair
from sparkmirror.kafka.wire.topic_ids import same_topic
from sparkmirror.mirror.engine.assignment import PartitionKey, PartitionLoad
from sparkmirror.mirror.engine.change import TaskChange
from sparkmirror.mirror.engine.driver_control import DriverControl
from sparkmirror.mirror.engine.flow_topics import FlowTopics
from sparkmirror.mirror.engine.flow_view import FlowView, PartitionView
from sparkmirror.mirror.engine.leadership import Leadership
from sparkmirror.mirror.engine.predecessors import Predecessors
from sparkmirror.pump.messages.moves import MOST_MOVES, NO_TASK, RouteMove, RouteMoves
from sparkmirror.pump.messages.orders import AddedRoutes, FlowOrder, RouteOrder

IDLE_AFTER_S = 30.0
"""Seconds until an unreported partition counts as idle: pumps report changes only."""

NO_RANK = -1
"""Rank in orders from a driver without a lease."""


class OrderBook:
    """One flow's orders: `forget` and `order` for each round, then `add` and `move`."""

    def __init__(
        self,
        flow: FlowConfig,
        incarnation: str,
        view: FlowView,
        control: DriverControl,
        leadership: Leadership,
        predecessors: Predecessors,
        topics: FlowTopics,
    ) -> None:
        self.tasks: Mapping[PartitionKey, int] = {}
        """Partition to its Spark task in the round."""
        self._flow = flow
        self._incarnation = incarnation
        self._view = view
        self._control = control
        self._leadership = leadership
        self._predecessors = predecessors
        self._topics = topics
        self._ordered: dict[PartitionKey, RouteOrder] = {}
        """Orders to the pumps in this round."""
        self._ordered_lifetime_ms = 0
        """The producer state's lifetime in this round's orders."""
        self._target_ids: dict[PartitionKey, bytes] = {}
        """Each partition's remote topic id when the order was made."""
        self._added: dict[int, list[RouteOrder]] = {}
        """Orders that came later in this round, by task."""
        self._moves: dict[PartitionKey, RouteMove] = {}
        """Each partition's newest move, if moved in this round."""
        self._is_unsure = False
        """True if it is not known whether running tasks have read the newest words."""

    def loads(self) -> list[PartitionLoad]:
        """Return each partition's rate and backlog, for the planner."""
        loads = []
        for key, (_, leader) in self._topics.pumped().items():
            view = self._view.partitions.get(key)
            rate = view.bytes_per_s if view and time.time() - view.seen_at < IDLE_AFTER_S else 0.0
            backlog = 0.0
            if view and view.receipt and view.receipt.records:
                lag = max(view.receipt.source_end - view.receipt.upstream, 0)
                backlog = lag * view.receipt.bytes / view.receipt.records
            loads.append(
                PartitionLoad(
                    flow=self._flow.name,
                    topic=key.topic,
                    partition=key.partition,
                    leader=leader,
                    bytes_per_s=rate,
                    backlog_bytes=backlog,
                )
            )
        return loads

    def forget(self) -> None:
        """Forget the orders, since a new round is planned."""
        self._ordered.clear()
        self._target_ids.clear()
        self._ordered_lifetime_ms = 0
        self._added.clear()
        self._moves.clear()
        self._is_unsure = False

    def order(self, keys: Iterable[PartitionKey], share: float = 1.0) -> FlowOrder:
        """Return the flow's part of a task's order.

        `share` is the task's part of the flow's bandwidth cap.
        """
        identity, rank = self._leadership.identity, self._leadership.rank
        self._ordered_lifetime_ms = self._ordered_lifetime_ms or self._leadership.state_lifetime_ms
        return FlowOrder(
            flow=self._flow,
            cluster_id=identity.cluster_id,
            source_cluster_id=self._leadership.source_id,
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            routes=self._route_orders(keys),
            share=share,
            leader_rank=NO_RANK if rank is None else rank,
            state_lifetime_ms=min(self._leadership.state_lifetime_ms, self._ordered_lifetime_ms),
            unclean=self._predecessors.unclean,
            former=identity.former,
            homes=self._leadership.homes,
        )

    def _route_orders(self, keys: Iterable[PartitionKey]) -> tuple[RouteOrder, ...]:
        return tuple(self._routes_of(keys).values())

    def _routes_of(self, keys: Iterable[PartitionKey]) -> dict[PartitionKey, RouteOrder]:
        remote = {topic.source.name: topic.remote for topic in self._topics.newest.mirrored}
        routes = {key: self._route_order(key, remote[key.topic].name) for key in keys}
        self._ordered |= routes
        self._target_ids |= {key: remote[key.topic].topic_id for key in routes}
        return routes

    def _route_order(self, key: PartitionKey, target: str) -> RouteOrder:
        topics = self._topics
        receipt = self._view.partitions.get(key, PartitionView()).receipt
        progress = self._predecessors.progress(receipt, (target, key.partition))
        return RouteOrder(
            source_topic=key.topic,
            target_topic=target,
            partition=key.partition,
            until=None if topics.ends is None else topics.ends[key.topic, key.partition],
            done_at=topics.done_topics.end_of(key.topic, key.partition),
            target_topic_id=progress.target_topic_id,
            appended=progress.appended,
            passed=(progress.upstream, progress.downstream),
            refused=topics.takeover.refused.get(PartitionPair(key.topic, target, key.partition), ""),
            opposite=topics.turns.opposite,
            untransformed=topics.rules.is_heartbeats(key.topic),
        )

    @property
    def only_grown(self) -> bool:
        """True if every partition ordered in this round is still to be copied, unmoved.

        A partition may neither have another remote topic nor another reason to be refused, nor may the opposite flow
        have appeared, whose copies are to be passed over. A remote topic that was created again is another topic: an
        idle pump would not notice that its copy is lost. Partitions that reached their end don't count.
        """
        return self._ordered.keys() <= self._unchanged() | self._reached()

    def can_take(self, moved: Mapping[PartitionKey, TaskChange]) -> bool:
        """True if moves between running tasks bring about what is to be copied now.

        As `only_grown`, but partitions may be gone. With `once` the tasks end by themselves, so they take nothing in.
        Partitions that get a task must have had their topics checked, as before a round. It must be known what the
        tasks have read: else a partition could get a second pump (R7).
        """
        if self._topics.ends is not None or len(self._moves) > MOST_MOVES or self._is_unsure:
            return False
        mine = {key for key, move in moved.items() if key.flow == self._flow.name and move.task != NO_TASK}
        targets = self._topics.targets().keys()
        if mine and not (self._topics.checked and mine <= targets):
            return False
        return self._ordered.keys() <= self._unchanged() | self._reached() | (self._ordered.keys() - targets)

    @property
    def is_outlived(self) -> bool:
        """True if the target's producer state lives shorter than this round's orders say.

        Running pumps then take too old records for fresh ones (R4). False if they have nothing left to copy.
        """
        if not self._has_shorter_lifetime:
            return False
        return bool((self._ordered.keys() & self._topics.targets().keys()) - self._reached())

    @property
    def _has_shorter_lifetime(self) -> bool:
        return self._leadership.state_lifetime_ms < self._ordered_lifetime_ms

    def _unchanged(self) -> set[PartitionKey]:
        if self._has_shorter_lifetime:
            return set()
        targets, refused = self._topics.targets(), self._topics.takeover.refused
        return {
            key
            for key, route in self._ordered.items()
            if (target := targets.get(key)) is not None
            and target.name == route.target_topic
            and same_topic(target.topic_id, self._target_ids[key])
            and refused.get(route.route, "") == route.refused
            and self._topics.turns.opposite == route.opposite
        }

    def _reached(self) -> set[PartitionKey]:
        return {key for key in self._ordered if self._topics.done_topics.is_reached(key.topic, key.partition)}

    def move(self, round_number: int, moved: Mapping[PartitionKey, TaskChange], shares: Mapping[int, float]) -> None:
        """Order running tasks to release partitions and to copy others.

        `shares` are as in `RouteMoves`.
        """
        number = max((move.number for move in self._moves.values()), default=0) + 1
        last = {key: self._ordered.pop(key) for key, move in moved.items() if move.task == NO_TASK}
        routes = last | self._routes_of(key for key in moved if key not in last)
        for key, (before, task) in moved.items():
            before = self._last_holder(key, before, task)
            route = routes[key].model_copy(update={"move": number})
            self._moves[key] = RouteMove(number=number, route=route, before=before, task=task)
        self._is_unsure = True
        self._control.move(
            RouteMoves(
                incarnation=self._incarnation,
                epoch=round_number,
                moves=tuple(self._moves.values()),
                shares=dict(shares),
            )
        )
        self._is_unsure = False

    def _last_holder(self, key: PartitionKey, before: int, task: int) -> int:
        """Return the task that has to release a partition first.

        Nobody has waited for a partition's release if it was left alone meanwhile.
        """
        last = self._moves.get(key)
        if before != NO_TASK or last is None:
            return before
        return last.before if last.before != task else NO_TASK

    def newest_move(self, key: PartitionKey) -> int:
        """Return a partition's newest move number in this round; 0 without any."""
        return self._moves[key].number if key in self._moves else 0

    def have_moved(self, keys: Iterable[PartitionKey]) -> bool:
        """True if any of these partitions was moved in this round.

        Only another move can give such a partition to a task.
        """
        return not self._moves.keys().isdisjoint(keys)

    def add(self, round_number: int, taken: Mapping[int, Iterable[PartitionKey]], shares: Mapping[int, float]) -> None:
        """Order running tasks to copy more partitions; `shares` as in `AddedRoutes`."""
        for task, keys in taken.items():
            self._added.setdefault(task, []).extend(self._route_orders(keys))
        routes = {task: tuple(added) for task, added in self._added.items()}
        self._is_unsure = True
        self._control.add(
            AddedRoutes(incarnation=self._incarnation, epoch=round_number, routes=routes, shares=dict(shares))
        )
        self._is_unsure = False
