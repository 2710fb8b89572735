"""Rules on states that should be short."""

from __future__ import annotations

from collections.abc import Iterator

from sparkmirror.doctor.case import Case
from sparkmirror.doctor.finding import Severity
from sparkmirror.doctor.lease import LONG_S
from sparkmirror.doctor.rule import Rule, Sign
from sparkmirror.engine.snapshot import FlowState


def _long(state: FlowState, cause: str, action: str) -> Rule:
    def look(case: Case) -> Iterator[Sign]:
        if case.flow.state is state and case.waited_s > LONG_S:
            unknown = f", {case.flow.unknown:,} partitions unknown" if case.flow.unknown else ""
            yield Sign(
                subject="",
                evidence=f"{state} for {case.waited_s:,.0f} s{unknown}",
                cause=case.flow.reason or case.flow.waiting,
            )

    return Rule(
        name=f"long-{state.replace(' ', '-')}",
        severity=Severity.CRITICAL,
        title=f"The flow has been {state} for long",
        when=f"The state is `{state}` for 5 minutes, as Strimzi's alerts on connectors.",
        cause=cause,
        action=action,
        look=look,
    )


STATES = (
    _long(
        FlowState.STARTING,
        "No pump has reported: Spark gives no executors, or they can't reach the target.",
        "Are there executors, and do tasks run? Spark's page tells, with spark.ui.enabled = true. Then look at an "
        "executor's stderr.",
    ),
    _long(
        FlowState.FINDING_OUT,
        "Positions at the target, or ends at the source, can't be read.",
        "Run `sparkmirror lint FILE --connect`, and look at `sparkmirror topics list FILE` for partitions that wait.",
    ),
)
