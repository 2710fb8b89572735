"""The search for unmatched records' keys and contents, in both logs."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from sparkmirror.config import FlowConfig
from sparkmirror.config.model import REVEAL
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.frames.judge import KeysSeen, Placed
from sparkmirror.frames.listed_offsets import ends_now, reads_transactions
from sparkmirror.frames.ranges import RANGE_BYTES, PartitionPlan
from sparkmirror.frames.report import SOURCE, TARGET, Side
from sparkmirror.frames.verify_task import LookOrder, Wanted, look, run_tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchSearch:
    """A search in Spark jobs; `tell` gets the number of finished tasks, and of all."""

    spark: SparkSession
    flows: Mapping[str, FlowConfig]
    transforms_of: Callable[[PartitionPlan], Mapping[str, str]]
    """Function that returns the keys of the transforms of a partition's records."""
    tasks: int
    """Most tasks in one job."""
    tell: Callable[[int, int], None]

    def run(
        self, plans: Sequence[PartitionPlan], placed: Sequence[Sequence[Placed]]
    ) -> tuple[list[dict[Side, KeysSeen]], dict[int, list[str]]]:
        """Return unmatched records' keys and contents that both logs hold.

        Also return the reasons for partitions whose logs could not be searched. Keys are also looked for in records
        written after the plan: such a record is a reason why a cleaner may have taken an earlier record.
        """
        wanted: list[Wanted] = []
        orders: list[tuple[int, Side, str]] = []
        cleaned: dict[int, PartitionPlan] = {}
        for index, (plan, unmatched) in enumerate(zip(plans, placed, strict=True)):
            compacted = plan.source.compacted or plan.target.compacted
            keys = {entry.record.key for entry in unmatched if compacted and entry.record.key >= 0}
            contents = {entry.record.content for entry in unmatched if entry.record.side == TARGET}
            wanted.append(Wanted(keys=frozenset(keys), contents=frozenset(contents)))
            if keys or contents:
                orders += self._look_orders(plan, index, SOURCE, plan.source.start, plan.source.end)
            if keys:
                orders += self._look_orders(plan, index, TARGET, plan.target.start, plan.target.end)
                cleaned[index] = plan
        for (index, side), end in self._ends_now(cleaned).items():
            planned = (plans[index].source if side == SOURCE else plans[index].target).end
            orders += self._look_orders(plans[index], index, side, planned, end, keys_only=True)
        seen: list[dict[Side, KeysSeen]] = [{SOURCE: KeysSeen(), TARGET: KeysSeen()} for _ in plans]
        changed: dict[int, list[str]] = defaultdict(list)
        for start in range(0, len(orders), self.tasks):
            chunk = orders[start : start + self.tasks]
            self.tell(start, len(orders))
            asked = {index: wanted[index] for index, _, _ in chunk}
            answers = run_tasks(self.spark, [order for _, _, order in chunk], functools.partial(look, asked))
            for (index, side, _), answer in zip(chunk, answers, strict=True):
                if answer.failed:
                    raise ClusterUnreachable(answer.failed)
                seen[index][side].add(answer.seen())
                if answer.changed:
                    changed[index].append(answer.changed)
        return seen, changed

    def _look_orders(
        self, plan: PartitionPlan, index: int, side: Side, first: int, end: int, *, keys_only: bool = False
    ) -> Iterator[tuple[int, Side, str]]:
        flow = self.flows[plan.flow]
        step = max(int(RANGE_BYTES / max(plan.bytes_per_offset, 1e-3)), 1)
        for start in range(first, end, step):
            order = LookOrder(
                cluster=flow.source if side == SOURCE else flow.target,
                log=plan.source if side == SOURCE else plan.target,
                partition=plan.partition,
                read_committed=plan.isolation == "read_committed" if side == SOURCE else reads_transactions(flow),
                timestamps=plan.timestamps,
                first=start,
                end=min(start + step, end),
                wanted=index,
                keys_only=keys_only,
                target_topic=plan.target.topic,
                transforms=self.transforms_of(plan) if side == SOURCE else {},
            )
            yield index, side, order.model_dump_json(context=REVEAL)

    def _ends_now(self, plans: Mapping[int, PartitionPlan]) -> dict[tuple[int, Side], int]:
        """Return both logs' present ends; missing partitions are left out."""
        ends: dict[tuple[int, Side], int] = {}
        for flow in self.flows.values():
            isolation = int(flow.fetch.isolation_level == "read_committed")
            ours = {(p.source.topic, p.partition): index for index, p in plans.items() if p.flow == flow.name}
            theirs = {(p.target.topic, p.partition): index for index, p in plans.items() if p.flow == flow.name}
            ends |= {
                (ours[partition], SOURCE): end for partition, end in ends_now(flow.source, ours, isolation).items()
            }
            at_target = ends_now(flow.target, theirs, int(reads_transactions(flow)))
            ends |= {(theirs[partition], TARGET): end for partition, end in at_target.items()}
        return ends
