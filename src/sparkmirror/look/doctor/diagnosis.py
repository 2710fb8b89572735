"""All findings of a snapshot, in the order for the operator to read."""

from __future__ import annotations

from collections.abc import Sequence

from sparkmirror.look.doctor.case import Case
from sparkmirror.look.doctor.clocks import CLOCKS
from sparkmirror.look.doctor.clusters import CLUSTERS
from sparkmirror.look.doctor.duties import DUTIES
from sparkmirror.look.doctor.exactness import EXACTNESS
from sparkmirror.look.doctor.finding import Finding, Severity
from sparkmirror.look.doctor.groups import GROUPS
from sparkmirror.look.doctor.lag import LAG
from sparkmirror.look.doctor.latency import LATENCY
from sparkmirror.look.doctor.lease import LEASE
from sparkmirror.look.doctor.limits import LIMITS
from sparkmirror.look.doctor.losses import LOSSES
from sparkmirror.look.doctor.parked import PARKED
from sparkmirror.look.doctor.pumps import PUMPS
from sparkmirror.look.doctor.rule import Rule
from sparkmirror.look.doctor.spread import SPREAD
from sparkmirror.look.doctor.standby import STANDBY
from sparkmirror.look.doctor.states import STATES
from sparkmirror.look.doctor.topics import TOPICS
from sparkmirror.look.doctor.transactions import TRANSACTIONS
from sparkmirror.snapshot.snapshot import Flow, Snapshot

RULES: tuple[Rule, ...] = (
    *CLUSTERS,
    *LEASE,
    *PUMPS,
    *STATES,
    *TOPICS,
    *PARKED,
    *TRANSACTIONS,
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
"""All rules; each comes before the rules that it explains."""

_PLACES = {rule.name: place for place, rule in enumerate(RULES)}
_SEVERITIES = list(Severity)


def diagnose(now: Snapshot, before: Sequence[Snapshot] = ()) -> list[Finding]:
    """Return all findings, the worst first.

    Within a flow, the explaining finding comes before the explained finding. `before` has earlier snapshots, oldest
    first, for rules comparing over time; a minute of snapshots is enough for every rule.
    """
    ranked = [entry for flow in now.flows for entry in _ranked(_of(flow, before, now))]
    return [finding for _, finding in sorted(ranked, key=lambda entry: (entry[0], _PLACES[entry[1].rule]))]


def _of(flow: Flow, before: Sequence[Snapshot], now: Snapshot) -> list[Finding]:
    earlier = [old for snapshot in before for old in snapshot.flows if old.flow == flow.flow]
    case = Case(flow, earlier, now.process)
    return [finding for rule in RULES for finding in rule.findings(case)]


def _ranked(findings: list[Finding]) -> list[tuple[int, Finding]]:
    """Return a flow's findings in the rules' order, each with its rank.

    A finding is as urgent as the worst finding explained by it.
    """
    urgency: dict[str, int] = {}
    ranked = []
    for finding in reversed(findings):
        follows = (urgency[rule] for rule in finding.explains if rule in urgency)
        rank = min((_SEVERITIES.index(finding.severity), *follows))
        urgency[finding.rule] = min(rank, urgency.get(finding.rule, rank))
        ranked.append((rank, finding))
    return ranked[::-1]
