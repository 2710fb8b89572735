"""All rules over one file, and over its clusters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from sparkmirror.formats import Reading
from sparkmirror.lint.client_rules import CLIENT_RULES
from sparkmirror.lint.cluster_rules import CLUSTER_RULES
from sparkmirror.lint.file_rules import FILE_RULES
from sparkmirror.lint.findings import LintFinding, LintRule, LintSeverity
from sparkmirror.lint.flow_rules import FLOW_RULES
from sparkmirror.lint.format_rules import FORMAT_RULES
from sparkmirror.lint.probe import FlowProbe, probe
from sparkmirror.lint.schema_rules import SCHEMA_CLUSTER_RULES, SCHEMA_FILE_RULES
from sparkmirror.lint.subject import Subject

_FIRST_WARNINGS = (
    "replicator-key",
    "unprefixed-security",
    "worker-without-stores",
    "never-copied",
    "comes-back",
    "no-separator",
    "schemas-renamed",
    "kerberos-here",
    "group-sync-unsaid",
    "recompresses",
    "said-otherwise",
    "wrong-prefix",
    "misplaced",
    "broker-key",
)
"""By what they cost: access, copies, groups, then what stays at its default. The others follow as they stand."""

_SEVERITIES = [severity.value for severity in LintSeverity]


def _rank(rule: LintRule[Subject]) -> tuple[int, int]:
    first = _FIRST_WARNINGS.index(rule.name) if rule.name in _FIRST_WARNINGS else len(_FIRST_WARNINGS)
    return _SEVERITIES.index(rule.severity.value), first


RULES = tuple(sorted((*FORMAT_RULES, *FILE_RULES, *CLIENT_RULES, *FLOW_RULES, *SCHEMA_FILE_RULES), key=_rank))
"""Those about files, the most important first."""
CONNECTED_RULES = (*CLUSTER_RULES, *SCHEMA_CLUSTER_RULES)
"""Those about clusters."""
_RANKS = [*(rule.name for rule in RULES), *(rule.name for rule in CONNECTED_RULES)]


def check(reading: Reading) -> list[LintFinding]:
    """What is wrong in the files, the worst first."""
    subject = Subject.of(reading)
    findings = (finding for rule in RULES for finding in rule.findings(subject))
    return ranked(replace(finding, key=subject.own_key(finding.key)) for finding in findings)


def check_clusters(reading: Reading, timeout_s: float) -> list[LintFinding]:
    """What is wrong between the files and the clusters, which are as before when it ends."""
    subject = Subject.of(reading)
    probes = [probe(flow, timeout_s) for flow in subject.flows]
    compare(probes)
    return ranked(finding for one in probes for rule in CONNECTED_RULES for finding in rule.findings(one))


def compare(probes: Sequence[FlowProbe]) -> None:
    """Tell each flow which of its copies another one of the file has, or would have first."""
    first = {(one.flow.target.alias, remote): owner for one in probes for remote, owner in one.copiers.items()}
    for one in probes:
        for remote in one.names.values() if one.flow.copies else ():
            owner = first.setdefault((one.flow.target.alias, remote), one.flow.name)
            if owner != one.flow.name:
                one.copiers.setdefault(remote, owner)


def ranked(findings: Iterable[LintFinding]) -> list[LintFinding]:
    """Each once: errors, warnings, what is worth knowing; among those as the rules rank, then by place."""
    once = dict.fromkeys(findings)
    return sorted(
        once,
        key=lambda one: (_SEVERITIES.index(one.severity), _RANKS.index(one.rule), one.file, one.line, one.key),
    )
