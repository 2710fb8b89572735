"""Receipts for the partitions that a query copies, as pumps give."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sparkmirror.exact.position.cause import Cause
from sparkmirror.exact.position.route import PartitionPair
from sparkmirror.kafka.wire.splice import NO_END
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.mirror.engine.assignment import PartitionKey
from sparkmirror.mirror.engine.flow_driver import FlowDriver
from sparkmirror.mirror.engine.flow_view import PartitionView
from sparkmirror.pump.messages.orders import PartitionState, Receipt
from sparkmirror.queries.plan_log import PlannedBatch
from sparkmirror.queries.source_ranges import Halt
from sparkmirror.sink.order import AppendedRange


def end_wanted(driver: FlowDriver, source: TopicPartition) -> int:
    """Return the source offset at which the copy ends.

    The offset comes from `once`, and from `topics done`.
    """
    once, done = driver.topics.ends, driver.topics.done_topics.end_of(*source)
    return min(NO_END if once is None else once.get(source, 0), NO_END if done is None else done)


class QueryProgress:
    """Progress of one query in this process; for one thread."""

    def __init__(self, driver: FlowDriver) -> None:
        self._driver = driver
        self._routes: dict[TopicPartition, PartitionPair] = {}
        self._ends: dict[TopicPartition, int] = {}
        self._copied_to: dict[TopicPartition, int] = {}
        self._downstream: dict[TopicPartition, int] = {}
        self._halted: Mapping[TopicPartition, Halt] = {}

    def see(self, routes: Sequence[PartitionPair], ends: Mapping[TopicPartition, int]) -> None:
        """Note the query's partitions, and the known ends of their logs."""
        self._routes = {route.source: route for route in routes}
        self._ends.update(ends)

    def stand(self, copied_to: Mapping[TopicPartition, int], halted: Mapping[TopicPartition, Halt]) -> None:
        """Give receipts while nothing new is to be copied."""
        self._copied_to.update(copied_to)
        self.halt(halted)

    def halt(self, halted: Mapping[TopicPartition, Halt]) -> None:
        """Give receipts, with the reasons of halted partitions."""
        self._halted = halted
        self._tell({})

    def halt_all(self, why: Halt) -> None:
        """Give receipts while no partition can be copied."""
        self.halt(dict.fromkeys(self._routes, why))

    def take(self, batch: PlannedBatch, read: Mapping[TopicPartition, int], appended: Iterable[AppendedRange]) -> None:
        """Give receipts after a micro-batch's end; `read` are the offsets read."""
        self._copied_to.update(batch.ends)
        of_target = {route.target: at for at, route in self._routes.items()}
        for each in appended:
            at = of_target.get((each.topic, each.partition))
            if at is not None:
                self._downstream[at] = each.last_offset + 1
        self._tell(read)

    def _tell(self, new: Mapping[TopicPartition, int]) -> None:
        view = self._driver.view
        has_changed = False
        for at, route in self._routes.items():
            receipt = self._receipt(at, route)
            key = PartitionKey(self._driver.name, route.source_topic, route.partition)
            told = view.partitions.setdefault(key, PartitionView())
            has_changed |= receipt != told.receipt
            told.copied_by_query(receipt, new.get(at, 0), 0)
        view.counts.add(sum(new.values()), 0)
        view.changes += has_changed

    def _receipt(self, at: TopicPartition, route: PartitionPair) -> Receipt:
        halt = self._halted.get(at)
        held: PartitionState = "waiting" if halt is not None and halt.cause is Cause.PAUSED else "parked"
        state = "running" if halt is None else held
        if halt is None and self._copied_to.get(at, -1) >= end_wanted(self._driver, at):
            state = "done"
        return Receipt(
            flow=self._driver.name,
            source_topic=route.source_topic,
            target_topic=route.target_topic,
            partition=route.partition,
            state=state,
            cause=Cause.NONE if halt is None else halt.cause,
            reason="" if halt is None else halt.reason,
            upstream=self._copied_to.get(at, -1),
            downstream=self._downstream.get(at, -1),
            source_end=self._ends.get(at, -1),
        )
