"""Rules on the lease: does any process work on the flow?"""

from __future__ import annotations

from collections.abc import Iterator

from sparkmirror.look.doctor.amounts import duration
from sparkmirror.look.doctor.case import Case
from sparkmirror.look.doctor.finding import Severity
from sparkmirror.look.doctor.rule import Rule, Sign, counted
from sparkmirror.snapshot.snapshot import ELSEWHERE, FlowState, Role

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
        yield Sign(subject=flow.target.alias, evidence=f"not let in for {duration(case.waited_s)}", cause=flow.reason)


def _nobody(case: Case) -> Iterator[Sign]:
    flow = case.flow
    if flow.role is Role.LEADER or flow.leader or flow.processes is None or case.waited_s < NOBODY_S:
        return
    there = counted(flow.processes, "process", "processes")
    yield Sign(subject="", evidence=f"{there} in the lease's group, none of them works, for {case.waited_s:,.0f} s")


def _joining_action(tools: str, group: str) -> str:
    """Return how to find out who else is in the lease's group."""
    return (
        f"Look at the group's members: `kafka-consumer-groups.sh {tools} --describe --members --group {group}`. A "
        "killed process stays a member for its session.timeout.ms: wait for that, and write a smaller one for the "
        "target (10000 by default). If there is no other member, or no answer, `sparkmirror lint FILE --connect` on "
        "this host says what it can't reach."
    )


def _joining(case: Case) -> Iterator[Sign]:
    flow = case.flow
    if flow.state is FlowState.JOINING and case.waited_s > LONG_S:
        yield Sign(
            subject="",
            evidence=f"joining for {case.waited_s:,.0f} s",
            cause=flow.reason or flow.waiting,
            action=_joining_action(flow.target.tools or "--bootstrap-server TARGET", f"{flow.source.alias}-mm2"),
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
        when="Processes are in the lease's group, and for 30 s, three session timeouts of the lease, none has "
        "announced that it works.",
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
        when="The state is `joining` for 5 minutes.",
        cause="A killed process is still in the lease's group, or the group does not answer.",
        action="Look at the members of group SOURCE-mm2 at the target, and run `sparkmirror lint FILE --connect` here.",
        look=_joining,
        everywhere=True,
    ),
)
