"""A verification: plan, compare range by range in Spark jobs, look into what is unmatched, judge."""

from __future__ import annotations

import dataclasses
import functools
import json
import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from sparkmirror.config import FlowConfig, MirrorConfig
from sparkmirror.config.model import REVEAL
from sparkmirror.engine.session import guard_secrets
from sparkmirror.errors import ClusterUnreachable, ConfigError
from sparkmirror.frames.due import GONE, NO_PARTITION, NOT_COPIED, PARKED, CountOrder, count_records, parked
from sparkmirror.frames.journal import Journal
from sparkmirror.frames.judge import Cleaning, KeysSeen, Placed, judge
from sparkmirror.frames.listed_offsets import ends_now
from sparkmirror.frames.ranges import RANGE_BYTES, LogPlan, PartitionPlan, RangePlan, Window
from sparkmirror.frames.report import (
    SOURCE,
    TARGET,
    Difference,
    Kind,
    PartitionResult,
    RangeReport,
    Side,
    Verification,
)
from sparkmirror.frames.survey import ABSENT, Due, FlowSurvey, Scope
from sparkmirror.frames.task import Answer, CompareOrder, LookOrder, Wanted, compare_range, look, run_tasks
from sparkmirror.policy import NamePatterns
from sparkmirror.wire.topic_partition import TopicPartition

DIFFERENCES = (
    "flow string, topic string, target_topic string, partition int, kind string, upstream long, downstream long, "
    "what string"
)
"""The schema of the DataFrame; an offset is null where a side has no such record."""

MOST_JUDGED = 500_000
"""Unmatched records of a partition that are looked into; more are only counted."""
DUE_S, DUE_PAUSE_S = 10.0, 1.0
"""How long, at most, and how often it is looked whether a mirror copies what was due when the plan was made."""
_TASKS_A_SLOT = 2
"""In one job; two jobs are on their way, so that no slot waits for a job's last task."""
_JOBS = 2


@dataclass(frozen=True, slots=True)
class Options:
    """What to verify, and how; by default all that the flows copy."""

    topics: tuple[str, ...] = ()
    """Regexes; a source topic's whole name must match one."""
    from_offset: int | None = None
    """At the source; the first to compare."""
    to_offset: int | None = None
    """At the source; the first not to compare."""
    from_time: datetime | None = None
    """By the source's timestamps, as `KafkaConsumer.offsets_for_times` finds offsets."""
    to_time: datetime | None = None
    sample: float | None = None
    """Compare this share of the ranges, chosen at random."""
    seed: int = 0
    """Of the choice."""
    resume: Path | None = None
    """A journal: what it holds is not compared again."""
    limit: int = 100
    """Differences listed of each partition; all are counted."""

    def __post_init__(self) -> None:
        if self.sample is not None and not 0 < self.sample <= 1:
            raise ConfigError("a share must be above 0 and at most 1", where="--sample", key=str(self.sample))
        if (self.from_offset is not None or self.to_offset is not None) and (self.from_time or self.to_time):
            raise ConfigError("give offsets or times, not both", where="--from-offset, --from-time")

    def scope(self) -> Scope:
        """As the survey takes it."""
        try:
            topics = NamePatterns(self.topics or (".*",))
        except ValueError as error:
            raise ConfigError(str(error), where="--topics") from error
        return Scope(
            topics.accepts, Window(self.from_offset, self.to_offset), _millis(self.from_time), _millis(self.to_time)
        )

    def words(self, flows: Iterable[FlowConfig]) -> str:
        """What makes two verifications the same one."""
        named = {flow.name: [*flow.source.bootstrap_servers, *flow.target.bootstrap_servers] for flow in flows}
        times = [str(self.from_time), str(self.to_time)]
        offsets = [self.from_offset, self.to_offset]
        return json.dumps([named, self.topics, offsets, times, self.sample, self.seed])


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a verification is; rates are since it began."""

    phase: str
    """`comparing` or `looking into differences`."""
    done: int
    """Tasks, those that a journal had included."""
    total: int
    records: int
    bytes: int
    """Read of the source in this run."""
    unmatched: int
    elapsed_s: float
    eta_s: float | None


def verify(spark: SparkSession, config: MirrorConfig, options: Options | None = None) -> DataFrame:
    """Compare sources and targets; a row for each difference (`DIFFERENCES`), none if all is well.

    Of what could not be listed, or not be judged, each partition has one row of kind `unlisted`; of what is not at the
    target yet one of kind `behind`. Raises `ConfigError` and `ClusterUnreachable`.
    """
    found = run_verification(spark, config, options or Options())
    listed = Counter(one[:4] for one in found.differences)
    rows = [tuple(one) for one in found.differences]
    for partition in found.partitions:
        where = partition.flow, partition.topic, partition.target_topic, partition.partition
        if partition.not_copied_yet:
            rows.append((*where, "behind", None, None, f"{partition.not_copied_yet} records: {partition.because}"))
        if what := partition.beyond(listed[where]):
            rows.append((*where, "unlisted", None, None, what))
    return spark.createDataFrame(rows, DIFFERENCES)


def run_verification(
    spark: SparkSession,
    config: MirrorConfig,
    options: Options,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> Verification:
    """As `verify`, with the figures of each partition."""
    settings = dict(spark.sparkContext.getConf().getAll())
    for flow in config.flows:
        guard_secrets(flow, settings, config.path)
    return _VerifyRun(spark, config, options, on_progress).run()


class _VerifyRun:
    def __init__(
        self, spark: SparkSession, config: MirrorConfig, options: Options, on_progress: Callable[[Progress], None]
    ) -> None:
        self._spark = spark
        self._flows = {flow.name: flow for flow in config.flows}
        self._options = options
        self._on_progress = on_progress
        self._slots = max(spark.sparkContext.defaultParallelism, 1)
        self._reports: dict[int, RangeReport] = {}
        self._plan_of: dict[int, int] = {}
        self._parked: dict[str, Mapping[TopicPartition, str]] = {}
        """By flow, as far as it was asked for."""
        self._held: Counter[int] = Counter()
        """Unmatched records by plan."""
        self._began = time.monotonic()

    def run(self) -> Verification:
        resume = self._options.resume
        journal = Journal(resume, self._options.words(self._flows.values())) if resume else None
        loaded = journal.load() if journal else None
        if loaded is not None:
            plans = loaded[0]
            reports = loaded[1]
        else:
            plans, reports = self._plan(), []
            if journal:
                journal.begin(plans)
        self._plan_of = {span.range: index for index, plan in enumerate(plans) for span in plan.ranges}
        self._reports = {report.range: self._bounded(report) for report in reports}
        every = [(plan, span) for plan in plans for span in plan.ranges]
        chosen = self._sampled(every)
        self._compare([(plan, span) for plan, span in chosen if span.range not in self._reports], len(chosen), journal)
        if journal:
            journal.close()
        compared = self._judge(plans, {span.range for _, span in chosen}, len(every))
        return self._with_due(compared, plans) if any(plan.is_due for plan in plans) else compared

    def _plan(self) -> list[PartitionPlan]:
        scope = self._options.scope()
        plans: list[PartitionPlan] = []
        for flow in self._flows.values():
            with FlowSurvey(flow, scope) as survey:
                plans += survey.plan(sum(len(plan.ranges) for plan in plans))
        if not plans:
            raise ConfigError(
                "no topic of the source is among what the flows copy", where="--topics, or the file's topics"
            )
        return plans

    def _sampled(self, every: Sequence[tuple[PartitionPlan, RangePlan]]) -> list[tuple[PartitionPlan, RangePlan]]:
        if self._options.sample is None or not every:
            return list(every)
        count = max(round(len(every) * self._options.sample), 1)
        numbers = random.Random(self._options.seed).sample(range(len(every)), count)  # noqa: S311 - no secret
        return [every[number] for number in sorted(numbers)]

    def _compare(self, due: Sequence[tuple[PartitionPlan, RangePlan]], total: int, journal: Journal | None) -> None:
        orders = [self._compare_order(plan, span) for plan, span in due]
        done = total - len(due)
        read = records = 0
        unmatched = sum(len(report.unmatched) for report in self._reports.values())
        for answers in self._jobs(orders, compare_range):
            reports = [self._bounded(answer.report) for answer in answers if answer.report is not None]
            self._reports |= {report.range: report for report in reports}
            if journal:
                journal.append(reports)
            done += len(reports)
            read += sum(report.bytes for report in reports)
            records += sum(report.records for report in reports)
            unmatched += sum(len(report.unmatched) for report in reports)
            self._tell("comparing", done, total, len(due), records, read, unmatched)

    def _bounded(self, report: RangeReport) -> RangeReport:
        """The same with no more unmatched records than its partition may have."""
        plan, unmatched = self._plan_of[report.range], len(report.unmatched)
        kept = min(unmatched, MOST_JUDGED - self._held[plan])
        self._held[plan] += kept
        more = {"unmatched": report.unmatched[:kept], "not_listed": report.not_listed + unmatched - kept}
        return report if kept == unmatched else report.model_copy(update=more)

    def _tell(
        self, phase: str, done: int, total: int, due: int, records: int = 0, read: int = 0, unmatched: int = 0
    ) -> None:
        elapsed_s = time.monotonic() - self._began
        finished = due - (total - done)
        eta_s = elapsed_s / finished * (total - done) if finished else None
        self._on_progress(Progress(phase, done, total, records, read, unmatched, elapsed_s, eta_s))

    def _jobs(self, orders: Sequence[str], body: Callable[[str], str]) -> Iterator[list[Answer]]:
        """Run orders in jobs of a few tasks a slot, two at a time; answers come as jobs end.

        Where one failed, those of the jobs that are on their way come all the same, before `ClusterUnreachable`.
        """
        size = self._slots * _TASKS_A_SLOT
        chunks = [orders[start : start + size] for start in range(0, len(orders), size)][::-1]
        failed = ""
        with ThreadPoolExecutor(_JOBS) as pool:
            running: set[Future[list[Answer]]] = set()
            while chunks or running:
                while chunks and len(running) < _JOBS:
                    running.add(pool.submit(run_tasks, self._spark, chunks.pop(), body))
                ended, running = wait(running, return_when=FIRST_COMPLETED)
                for job in ended:
                    answers = job.result()
                    failed = failed or next((answer.failed for answer in answers if answer.failed), "")
                    yield [answer for answer in answers if not answer.failed]
                if failed:
                    chunks.clear()
        if failed:
            raise ClusterUnreachable(failed)

    def _compare_order(self, plan: PartitionPlan, span: RangePlan) -> str:
        flow = self._flows[plan.flow]
        return CompareOrder(
            source_cluster=flow.source,
            target_cluster=flow.target,
            source=plan.source,
            target=plan.target,
            partition=plan.partition,
            read_committed=plan.isolation == "read_committed",
            timestamps=plan.timestamps,
            range=span,
        ).model_dump_json(context=REVEAL)

    # --- what was not copied yet ----------------------------------------------------------------

    def _with_due(self, compared: Verification, plans: Sequence[PartitionPlan]) -> Verification:
        """The same, and what was due when the plan was made: compared where it is there by now, else counted."""
        rest = self._plan_due(plans)
        ranges = [(plan, span) for plan in rest for span in plan.ranges]
        self._plan_of |= {span.range: len(plans) + index for index, plan in enumerate(rest) for span in plan.ranges}
        self._compare(ranges, len(ranges), None)
        later = self._judge(rest, {span.range for _, span in ranges}, len(ranges))
        results = {one.at: one for one in compared.partitions}
        before = {plan.at: plan for plan in plans if plan.is_due}
        for at, plan in before.items():
            words = tuple(note for note in results[at].notes if note != plan.why_due)
            results[at] = results[at].model_copy(update={"notes": words, **_behind(plan.due[1] - plan.due[0], GONE)})
        for plan, result, count in zip(rest, later.partitions, self._counted(rest), strict=True):
            due, start = before[plan.at].due, plan.source.start
            joined = results[plan.at].joined(result)
            expired = joined.expired + max(min(start, due[1]) - due[0], 0)
            because, words = self._why(plan) if count else ("", ())
            results[plan.at] = joined.model_copy(
                update={"expired": expired, "notes": (*joined.notes, *words), **_behind(count, because)}
            )
        return Verification(
            tuple(results.values()),
            compared.differences + later.differences,
            compared.ranges + later.ranges,
            compared.all_ranges + later.all_ranges,
        )

    def _plan_due(self, plans: Sequence[PartitionPlan]) -> list[PartitionPlan]:
        """Plan again what was due, once the mirror has copied it, or when it gets no further."""
        first = sum(len(plan.ranges) for plan in plans)
        until, before = time.monotonic() + DUE_S, -1
        while True:
            rest: list[PartitionPlan] = []
            for flow in self._flows.values():
                due = {
                    (one.source.topic, one.partition): Due(*one.due, one.target.end)
                    for one in plans
                    if one.is_due and one.flow == flow.name
                }
                if due:
                    with FlowSurvey(flow, dataclasses.replace(self._options.scope(), due=due)) as survey:
                        rest += survey.plan(first + sum(len(plan.ranges) for plan in rest))
            left = sum(plan.due[1] - plan.due[0] for plan in rest)
            if not left or left == before or time.monotonic() > until:
                return rest
            before = left
            time.sleep(DUE_PAUSE_S)

    def _counted(self, rest: Sequence[PartitionPlan]) -> list[int]:
        """How many records of each partition are not there yet; where the target topic is gone, they are missing."""
        counts = [0] * len(rest)
        due = [index for index, plan in enumerate(rest) if plan.is_due]
        orders = [self._count_order(rest[index]) for index in due]
        for index, answer in zip(due, run_tasks(self._spark, orders, count_records) if orders else (), strict=True):
            if answer.failed:
                raise ClusterUnreachable(answer.failed)
            counts[index] = answer.records
        return counts

    def _count_order(self, plan: PartitionPlan) -> str:
        return CountOrder(
            cluster=self._flows[plan.flow].source,
            log=plan.source,
            partition=plan.partition,
            read_committed=plan.isolation == "read_committed",
            first=plan.due[0],
            end=plan.due[1],
        ).model_dump_json(context=REVEAL)

    def _why(self, plan: PartitionPlan) -> tuple[str, tuple[str, ...]]:
        """Why records of a partition are not there yet: in a few words, and what more is known."""
        if plan.flow not in self._parked:
            self._parked[plan.flow] = parked(self._flows[plan.flow])
        reason = self._parked[plan.flow].get((plan.source.topic, plan.partition))
        if reason is not None:
            return PARKED, (f"the mirror has parked it: {reason}",)
        return (NO_PARTITION if plan.why_due == ABSENT else NOT_COPIED), ()

    # --- what is unmatched ----------------------------------------------------------------------

    def _judge(self, plans: Sequence[PartitionPlan], chosen: set[int], all_ranges: int) -> Verification:
        by_plan = [
            [self._reports[span.range] for span in plan.ranges if span.range in chosen and span.range in self._reports]
            for plan in plans
        ]
        placed = [
            [Placed(report.range, record) for report in reports for record in report.unmatched] for reports in by_plan
        ]
        now_ms = int(time.time() * 1000)
        seen, changed = self._look_for(plans, placed)
        results: list[PartitionResult] = []
        differences: list[Difference] = []
        for index, plan in enumerate(plans):
            judgement = judge(
                [] if index in changed else placed[index],
                {SOURCE: _cleaning(plan.source, now_ms), TARGET: _cleaning(plan.target, now_ms)},
                seen[index],
                timestamps=plan.timestamps,
            )
            where = plan.flow, plan.source.topic, plan.target.topic, plan.partition
            found = sorted(judgement.differences, key=lambda one: (one.upstream is None, one.upstream, one.downstream))
            differences += [Difference(*where, *one) for one in found[: self._options.limit]]
            counts: dict[Kind, int] = defaultdict(int)
            counts.update({kind: count for kind, count in _by_plan(plan) if count})
            for one in found:
                counts[one.kind] += 1
            reports = by_plan[index]
            results.append(
                PartitionResult(
                    flow=plan.flow,
                    topic=plan.source.topic,
                    target_topic=plan.target.topic,
                    partition=plan.partition,
                    records=sum(report.records for report in reports),
                    bytes=sum(report.bytes for report in reports),
                    differences=dict(counts),
                    compacted=judgement.compacted,
                    expired=plan.expired + sum(report.expired for report in reports),
                    unjudged=sum(report.not_listed for report in reports)
                    + (len(placed[index]) if index in changed else 0),
                    notes=tuple(dict.fromkeys((*plan.notes, *_damage(reports), *changed.get(index, ())))),
                )
            )
        return Verification(tuple(results), tuple(differences), len(chosen), all_ranges)

    def _look_for(
        self, plans: Sequence[PartitionPlan], placed: Sequence[Sequence[Placed]]
    ) -> tuple[list[dict[Side, KeysSeen]], dict[int, list[str]]]:
        """What both logs of each partition hold of its unmatched records, and why those of some could not be told.

        Keys are looked for in what was written since the plan, too: it is why a cleaner may have taken a record.
        """
        wanted: list[Wanted] = []
        orders: list[tuple[int, Side, str]] = []
        cleaned: dict[int, PartitionPlan] = {}
        for index, (plan, unmatched) in enumerate(zip(plans, placed, strict=True)):
            compacted = plan.source.compacted or plan.target.compacted
            keys = {one.record.key for one in unmatched if compacted and one.record.key >= 0}
            contents = {one.record.content for one in unmatched if one.record.side == TARGET}
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
        self._began = time.monotonic()
        size = self._slots * _TASKS_A_SLOT
        for start in range(0, len(orders), size):
            chunk = orders[start : start + size]
            self._tell("looking into differences", start, len(orders), len(orders))
            asked = {index: wanted[index] for index, _, _ in chunk}
            answers = run_tasks(self._spark, [order for _, _, order in chunk], functools.partial(look, asked))
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
        flow = self._flows[plan.flow]
        step = max(int(RANGE_BYTES / max(plan.bytes_per_offset, 1e-3)), 1)
        for start in range(first, end, step):
            order = LookOrder(
                cluster=flow.source if side == SOURCE else flow.target,
                log=plan.source if side == SOURCE else plan.target,
                partition=plan.partition,
                read_committed=side == SOURCE and plan.isolation == "read_committed",
                timestamps=plan.timestamps,
                first=start,
                end=min(start + step, end),
                wanted=index,
                keys_only=keys_only,
            )
            yield index, side, order.model_dump_json(context=REVEAL)

    def _ends_now(self, plans: Mapping[int, PartitionPlan]) -> dict[tuple[int, Side], int]:
        """Where both logs of these partitions end by now, but for those that are no more."""
        found: dict[tuple[int, Side], int] = {}
        for flow in self._flows.values():
            isolation = int(flow.fetch.isolation_level == "read_committed")
            ours = {(p.source.topic, p.partition): index for index, p in plans.items() if p.flow == flow.name}
            theirs = {(p.target.topic, p.partition): index for index, p in plans.items() if p.flow == flow.name}
            found |= {(ours[where], SOURCE): end for where, end in ends_now(flow.source, ours, isolation).items()}
            found |= {(theirs[where], TARGET): end for where, end in ends_now(flow.target, theirs).items()}
        return found


def _behind(records: int, because: str) -> dict[str, object]:
    return {"not_copied_yet": records, "because": because}


def _by_plan(plan: PartitionPlan) -> tuple[tuple[Kind, int], ...]:
    """Differences that the claims tell, without a look at the records."""
    return ("missing", plan.gone), ("duplicate", plan.twice)


def _damage(reports: Iterable[RangeReport]) -> Iterator[str]:
    return (report.damage for report in reports if report.damage)


def _cleaning(log: LogPlan, now_ms: int) -> Cleaning:
    return Cleaning(log.compacted, now_ms - log.tombstones_kept_ms)


def _millis(when: datetime | None) -> int | None:
    return None if when is None else int(when.timestamp() * 1000)
