"""A verification: plan, compare ranges in Spark jobs, search for matches, judge."""

from __future__ import annotations

import dataclasses
import logging
import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from pyspark.sql import DataFrame, SparkSession

from sparkmirror.chunks import chunks
from sparkmirror.config import MirrorConfig
from sparkmirror.config.model import REVEAL
from sparkmirror.config.spark_guards import guard_secrets
from sparkmirror.errors import ClusterUnreachable, ConfigError, SetupError, SparkMirrorError
from sparkmirror.events import Event
from sparkmirror.frames.due import GONE, NO_PARTITION, NOT_COPIED, PARKED, CountOrder, count_records, parked
from sparkmirror.frames.journal import Journal
from sparkmirror.frames.judge import Cleaning, Judged, Placed, judge
from sparkmirror.frames.listed_offsets import reads_transactions
from sparkmirror.frames.match_search import MatchSearch
from sparkmirror.frames.mirror_watch import MirrorWatch
from sparkmirror.frames.ranges import LogPlan, PartitionPlan, RangePlan
from sparkmirror.frames.report import (
    SOURCE,
    TARGET,
    Difference,
    Kind,
    PartitionResult,
    RangeReport,
    Verification,
)
from sparkmirror.frames.survey import ABSENT, Due, FlowSurvey
from sparkmirror.frames.verify_options import Options, Progress
from sparkmirror.frames.verify_task import Answer, CompareOrder, compare_range, run_tasks
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.mirror.engine.session import settings_of
from sparkmirror.mirror.sync.topic_rules import topic_rules

DIFFERENCES = (
    "flow string, topic string, target_topic string, partition int, kind string, upstream long, downstream long, "
    "what string"
)
"""The DataFrame's schema; an offset is null if a side has no such record."""

MOST_JUDGED = 500_000
"""Most unmatched records to judge in a partition; further records are counted."""
DUE_S, DUE_PAUSE_S = 10.0, 1.0
"""Seconds to wait for the mirror to copy due records, at most, and between looks."""
_TASKS_A_SLOT = 2
"""One job's tasks for each slot.

Two jobs are under way, so that no slot waits for a job's last task.
"""
_JOBS = 2


log = logging.getLogger(__name__)


def verify(spark: SparkSession, config: MirrorConfig, options: Options | None = None) -> DataFrame:
    """Compare sources and targets; return a row for each difference (`DIFFERENCES`).

    Without differences the DataFrame is empty. A partition with unlisted or unjudged records has one more row with kind
    `unlisted`; a partition with records not copied yet has one more row with kind `behind`, and one whose target has
    deleted kept records a row with kind `deleted`. Raises `ConfigError`, `ClusterUnreachable`, and `SetupError` if
    Spark fails.
    """
    verification = run_verification(spark, config, options or Options())
    listed = Counter(difference[:4] for difference in verification.differences)
    rows = [tuple(difference) for difference in verification.differences]
    for partition in verification.partitions:
        place = partition.flow, partition.topic, partition.target_topic, partition.partition
        if partition.not_copied_yet:
            rows.append((*place, "behind", None, None, f"{partition.not_copied_yet} records: {partition.because}"))
        if partition.deleted:
            rows.append((*place, "deleted", None, None, f"{partition.deleted} offsets that the source keeps"))
        if what := partition.beyond(listed[place]):
            rows.append((*place, "unlisted", None, None, what))
    return spark.createDataFrame(rows, DIFFERENCES)


def run_verification(
    spark: SparkSession,
    config: MirrorConfig,
    options: Options,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> Verification:
    """Verify like `verify`, and return each partition's figures."""
    settings = settings_of(spark)
    for flow in config.flows:
        guard_secrets(flow, settings, config.path)
    return _VerifyRun(spark, config, options, on_progress).run()


class _VerifyRun:
    def __init__(
        self, spark: SparkSession, config: MirrorConfig, options: Options, on_progress: Callable[[Progress], None]
    ) -> None:
        self._spark = spark
        self._flows = {flow.name: flow for flow in config.flows}
        self._rules = {flow.name: topic_rules(flow) for flow in config.flows}
        self._options = options
        self._on_progress = on_progress
        self._slots = max(spark.sparkContext.defaultParallelism, 1)
        self._reports: dict[int, RangeReport] = {}
        self._plan_of: dict[int, int] = {}
        self._parked: dict[str, Mapping[TopicPartition, str]] = {}
        """Parked partitions by flow, for the flows asked so far."""
        self._held: Counter[int] = Counter()
        """Unmatched records by plan."""
        self._began = time.monotonic()

    def run(self) -> Verification:
        resume = self._options.resume
        for flow in self._flows.values():
            for query in flow.transform_queries:
                log.warning(
                    "flow %s: the topics of query %s (%s) are not compared: their rows are no copies",
                    flow.name,
                    query.name,
                    ",".join(query.topics),
                    extra=Event.QUERY_NOT_COMPARED.extra,
                )
        journal = Journal(resume, self._options.words(self._flows.values())) if resume else None
        loaded = journal.load() if journal else None
        if loaded is not None:
            plans = loaded[0]
            reports = loaded[1]
        else:
            plans, reports = self._plan(), []
            if journal:
                journal.begin(plans)
        watches = {name: MirrorWatch(self._flows[name]) for name in _due_flows(plans)}
        self._plan_of = {span.range: index for index, plan in enumerate(plans) for span in plan.ranges}
        self._reports = {report.range: self._bounded(report) for report in reports}
        every = [(plan, span) for plan in plans for span in plan.ranges]
        chosen = self._sampled(every)
        self._compare([(plan, span) for plan, span in chosen if span.range not in self._reports], len(chosen), journal)
        if journal:
            journal.close()
        compared = self._judge(plans, {span.range for _, span in chosen}, len(every))
        return self._with_due(compared, plans, watches) if watches else compared

    def _plan(self) -> list[PartitionPlan]:
        scope = self._options.scope()
        plans: list[PartitionPlan] = []
        for flow in self._flows.values():
            with FlowSurvey(flow, scope) as survey:
                plans += survey.plan(sum(len(plan.ranges) for plan in plans))
        if not plans:
            raise ConfigError("the flows copy no topic of the source", origin="--topics, or the file's topics")
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
        """Return the report with no more unmatched records than its partition may have."""
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
        self._on_progress(
            Progress(
                phase=phase,
                done=done,
                total=total,
                records=records,
                bytes=read,
                unmatched=unmatched,
                elapsed_s=elapsed_s,
                eta_s=eta_s,
            )
        )

    def _jobs(self, orders: Sequence[str], body: Callable[[str], str]) -> Iterator[list[Answer]]:
        """Run orders in jobs with a few tasks a slot, two jobs at a time.

        Answers come as jobs end. If an order or a job failed, running jobs' answers still come before
        `ClusterUnreachable` or `SetupError` is raised.
        """
        waiting = list(chunks(orders, self._slots * _TASKS_A_SLOT))[::-1]
        failure: SparkMirrorError | None = None
        with ThreadPoolExecutor(_JOBS) as pool:
            running: set[Future[list[Answer]]] = set()
            while waiting or running:
                while waiting and len(running) < _JOBS:
                    running.add(pool.submit(run_tasks, self._spark, waiting.pop(), body))
                ended, running = wait(running, return_when=FIRST_COMPLETED)
                for job in ended:
                    try:
                        answers = job.result()
                    except SetupError as error:
                        failure = failure or error
                        continue
                    if reason := next((answer.failed for answer in answers if answer.failed), ""):
                        failure = failure or ClusterUnreachable(reason)
                    yield [answer for answer in answers if not answer.failed]
                if failure:
                    waiting.clear()
        if failure:
            raise failure

    def _transforms_of(self, plan: PartitionPlan) -> Mapping[str, str]:
        """Return the keys of Connect's transforms that see a partition's records."""
        if self._rules[plan.flow].is_heartbeats(plan.source.topic):
            return {}
        return self._flows[plan.flow].connect_transforms

    def _compare_order(self, plan: PartitionPlan, span: RangePlan) -> str:
        flow = self._flows[plan.flow]
        return CompareOrder(
            source_cluster=flow.source,
            target_cluster=flow.target,
            source=plan.source,
            target=plan.target,
            partition=plan.partition,
            read_committed=plan.isolation == "read_committed",
            target_read_committed=reads_transactions(flow),
            timestamps=plan.timestamps,
            due_to=plan.began,
            range=span,
            transforms=self._transforms_of(plan),
        ).model_dump_json(context=REVEAL)

    # --- what was not copied yet ----------------------------------------------------------------

    def _with_due(
        self, compared: Verification, plans: Sequence[PartitionPlan], watches: Mapping[str, MirrorWatch]
    ) -> Verification:
        """Return the verification with the records that were due when the plan was made.

        Due records that the target has by now are compared; the rest is counted.
        """
        rest = self._plan_due(plans, watches)
        ranges = [(plan, span) for plan in rest for span in plan.ranges]
        self._plan_of |= {span.range: len(plans) + index for index, plan in enumerate(rest) for span in plan.ranges}
        self._compare(ranges, len(ranges), None)
        later = self._judge(rest, {span.range for _, span in ranges}, len(ranges))
        results = {result.at: result for result in compared.partitions}
        before = {plan.at: plan for plan in plans if plan.is_due}
        for at, plan in before.items():
            words = tuple(note for note in results[at].notes if note != plan.why_due)
            results[at] = results[at].model_copy(update={"notes": words, **_behind(plan.due[1] - plan.due[0], GONE)})
        for plan, result, counted in zip(rest, later.partitions, self._counted(rest), strict=True):
            count = counted + result.not_copied_yet
            due, start = before[plan.at].due, plan.source.start
            joined = results[plan.at].joined(result)
            expired = joined.expired + max(min(start, due[1]) - due[0], 0)
            because, words = self._why(plan) if count else ("", ())
            results[plan.at] = joined.model_copy(
                update={
                    "expired": expired,
                    "notes": tuple(dict.fromkeys((*joined.notes, *words))),
                    **_behind(count, because),
                }
            )
        return Verification(
            tuple(results.values()),
            compared.differences + later.differences,
            compared.ranges + later.ranges,
            compared.all_ranges + later.all_ranges,
        )

    def _plan_due(self, plans: Sequence[PartitionPlan], watches: Mapping[str, MirrorWatch]) -> list[PartitionPlan]:
        """Plan due parts again, once the mirror has copied them.

        A mirror that does not run is not waited for.
        """
        first = sum(len(plan.ranges) for plan in plans)
        until = time.monotonic() + DUE_S
        while True:
            rest: list[PartitionPlan] = []
            for flow in self._flows.values():
                due = {
                    (plan.source.topic, plan.partition): Due(*plan.due, plan.target.end)
                    for plan in plans
                    if plan.is_due and plan.flow == flow.name
                }
                if due:
                    with FlowSurvey(flow, dataclasses.replace(self._options.scope(), due=due)) as survey:
                        rest += survey.plan(first + sum(len(plan.ranges) for plan in rest))
            if time.monotonic() > until or all(watches[flow].is_silent() for flow in _due_flows(rest)):
                return rest
            time.sleep(DUE_PAUSE_S)

    def _counted(self, rest: Sequence[PartitionPlan]) -> list[int]:
        """Return, by partition, the number of records that are not at the target yet.

        If the target topic is gone, they count as missing.
        """
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
            target_topic=plan.target.topic,
            transforms=self._transforms_of(plan),
        ).model_dump_json(context=REVEAL)

    def _why(self, plan: PartitionPlan) -> tuple[str, tuple[str, ...]]:
        """Return the reason for records not at the target yet, in a few words, and notes."""
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
        self._began = time.monotonic()
        search = MatchSearch(
            spark=self._spark,
            flows=self._flows,
            transforms_of=self._transforms_of,
            tasks=self._slots * _TASKS_A_SLOT,
            tell=lambda done, total: self._tell("looking into differences", done, total, total),
        )
        seen, changed = search.run(plans, placed)
        results: list[PartitionResult] = []
        differences: list[Difference] = []
        for index, plan in enumerate(plans):
            judgement = judge(
                [] if index in changed else placed[index],
                {SOURCE: _cleaning(plan.source, now_ms), TARGET: _cleaning(plan.target, now_ms)},
                seen[index],
                timestamps=plan.timestamps,
            )
            place = plan.flow, plan.source.topic, plan.target.topic, plan.partition
            reports = by_plan[index]
            kept, behind = _without_tail(plan, reports, judgement.differences)
            because, words = self._why(plan) if behind else ("", ())
            judged = sorted(
                kept,
                key=lambda difference: (difference.upstream is None, difference.upstream, difference.downstream),
            )
            differences += [Difference(*place, *difference) for difference in judged[: self._options.limit]]
            counts: dict[Kind, int] = defaultdict(int)
            counts.update({kind: count for kind, count in _by_plan(plan) if count})
            for difference in judged:
                counts[difference.kind] += 1
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
                    not_copied_yet=behind,
                    because=because,
                    expired=plan.expired + sum(report.expired for report in reports),
                    deleted=plan.deleted[1] - plan.deleted[0],
                    unjudged=sum(report.not_listed for report in reports)
                    + (len(placed[index]) if index in changed else 0),
                    not_compared=plan.not_compared,
                    notes=tuple(dict.fromkeys((*plan.notes, *words, *_damage(reports), *changed.get(index, ())))),
                )
            )
        return Verification(tuple(results), tuple(differences), len(chosen), all_ranges)


def _due_flows(plans: Iterable[PartitionPlan]) -> set[str]:
    """Return the flows with offsets that were not copied yet."""
    return {plan.flow for plan in plans if plan.is_due}


def _without_tail(
    plan: PartitionPlan, reports: Sequence[RangeReport], judged: Sequence[Judged]
) -> tuple[Sequence[Judged], int]:
    """Return the differences without a copy's tail if it has no map.

    Also return the number of due records in the tail. The tail is missing records behind the last equal record: another
    mirror may copy them yet. With a map, the survey has left the tail out.
    """
    if plan.began is None:
        return judged, 0
    equal_to = max((report.equal_to for report in reports), default=0)
    kept: list[Judged] = []
    behind = sum(report.behind for report in reports)
    for difference in judged:
        upstream = difference.upstream
        if difference.kind == "missing" and upstream is not None and upstream >= equal_to:
            behind += upstream < plan.began
        else:
            kept.append(difference)
    return kept, behind


def _behind(records: int, because: str) -> dict[str, object]:
    return {"not_copied_yet": records, "because": because}


def _by_plan(plan: PartitionPlan) -> tuple[tuple[Kind, int], ...]:
    """Return the differences known from claims, without a look at the records."""
    return ("missing", plan.gone), ("duplicate", plan.twice)


def _damage(reports: Iterable[RangeReport]) -> Iterator[str]:
    return (report.damage for report in reports if report.damage)


def _cleaning(log: LogPlan, now_ms: int) -> Cleaning:
    return Cleaning(log.compacted, now_ms - log.tombstones_kept_ms)
