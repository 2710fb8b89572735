"""All findings of a snapshot, in the order in which to look at them."""

from __future__ import annotations

from collections.abc import Sequence

from sparkmirror.doctor.case import Case
from sparkmirror.doctor.clocks import CLOCKS
from sparkmirror.doctor.clusters import CLUSTERS
from sparkmirror.doctor.duties import DUTIES
from sparkmirror.doctor.exactness import EXACTNESS
from sparkmirror.doctor.finding import Finding, Severity
from sparkmirror.doctor.groups import GROUPS
from sparkmirror.doctor.lag import LAG
from sparkmirror.doctor.latency import LATENCY
from sparkmirror.doctor.lease import LEASE
from sparkmirror.doctor.limits import LIMITS
from sparkmirror.doctor.losses import LOSSES
from sparkmirror.doctor.parked import PARKED
from sparkmirror.doctor.pumps import PUMPS
from sparkmirror.doctor.rule import Rule
from sparkmirror.doctor.spread import SPREAD
from sparkmirror.doctor.standby import STANDBY
from sparkmirror.doctor.states import STATES
from sparkmirror.doctor.topics import TOPICS
from sparkmirror.engine.snapshot import Flow, Snapshot

RULES: tuple[Rule, ...] = (
    *CLUSTERS,
    *LEASE,
    *PUMPS,
    *STATES,
    *TOPICS,
    *PARKED,
    *LOSSES,
    *LIMITS,
    *SPREAD,
    *LATENCY,
    *CLOCKS,
    *DUTIES,
    *LAG,
    *GROUPS,
    *EXACTNESS,
    *STANDBY,
)
"""What explains other findings comes before them."""

_PLACES = {rule.name: place for place, rule in enumerate(RULES)}
_SEVERITIES = list(Severity)


def diagnose(now: Snapshot, before: Sequence[Snapshot] = ()) -> list[Finding]:
    """All findings, the worst first, each behind what explains it in its flow.

    `before`: earlier snapshots, oldest first, for what shows only over time. A minute of them shows everything.
    """
    ranked = [both for flow in now.flows for both in _ranked(_of(flow, before, now))]
    return [finding for _, finding in sorted(ranked, key=lambda both: (both[0], _PLACES[both[1].rule]))]


def _of(flow: Flow, before: Sequence[Snapshot], now: Snapshot) -> list[Finding]:
    earlier = [old for one in before for old in one.flows if old.flow == flow.flow]
    case = Case(flow, earlier, now.process)
    return [finding for rule in RULES for finding in rule.findings(case)]


def _ranked(findings: list[Finding]) -> list[tuple[int, Finding]]:
    """Each with its rank: it is as urgent as the worst of what it explains. Those of a flow, in the rules' order."""
    urgency: dict[str, int] = {}
    ranked = []
    for finding in reversed(findings):
        follows = (urgency[rule] for rule in finding.explains if rule in urgency)
        rank = min((_SEVERITIES.index(finding.severity), *follows))
        urgency[finding.rule] = min(rank, urgency.get(finding.rule, rank))
        ranked.append((rank, finding))
    return ranked[::-1]
