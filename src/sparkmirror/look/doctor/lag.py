"""Rules on lag: every cause that slows a flow down shows as lag."""

from __future__ import annotations

from collections.abc import Iterator

from sparkmirror.look.doctor.amounts import duration
from sparkmirror.look.doctor.case import STILL_S, Case, name_of
from sparkmirror.look.doctor.finding import Severity
from sparkmirror.look.doctor.pumps import end_process, look_at_process
from sparkmirror.look.doctor.rule import Rule, Sign, counted
from sparkmirror.snapshot.snapshot import FlowState, Pump

GROWING_LAG = 50_000
"""Records of lag; growing lag above this number gets a finding.

Redpanda's page on shadow links: act above 50,000 and growing.
"""
_ADD_PARTITIONS = "--alter --topic TOPIC --partitions N"


def _no_progress(case: Case) -> Iterator[Sign]:
    still, seconds = case.still
    if still and len(still) == len(case.lagging):
        yield Sign(
            subject="",
            evidence=f"{counted(len(still), 'partition')} with {case.waiting_records:,} records waiting, no "
            "position has moved "
            f"in {seconds:,.0f} s",
            cause=case.flow.waiting,
        )


def _stuck_action(tools: str, topic: str, pump: Pump | None) -> str:
    """Return where to look for what holds a partition up."""
    pids = [pump.pid] if pump is not None and pump.pid else []
    there = f" at {pump.host}" if pump is not None else ""
    describe = " ".join(filter(None, ("kafka-topics.sh", tools, "--describe --topic", topic)))
    return (
        f"Look at the partition's leader at the source (`{describe}`), and at its task's process{there}: "
        f"{look_at_process(pids)}. If the leader answers, end the process: {end_process(pids)}. Spark starts the task "
        "again, which reads its positions again."
    )


def _stuck(case: Case) -> Iterator[Sign]:
    still, seconds = case.still
    if still and len(still) < len(case.lagging):
        name = still[0]
        topic, partition = next(entry for place, entry in case.lagging.items() if name_of(place) == name)
        pump = next((pump for pump in case.flow.pumps if pump.task == partition.task), None)
        yield Sign(
            subject=name,
            evidence=f"{len(still):,} of {len(case.lagging):,} partitions that lag, for {seconds:,.0f} s",
            action=_stuck_action(case.flow.source.tools, topic.topic, pump),
        )


def _retention(case: Case) -> Iterator[Sign]:
    if case.flow.retention_s is not None:
        yield Sign(subject=case.flow.retention_of, evidence=f"in {case.flow.retention_s:,.0f} s")


def _faster(case: Case) -> str:
    """Return what makes a flow faster that nothing holds back."""
    flow = case.flow
    if len(case.partitions) > flow.tasks_max:
        return _more_tasks(flow.tasks_max)
    command = " ".join(filter(None, ("kafka-topics.sh", flow.source.tools, _ADD_PARTITIONS)))
    return (
        "Follow the findings above. If there are none: a higher tasks.max does not help, since each partition has a "
        "task of its own. A partition is copied in order, by one task; only more partitions at the source share its "
        "load: "
        f"`{command}`."
    )


def _more_tasks(now: int) -> str:
    return (
        f"Follow the findings above. If there are none, raise tasks.max (now {now:,}) in the file, give Spark as many "
        "slots (spark.master = local[N], or more executors), and start the process again."
    )


def _growing(case: Case) -> Iterator[Sign]:
    before = case.before(STILL_S)
    if before is None or case.flow.state is not FlowState.COPYING:
        return
    then = before.case.waiting_records
    if case.waiting_records > max(GROWING_LAG, then):
        yield Sign(
            subject="",
            evidence=f"from {then:,} to {case.waiting_records:,} records in {before.seconds:,.0f} s",
            action=_faster(case),
        )


def _objective(case: Case) -> Iterator[Sign]:
    flow = case.flow
    if flow.objective_s is not None and flow.lag_s is not None and flow.lag_s > flow.objective_s:
        yield Sign(
            subject="",
            evidence=f"{duration(flow.lag_s)} behind, {duration(flow.objective_s)} promised",
            action=_faster(case),
        )


LAG = (
    Rule(
        name="no-progress",
        severity=Severity.CRITICAL,
        title="Nothing is copied though records wait",
        when="No position of a partition that lags (and is neither parked nor paused) has moved since a sample"
        " at least 60 s old. Gaps of aborted or compacted records move positions.",
        cause="Not known.",
        action="Look at the findings above, then at the process's log, and at `sparkmirror top FILE`. If none of them "
        "tells why, start the process again: it continues exactly where it ended.",
        look=_no_progress,
        explains=("retention-race", "lag-growing", "lag-over-objective", "group-sync-late", "group-would-reread"),
    ),
    Rule(
        name="partitions-stuck",
        severity=Severity.WARNING,
        title="Some partitions don't move while the rest does",
        when="As rule `no-progress`, but for some partitions only.",
        cause="Their leader, or the task that has them, does not move on.",
        action="Look at the partition's leader, and at its task's process; end it (`kill -KILL PID`).",
        look=_stuck,
        explains=("retention-race", "lag-growing", "lag-over-objective", "group-sync-late", "group-would-reread"),
    ),
    Rule(
        name="retention-race",
        severity=Severity.CRITICAL,
        title="The source will delete records that are not copied",
        when="The forecast over the last ten minutes is below six hours.",
        cause="Retention at the source is shorter than the flow needs to catch up.",
        action="Raise retention.ms of the topic at the source until the flow has caught up.",
        look=_retention,
    ),
    Rule(
        name="lag-growing",
        severity=Severity.WARNING,
        title="The flow falls behind",
        when="The lag, without parked or paused partitions, is above 50,000 records and has grown since a "
        "sample at least 60 s old.",
        cause="More is written at the source than the flow copies.",
        action="Follow the findings above; if there are none, raise tasks.max and give Spark as many slots.",
        look=_growing,
        explains=("lag-over-objective", "group-sync-late"),
    ),
    Rule(
        name="lag-over-objective",
        severity=Severity.WARNING,
        title="The copy is older than the objective allows",
        when="The oldest record that is not copied is older than sparkmirror.objective.seconds.",
        cause="The flow copies slower than it must.",
        action="Follow the findings above; if there are none, raise tasks.max and give Spark as many slots.",
        look=_objective,
        explains=("group-sync-late", "group-would-reread"),
    ),
)
