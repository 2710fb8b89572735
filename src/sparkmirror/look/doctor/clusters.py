"""Rules on the clusters: unreachable brokers, certificates, throttling."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from sparkmirror.look.doctor.amounts import duration
from sparkmirror.look.doctor.case import Case, name_of
from sparkmirror.look.doctor.finding import Severity
from sparkmirror.look.doctor.parked import general_action
from sparkmirror.look.doctor.rule import LATE, Rule, Sign, counted
from sparkmirror.snapshot.snapshot import Cause, ClusterFigures, Flow, FlowState, Partition, PartitionState

CERTIFICATE_DAYS, CERTIFICATE_LAST_DAYS = 14, 2
"""Days left of a certificate: a warning below 14, critical below 2."""
THROTTLED_SHARE = 0.2
"""Share of a pump's time spent throttled.

The alert on throttling has the same share.
"""
ALL_SHARE = 0.95
"""Share that counts as all of the time."""
_DAY_MS = 86_400_000
_BEHIND_IT = (
    *LATE,
    "duty-failing",
    "duty-late",
    "group-not-synced",
    "topic-refused",
    "parked-no-leader",
    "parked-broker",
    "long-joining",
    "long-starting",
    "long-finding-out",
)


def _certificates(case: Case) -> Iterator[Sign]:
    for side in (case.flow.source, case.flow.target):
        if side.certificate_ends_ms is None:
            continue
        days = (side.certificate_ends_ms - case.flow.at_ms) / _DAY_MS
        if days < CERTIFICATE_DAYS:
            worst = Severity.CRITICAL if days < CERTIFICATE_LAST_DAYS else None
            evidence = f"{days:,.1f} days left" if days > 0 else f"it ended {-days:,.1f} days ago"
            yield Sign(subject=side.alias, evidence=evidence, severity=worst, explains=() if days > 0 else None)


def unreachable(case: Case) -> dict[str, list[tuple[str, Partition]]]:
    """Return the partitions that can't reach their broker, by `source` or `target`.

    Parked partitions, and waiting partitions with the same cause in the sample before.
    """
    flow, before = case.flow, case.before(1)
    sides: dict[str, list[tuple[str, Partition]]] = {}
    for place, (_, now) in case.partitions.items():
        if now.cause is not Cause.UNREACHABLE:
            continue
        old = before.case.partitions.get(place) if before is not None else None
        if now.state is PartitionState.PARKED or (old is not None and old[1].cause is Cause.UNREACHABLE):
            sides.setdefault(_side(flow, before.flow if before else None, now.reason), []).append((name_of(place), now))
    return sides


def _side(flow: Flow, old: Flow | None, reason: str) -> str:
    """Return the side of the unreachable broker.

    The reason's words tell the side; else the side with more broken connections since `old`.
    """
    words = reason.replace(":", " ").split()
    for side, figures in (("source", flow.source), ("target", flow.target)):
        if f"{side} broker" in reason or figures.alias in words:
            return side
    more = [
        now.errors - (then.errors if then is not None else 0)
        for now, then in (
            (flow.source, old.source if old is not None else None),
            (flow.target, old.target if old is not None else None),
        )
    ]
    return "target" if more[1] > more[0] else "source"


def _unreachable(side: str) -> Rule:
    def look(case: Case) -> Iterator[Sign]:
        figures = _figures(case.flow, side)
        hit = unreachable(case).get(side) if case.leads else None
        if figures.away_since_ms is not None:
            silent_s = (case.flow.at_ms - figures.away_since_ms) / 1000
            yield Sign(subject=figures.alias, evidence=f"no answer for {duration(silent_s)}", cause=figures.away)
        elif hit:
            reasons = Counter(partition.reason for _, partition in hit)
            name, _ = hit[0]
            yield Sign(
                subject=figures.alias,
                evidence=f"{counted(len(hit), 'partition')}, first {name}",
                cause=reasons.most_common(1)[0][0],
            )

    return Rule(
        name=f"{side}-unreachable",
        severity=Severity.CRITICAL,
        title=f"The {side}'s brokers can't be reached",
        when="No broker of the cluster answers the driver, or lets it in; or partitions are parked because of "
        "one, or have waited for one since the sample before. One finding for the cluster.",
        cause="A broker is down, or an address is wrong.",
        action=general_action(Cause.UNREACHABLE),
        look=look,
        explains=_BEHIND_IT,
        everywhere=True,
    )


def _throttled(side: str) -> Rule:
    rate = "consumer_byte_rate" if side == "source" else "producer_byte_rate"

    def action(tools: str) -> str:
        change = f"--alter --entity-type users --entity-name PRINCIPAL --add-config {rate}=N"
        return f"Raise the quota there: `{' '.join(filter(None, ('kafka-configs.sh', tools, change)))}`."

    def look(case: Case) -> Iterator[Sign]:
        before = case.before(1)
        if before is None:
            return
        now, then = _figures(case.flow, side), _figures(before.flow, side)
        waited_s = (now.throttle_s - then.throttle_s) / max(len(case.flow.pumps), 1)
        share = waited_s / before.seconds
        if share > THROTTLED_SHARE:
            # Several connections of a pump wait at the same time, and a wait counts in full when a broker asks for it.
            waited = "all" if share > ALL_SHARE else f"{waited_s:,.0f} s"
            yield Sign(
                subject=now.alias,
                evidence=f"each pump had to wait for {waited} of {before.seconds:,.0f} s",
                action=action(now.tools),
            )

    return Rule(
        name=f"throttled-{side}",
        severity=Severity.WARNING,
        title=f"The {side}'s brokers hold the pumps back",
        when="Between two samples pumps waited more than 20 % of their time because brokers asked them to.",
        cause="A quota of this flow's principal or client id at that cluster.",
        action=action(""),
        look=look,
        explains=LATE,
    )


def _figures(flow: Flow, side: str) -> ClusterFigures:
    return flow.source if side == "source" else flow.target


def _wrong(case: Case) -> Iterator[Sign]:
    if case.flow.state is FlowState.WRONG_CLUSTER:
        yield Sign(subject="", evidence=f"for {case.waited_s:,.0f} s", cause=case.flow.reason)


CLUSTERS = (
    Rule(
        name="wrong-cluster",
        severity=Severity.CRITICAL,
        title="A name leads to another cluster, so that nothing is copied",
        when="The state is `wrong cluster`: a broker has another cluster's id than the flow's.",
        cause="A DNS record, a load balancer or an address leads to another cluster, or the cluster was rebuilt.",
        action="Have the name lead to the flow's cluster: the mirror continues by itself. If the source was rebuilt, "
        "`sparkmirror clusters FILE` says what was copied, and with --accept-source the flow takes the new "
        "cluster for its source.",
        look=_wrong,
        explains=("source-unreachable", "target-unreachable", *_BEHIND_IT, "lease-refused", "nobody-works"),
        everywhere=True,
    ),
    Rule(
        name="certificate-ends",
        severity=Severity.WARNING,
        title="A certificate ends soon, or has ended",
        when="Less than 14 days are left; less than 2 are critical.",
        cause="The certificate was not renewed.",
        action="Renew the certificate that this cluster's ssl.* settings name; it is read again at the next "
        "connection.",
        look=_certificates,
        explains=("source-unreachable", "target-unreachable", *_BEHIND_IT, "lease-refused"),
        everywhere=True,
    ),
    _unreachable("source"),
    _unreachable("target"),
    _throttled("source"),
    _throttled("target"),
)
