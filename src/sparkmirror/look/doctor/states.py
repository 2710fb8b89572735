"""Rules on states that should be short."""

from __future__ import annotations

from collections.abc import Iterator

from sparkmirror.look.doctor.case import Case
from sparkmirror.look.doctor.finding import Severity
from sparkmirror.look.doctor.lease import LONG_S
from sparkmirror.look.doctor.rule import Rule, Sign
from sparkmirror.snapshot.snapshot import FlowState

_SOURCE = "--bootstrap-server SOURCE"


def _long(state: FlowState, cause: str, action: str, steps: str) -> Rule:
    """Return the rule of a state; a finding has `steps`, with the source's address."""

    def look(case: Case) -> Iterator[Sign]:
        if case.flow.state is state and case.waited_s > LONG_S:
            unknown = f", {case.flow.unknown:,} partitions unknown" if case.flow.unknown else ""
            yield Sign(
                subject="",
                evidence=f"{state} for {case.waited_s:,.0f} s{unknown}",
                cause=case.flow.reason or case.flow.waiting,
                action=steps.replace(_SOURCE, case.flow.source.tools or _SOURCE),
            )

    return Rule(
        name=f"long-{state.replace(' ', '-')}",
        severity=Severity.CRITICAL,
        title=f"The flow has been {state} for long",
        when=f"The state is `{state}` for 5 minutes.",
        cause=cause,
        action=action,
        look=look,
    )


STATES = (
    _long(
        FlowState.STARTING,
        "No pump has reported: Spark gives no executors, or they can't reach the target.",
        "Look at the process's log for Spark's `Initial job has not accepted any resources`, else at an executor's "
        "stderr.",
        "Look at the process's log for Spark's `Initial job has not accepted any resources`. With it, no worker has "
        "the cores and memory free that spark.executor.cores and spark.executor.memory ask for: start workers, or ask "
        "for less and start the process again. Without it tasks run: look at an executor's stderr (Spark's page leads "
        "there, with spark.ui.enabled = true), and run `sparkmirror lint FILE --connect` on its host.",
    ),
    _long(
        FlowState.FINDING_OUT,
        "Positions at the target, or ends at the source, can't be read.",
        "Look at `sparkmirror topics list FILE`, and for partitions without a leader.",
        "Look at `sparkmirror topics list FILE`: it has the reason why a topic waits. A partition without a leader has "
        f"one again when its broker is back: `kafka-topics.sh {_SOURCE} --describe --unavailable-partitions` at the "
        "source, and the same at the target, name them. If no topic waits, run `sparkmirror lint FILE --connect`.",
    ),
)
