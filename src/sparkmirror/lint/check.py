"""Apply all rules to the files, and to their clusters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from sparkmirror.config.formats import Reading
from sparkmirror.lint.client_rules import CLIENT_RULES
from sparkmirror.lint.cluster_rules import CLUSTER_RULES
from sparkmirror.lint.file_rules import FILE_RULES
from sparkmirror.lint.findings import LintFinding, LintRule, LintSeverity
from sparkmirror.lint.flow_rules import FLOW_RULES, patterns_error
from sparkmirror.lint.format_rules import FORMAT_RULES
from sparkmirror.lint.list_rules import LIST_RULES
from sparkmirror.lint.probe import FlowProbe, probe
from sparkmirror.lint.retention_rules import RETENTION_RULES
from sparkmirror.lint.schema_rules import SCHEMA_CLUSTER_RULES, SCHEMA_FILE_RULES
from sparkmirror.lint.subject import Subject
from sparkmirror.policy import shared_cluster

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
"""Names of the most costly warnings, in order.

The order is access, copies, groups, then settings that stay at their defaults by mistake. All other warnings follow in
the order of their definition.
"""

_SEVERITIES = [severity.value for severity in LintSeverity]


def _rank(rule: LintRule[Subject]) -> tuple[int, int]:
    first = _FIRST_WARNINGS.index(rule.name) if rule.name in _FIRST_WARNINGS else len(_FIRST_WARNINGS)
    return _SEVERITIES.index(rule.severity.value), first


_OF_FILES = (*FORMAT_RULES, *FILE_RULES, *LIST_RULES, *CLIENT_RULES, *FLOW_RULES, *SCHEMA_FILE_RULES)
RULES = tuple(sorted(_OF_FILES, key=_rank))
"""Rules about files, the most important first."""
CONNECTED_RULES = (*CLUSTER_RULES, *RETENTION_RULES, *SCHEMA_CLUSTER_RULES)
"""Rules about clusters."""
_RANKS = [*(rule.name for rule in RULES), *(rule.name for rule in CONNECTED_RULES)]


def check(reading: Reading) -> list[LintFinding]:
    """Return the findings in the files, the worst first."""
    subject = Subject.of(reading)
    findings = (finding for rule in RULES for finding in rule.findings(subject))
    return ranked(replace(finding, key=subject.own_key(finding.key)) for finding in findings)


def check_clusters(reading: Reading, timeout_s: float) -> list[LintFinding]:
    """Return the findings about the files' clusters, the worst first.

    The clusters are left as they were. A flow with unusable patterns or classes is left out: rule `wrong-pattern`
    reports the error.
    """
    subject = Subject.of(reading)
    probes = [probe(flow, timeout_s) for flow in subject.flows if not patterns_error(flow)]
    compare(probes)
    return ranked(finding for flow_probe in probes for rule in CONNECTED_RULES for finding in rule.findings(flow_probe))


def compare(probes: Sequence[FlowProbe]) -> None:
    """Note in each probe the troubles between its flow and other flows in the file."""
    _compare_copies(probes)
    _compare_clusters(probes)


def _compare_copies(probes: Sequence[FlowProbe]) -> None:
    """Note in each probe the target topics into which another flow in the file copies.

    Of several flows that would copy into a new topic, the first in the file has the topic.
    """
    first = {
        (flow_probe.flow.target.alias, remote): owner
        for flow_probe in probes
        for remote, owner in flow_probe.copiers.items()
    }
    for flow_probe in probes:
        for remote in flow_probe.names.values() if flow_probe.flow.copies else ():
            owner = first.setdefault((flow_probe.flow.target.alias, remote), flow_probe.flow.name)
            if owner != flow_probe.flow.name:
                flow_probe.copiers.setdefault(remote, owner)


def _compare_clusters(probes: Sequence[FlowProbe]) -> None:
    """Note aliases of clusters that have another alias, each pair in one probe."""
    ids: dict[str, str] = {}
    told = set()
    for flow_probe in probes:
        for side in (flow_probe.source, flow_probe.target):
            alias, cluster_id = side.cluster.alias, side.cluster_id
            reason = shared_cluster({**ids, alias: cluster_id}) if cluster_id else None
            if cluster_id and reason is None:
                ids[alias] = cluster_id
            elif reason is not None and reason not in told:
                told.add(reason)
                flow_probe.second_aliases[alias] = reason


def ranked(findings: Iterable[LintFinding]) -> list[LintFinding]:
    """Return each finding once, sorted by severity, then by rule, then by place.

    Severities sort as errors, warnings, infos; rules sort by their rank.
    """
    once = dict.fromkeys(findings)
    return sorted(
        once,
        key=lambda finding: (
            _SEVERITIES.index(finding.severity),
            _RANKS.index(finding.rule),
            finding.file,
            finding.line,
            finding.key,
        ),
    )
