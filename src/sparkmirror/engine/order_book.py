"""Orders of a flow's driver to the pumps of the present round."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from sparkmirror.config import FlowConfig
from sparkmirror.engine.assignment import PartitionKey, PartitionLoad
from sparkmirror.engine.driver_control import DriverControl
from sparkmirror.engine.flow_topics import FlowTopics
from sparkmirror.engine.flow_view import FlowView, PartitionView
from sparkmirror.engine.leadership import Leadership
from sparkmirror.engine.predecessors import Predecessors
from sparkmirror.messages.orders import AddedRoutes, FlowOrder, RouteOrder
from sparkmirror.position.route import PartitionPair

IDLE_AFTER_S = 30.0
"""Seconds until an unreported partition counts as idle: pumps report changes only."""

NO_RANK = -1
"""Rank in an order of a driver without a lease."""


class OrderBook:
    """Orders of one flow: `forget` and `order` for each round, then perhaps `add`."""

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
        """Partition to the Spark task that copies it in this round."""
        self._flow = flow
        self._incarnation = incarnation
        self._view = view
        self._control = control
        self._leadership = leadership
        self._predecessors = predecessors
        self._topics = topics
        self._ordered: dict[PartitionKey, RouteOrder] = {}
        """Orders to the pumps in this round."""
        self._added: dict[int, list[RouteOrder]] = {}
        """Orders that came later in this round, by task."""

    def loads(self) -> list[PartitionLoad]:
        """Return each partition's rate and backlog, for the planner."""
        loads = []
        for key, (_, leader) in self._topics.partitions().items():
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
        self._added.clear()

    def order(self, keys: Iterable[PartitionKey], share: float = 1.0) -> FlowOrder:
        """Return the flow's part of a task's order.

        `share` is the task's part of the flow's bandwidth cap.
        """
        identity, rank = self._leadership.identity, self._leadership.rank
        return FlowOrder(
            flow=self._flow,
            cluster_id=identity.cluster_id,
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            routes=self._route_orders(keys),
            share=share,
            leader_rank=NO_RANK if rank is None else rank,
            state_lifetime_ms=self._leadership.state_lifetime_ms,
            unclean=self._predecessors.unclean,
            former=identity.former,
        )

    def _route_orders(self, keys: Iterable[PartitionKey]) -> tuple[RouteOrder, ...]:
        targets = {topic.source.name: topic.remote.name for topic in self._topics.newest.mirrored}
        routes = {key: self._route_order(key, targets[key.topic]) for key in keys}
        self._ordered |= routes
        return tuple(routes.values())

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
        )

    @property
    def only_grown(self) -> bool:
        """True if every partition ordered in this round is still to be copied, unmoved.

        A partition may neither have another remote topic nor another reason of refusal. Partitions that reached their
        end don't count.
        """
        targets, refused = self._topics.targets(), self._topics.takeover.refused
        return all(
            targets.get(key) == route.target_topic and refused.get(route.route, "") == route.refused
            for key, route in self._ordered.items()
            if not self._topics.done_topics.is_reached(key.topic, key.partition)
        )

    def add(self, round_number: int, taken: Mapping[int, Iterable[PartitionKey]], shares: Mapping[int, float]) -> None:
        """Order running tasks to copy more partitions; `shares` as in `AddedRoutes`."""
        for task, keys in taken.items():
            self._added.setdefault(task, []).extend(self._route_orders(keys))
        routes = {task: tuple(added) for task, added in self._added.items()}
        self._control.add(
            AddedRoutes(incarnation=self._incarnation, epoch=round_number, routes=routes, shares=dict(shares))
        )
