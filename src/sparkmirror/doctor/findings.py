"""What a rule says of a snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from sparkmirror.doctor.parked import causes
from sparkmirror.engine.snapshot import Flow, FlowState, Role, Snapshot
from sparkmirror.sync.group_standing import GroupState


class Severity(StrEnum):
    """How bad it is; the first is the worst."""

    CRITICAL = "critical"
    """Data is lost, or will be soon, or nothing is copied."""
    WARNING = "warning"
    """It gets worse, or a promise is broken."""
    NOTICE = "notice"
    """Worth knowing."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong. Each text is one line."""

    rule: str
    """The rule's name, as `docs/doctor.md` and the alert's runbook have it: lower case with dashes."""
    severity: Severity
    flow: str
    subject: str
    """What it is about: a topic, `topic-partition`, group, cluster or duty; empty: the flow."""
    title: str
    evidence: str
    """The figures."""
    cause: str
    action: str
    """What to change, with the command or key."""


def diagnose(now: Snapshot, before: Sequence[Snapshot] = ()) -> list[Finding]:
    """All findings, the worst first. `before`: earlier snapshots, oldest first, for what shows only over time."""
    old = {flow.flow: flow for one in reversed(before) for flow in one.flows}
    worst_first = list(Severity)
    some = [
        finding
        for flow in now.flows
        if flow.role is Role.LEADER
        for rule in _RULES
        for finding in rule(flow, old.get(flow.flow))
    ]
    return sorted(some, key=lambda one: worst_first.index(one.severity))


def _losses(flow: Flow, old: Flow | None) -> Iterator[Finding]:
    for loss in flow.losses:
        if loss.is_loss and loss.entries:
            yield Finding(
                "records-lost",
                Severity.CRITICAL,
                flow.flow,
                loss.kind,
                "Records are not at the target and never will be",
                f"{loss.entries:,} entries, {loss.offsets:,} offsets",
                loss.words,
                "Look at `sparkmirror losses FILE`.",
            )


def _parked(flow: Flow, old: Flow | None) -> Iterator[Finding]:
    for cause, subject, reason, count, action in causes(flow):
        yield Finding(
            f"parked-{cause}",
            Severity.CRITICAL,
            flow.flow,
            subject,
            "Partitions can't be copied",
            f"{count:,} parked, first {subject}",
            reason or cause.value,
            action,
        )


def _retention(flow: Flow, old: Flow | None) -> Iterator[Finding]:
    if flow.retention_s is not None:
        yield Finding(
            "retention-race",
            Severity.CRITICAL,
            flow.flow,
            flow.retention_of,
            "The source will delete what is not copied",
            f"in {flow.retention_s:,.0f} s",
            "Retention at the source is shorter than the flow needs to catch up.",
            "Raise retention.ms of the topic at the source until the flow has caught up.",
        )


def _throttled(flow: Flow, old: Flow | None) -> Iterator[Finding]:
    if old is None:
        return
    for side, now, then in (("source", flow.source, old.source), ("target", flow.target, old.target)):
        more, span = now.throttle_s - then.throttle_s, (flow.at_ms - old.at_ms) / 1000
        if span > 0 and more > 0.1 * span:
            yield Finding(
                f"throttled-{side}",
                Severity.WARNING,
                flow.flow,
                now.alias,
                f"The {side}'s brokers hold the pumps back",
                f"{more:,.1f} s of waiting in {span:,.0f} s",
                "A quota of this flow's principal at that cluster.",
                "Raise the quota there (kafka-configs.sh --alter).",
            )


def _no_progress(flow: Flow, old: Flow | None) -> Iterator[Finding]:
    if old is not None and flow.state is FlowState.COPYING and flow.lag and flow.records == old.records:
        yield Finding(
            "no-progress",
            Severity.CRITICAL,
            flow.flow,
            "",
            "Nothing is copied though there is something to copy",
            f"lag {flow.lag:,}, no record in {(flow.at_ms - old.at_ms) / 1000:,.0f} s",
            flow.waiting or "Not known.",
            "Look at the process's log for what pumps wait for.",
        )


def _objective(flow: Flow, old: Flow | None) -> Iterator[Finding]:
    if flow.objective_s is not None and flow.lag_s is not None and flow.lag_s > flow.objective_s:
        yield Finding(
            "lag-over-objective",
            Severity.WARNING,
            flow.flow,
            "",
            "The copy is older than was promised",
            f"{flow.lag_s:,.0f} s behind, {flow.objective_s:,.0f} s promised",
            "The flow copies slower than it must.",
            f"Raise tasks.max (now {flow.tasks_max}) if Spark has slots, after the findings above.",
        )


def _groups(flow: Flow, old: Flow | None) -> Iterator[Finding]:
    for one in flow.groups:
        if one.state is GroupState.NOT_SYNCED:
            yield Finding(
                "group-not-synced",
                Severity.WARNING,
                flow.flow,
                one.group,
                "A group's offsets can't be set at the target",
                f"{len(one.partitions):,} partitions",
                one.reason,
                "Follow the reason; the group can't move until then.",
            )


def _duties(flow: Flow, old: Flow | None) -> Iterator[Finding]:
    for one in flow.duties:
        if one.failing:
            yield Finding(
                "duty-failing",
                Severity.WARNING,
                flow.flow,
                one.duty,
                "Something beside the copying fails",
                f"{one.failures:,} failures",
                one.failing,
                "Change what the cause names; it is tried again by itself.",
            )


def _topics(flow: Flow, old: Flow | None) -> Iterator[Finding]:
    for one in flow.topics:
        if one.refused:
            yield Finding(
                "topic-refused",
                Severity.WARNING,
                flow.flow,
                one.topic,
                "A topic can't be copied at all",
                "not copied",
                one.refused,
                "Change what the cause names, or take the topic out of `topics`.",
            )
        if one.late:
            yield Finding(
                "late-records",
                Severity.WARNING,
                flow.flow,
                one.topic,
                "Writers that were said to have moved still write",
                f"{one.late:,} offsets since",
                "Somebody still writes to the source's topic.",
                "Stop that writer, or take the move back: `sparkmirror topics undo FILE --topics REGEX`.",
            )
        if one.gone:
            yield Finding(
                "topic-deleted",
                Severity.NOTICE,
                flow.flow,
                one.topic,
                "A topic was deleted at the source",
                f"its copy {one.target_topic} stays",
                "Somebody deleted it there.",
                "Delete the copy if nobody reads it.",
            )


def _certificates(flow: Flow, old: Flow | None) -> Iterator[Finding]:
    for side in (flow.source, flow.target):
        if side.certificate_ends_ms is not None:
            days = (side.certificate_ends_ms - flow.at_ms) / 86_400_000
            if days < 14:
                yield Finding(
                    "certificate-ends",
                    Severity.CRITICAL if days < 2 else Severity.WARNING,
                    flow.flow,
                    side.alias,
                    "A certificate ends soon" if days > 0 else "A certificate has ended",
                    f"{days:,.1f} days left",
                    "It was not renewed.",
                    "Renew the certificate that this cluster's ssl.* settings name.",
                )


def _waits(flow: Flow, old: Flow | None) -> Iterator[Finding]:
    waited = (flow.at_ms - flow.state_since_ms) / 1000
    if flow.state in (FlowState.JOINING, FlowState.STARTING, FlowState.FINDING_OUT) and waited > 300:
        yield Finding(
            f"long-{flow.state.replace(' ', '-')}",
            Severity.CRITICAL,
            flow.flow,
            "",
            f"The flow has been {flow.state} for long",
            f"{waited:,.0f} s",
            flow.reason or flow.waiting or "Not known.",
            "Look at the process's log.",
        )


def _standby(flow: Flow, old: Flow | None) -> Iterator[Finding]:
    if flow.processes == 1:
        yield Finding(
            "no-standby",
            Severity.NOTICE,
            flow.flow,
            "",
            "Nobody takes over if this process ends",
            "1 process",
            "No other process was started for this flow.",
            "Start `sparkmirror run FILE` on another host, too.",
        )


_RULES: tuple[Callable[[Flow, Flow | None], Iterator[Finding]], ...] = (
    _losses,
    _parked,
    _waits,
    _certificates,
    _topics,
    _retention,
    _throttled,
    _no_progress,
    _objective,
    _groups,
    _duties,
    _standby,
)
"""Root causes before their consequences: of equal severity the first stays first."""
