"""Rules on lag: every cause that slows a flow down shows as lag."""

from __future__ import annotations

from collections.abc import Iterator

from sparkmirror.doctor.case import STILL_S, Case
from sparkmirror.doctor.finding import Severity
from sparkmirror.doctor.rule import Rule, Sign, counted
from sparkmirror.engine.snapshot import FlowState

GROWING_LAG = 50_000
"""Records of lag; growing lag above this number gets a finding.

Redpanda's page on shadow links: act above 50,000 and growing.
"""


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


def _stuck(case: Case) -> Iterator[Sign]:
    still, seconds = case.still
    if still and len(still) < len(case.lagging):
        yield Sign(
            subject=still[0],
            evidence=f"{len(still):,} of {len(case.lagging):,} partitions that lag, for {seconds:,.0f} s",
        )


def _retention(case: Case) -> Iterator[Sign]:
    if case.flow.retention_s is not None:
        yield Sign(subject=case.flow.retention_of, evidence=f"in {case.flow.retention_s:,.0f} s")


def _growing(case: Case) -> Iterator[Sign]:
    before = case.before(STILL_S)
    if before is None or case.flow.state is not FlowState.COPYING:
        return
    then = before.case.waiting_records
    if case.waiting_records > max(GROWING_LAG, then):
        yield Sign(subject="", evidence=f"from {then:,} to {case.waiting_records:,} records in {before.seconds:,.0f} s")


def _objective(case: Case) -> Iterator[Sign]:
    flow = case.flow
    if flow.objective_s is not None and flow.lag_s is not None and flow.lag_s > flow.objective_s:
        action = f"Raise tasks.max (now {flow.tasks_max:,}) if Spark has slots, after the findings above."
        yield Sign(
            subject="", evidence=f"{flow.lag_s:,.0f} s behind, {flow.objective_s:,.0f} s promised", action=action
        )


LAG = (
    Rule(
        name="no-progress",
        severity=Severity.CRITICAL,
        title="Nothing is copied though records wait",
        when="No position of a partition that lags (and is neither parked nor paused) is another one than in a "
        "sample at "
        "least 60 s old. Gaps of aborted or compacted records move positions, so they are progress.",
        cause="Not known.",
        action="Look at the findings above, then at the process's log, and at `sparkmirror top FILE`.",
        look=_no_progress,
        explains=("retention-race", "lag-growing", "lag-over-objective", "group-sync-late", "group-would-reread"),
    ),
    Rule(
        name="partitions-stuck",
        severity=Severity.WARNING,
        title="Some partitions don't move while the rest does",
        when="As rule `no-progress`, but for some partitions only.",
        cause="Their leader, or the task that has them, does not go on.",
        action="Look at these partitions' leaders (`kafka-topics.sh --describe`), and at the task's executor.",
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
        when="The lag, without parked or paused partitions, is above 50,000 records and has grown since a sample at "
        "least 60 s old (Redpanda's thresholds for shadow links).",
        cause="More is written at the source than the flow copies.",
        action="Look at the findings above; if there are none, raise tasks.max and give Spark more slots.",
        look=_growing,
        explains=("lag-over-objective", "group-sync-late"),
    ),
    Rule(
        name="lag-over-objective",
        severity=Severity.WARNING,
        title="The copy is older than the objective allows",
        when="The oldest record that is not copied is older than sparkmirror.objective.seconds.",
        cause="The flow copies slower than it must.",
        action="Raise tasks.max if Spark has slots, after the findings above.",
        look=_objective,
        explains=("group-sync-late", "group-would-reread"),
    ),
)
