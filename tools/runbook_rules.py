"""The end of `docs/runbook.md`: the doctor's rules as tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from sparkmirror.look.doctor.diagnosis import RULES
from sparkmirror.look.doctor.losses import ACKNOWLEDGE, LOSSES_BY_OUTCOME
from sparkmirror.look.doctor.parked import PARKED
from sparkmirror.look.doctor.rule import Rule

BEGIN = "### All findings but parked partitions\n"
"""First line of the part."""
_TABLE = ("| rule | | finding, and when | what to do |", "|---|---|---|---|")
_LEDGER_HEAD = """
### Losses in the ledger

The ledger has entries with the outcome that no operator has acknowledged; after a week the finding is a notice. What to
do first: look at `sparkmirror losses FILE`. And last, once you know what it means: `sparkmirror losses ack FILE WHY`.
"""
_ALERTS = {
    "wrong-cluster": "WrongCluster",
    "certificate-ends": "CertificateExpires",
    "source-unreachable": "ClusterUnreachable",
    "target-unreachable": "ClusterUnreachable",
    "throttled-source": "TargetThrottles",
    "throttled-target": "TargetThrottles",
    "nobody-works": "NobodyWorks",
    "nothing-to-copy": "NothingToCopy",
    "no-progress": "FlowNoProgress",
    "open-transaction": "TransactionOpen",
    "topic-refused": "TopicsRefused",
    "late-records": "LateRecords",
    "retention-race": "RetentionWillWin",
    "lag-over-objective": "LagOverObjective",
    "group-not-synced": "GroupSyncLate",
    "group-beyond-end": "GroupSyncLate",
    "group-sync-late": "GroupSyncLate",
    "group-would-skip": "GroupWouldSkip",
    "group-would-reread": "GroupWouldReread",
    "no-standby": "NoStandby",
}
"""Alert whose section says what to do, by rule."""


def page() -> str:
    """Return the rules' tables; the causes that park are in the alert's section."""
    others = [rule for rule in RULES if rule not in PARKED and rule not in LOSSES_BY_OUTCOME.values()]
    return "\n".join([BEGIN, *_TABLE, *_rows(others), _LEDGER_HEAD, *_ledger()]) + "\n"


def _rows(rules: Iterable[Rule]) -> Iterator[str]:
    for (when, action), alike in groupby(rules, lambda rule: (rule.when, _action(rule))):
        same = tuple(alike)
        names = ", ".join(f"`{rule.name}`" for rule in same)
        finding = when if same[0].name in _ALERTS else f"{same[0].title}. {when}"
        yield f"| {names} | {same[0].severity} | {finding} | {action} |"


def _action(rule: Rule) -> str:
    alert = _ALERTS.get(rule.name)
    return f"[{alert}](#{alert.lower()})" if alert else rule.action


def _ledger() -> Iterator[str]:
    yield "| rule | | outcome | finding | cause | what to do |"
    yield "|---|---|---|---|---|---|"
    for outcome, rule in LOSSES_BY_OUTCOME.items():
        action = rule.action.replace(ACKNOWLEDGE, "").replace("  ", " ").strip()
        yield f"| `{rule.name}` | {rule.severity} | `{outcome}` | {rule.title} | {rule.cause} | {action} |"
