"""Rules on the lease: does any process work on the flow?"""

from __future__ import annotations

from collections.abc import Iterator

from sparkmirror.doctor.case import Case
from sparkmirror.doctor.finding import Severity
from sparkmirror.doctor.rule import Rule, Sign, counted
from sparkmirror.engine.snapshot import ELSEWHERE, FlowState, Role

NOBODY_S = 30.0
"""Longest takeover, in seconds: three session timeouts (10 s) of the lease."""
LONG_S = 300.0
"""Seconds of joining that make a finding.

Strimzi's alerts also give a connector five minutes.
"""


def _refused(case: Case) -> Iterator[Sign]:
    flow = case.flow
    refused = flow.role is not Role.LEADER and flow.state is FlowState.STANDING_BY and flow.reason
    if refused and flow.reason != ELSEWHERE:
        yield Sign(subject=flow.target.alias, evidence=f"refused for {case.waited_s:,.0f} s", cause=flow.reason)


def _nobody(case: Case) -> Iterator[Sign]:
    flow = case.flow
    if flow.role is Role.LEADER or flow.leader or flow.processes is None or case.waited_s < NOBODY_S:
        return
    there = counted(flow.processes, "process", "processes")
    yield Sign(subject="", evidence=f"{there} in the lease's group, none of them works, for {case.waited_s:,.0f} s")


def _joining(case: Case) -> Iterator[Sign]:
    if case.flow.state is FlowState.JOINING and case.waited_s > LONG_S:
        yield Sign(
            subject="", evidence=f"joining for {case.waited_s:,.0f} s", cause=case.flow.reason or case.flow.waiting
        )


LEASE = (
    Rule(
        name="lease-refused",
        severity=Severity.CRITICAL,
        title="This process can't join the flow's other processes",
        when="The process stands by for a reason other than another working process.",
        cause="The lease's group does not let it in.",
        action="Follow the reason; the mirror tries again by itself.",
        look=_refused,
        explains=("nobody-works", "long-joining"),
        everywhere=True,
    ),
    Rule(
        name="nobody-works",
        severity=Severity.CRITICAL,
        title="No process works on the flow",
        when="Processes are in the lease's group, none has announced that it works, for 30 s: three session "
        "timeouts of the "
        "lease.",
        cause="Each process waits for the lease, or for a cluster.",
        action="Look at the log of each process for `lease not held`, and stop a MirrorMaker 2 that is in the same "
        "group.",
        look=_nobody,
        explains=("long-joining",),
        everywhere=True,
    ),
    Rule(
        name="long-joining",
        severity=Severity.CRITICAL,
        title="The flow has been joining for long",
        when="The state is `joining` for 5 minutes, as Strimzi's alerts on connectors.",
        cause="The lease's group does not answer, or a cluster can't be reached.",
        action="Run `sparkmirror lint FILE --connect` on this host, and look at the process's log.",
        look=_joining,
        everywhere=True,
    ),
)
