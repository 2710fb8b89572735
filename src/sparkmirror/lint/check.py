"""All rules over one file, and over its clusters."""

from __future__ import annotations

from collections.abc import Iterable

from sparkmirror.formats import Reading
from sparkmirror.lint.cluster_rules import CLUSTER_RULES
from sparkmirror.lint.file_rules import FILE_RULES
from sparkmirror.lint.findings import Finding, Severity
from sparkmirror.lint.flow_rules import FLOW_RULES
from sparkmirror.lint.format_rules import FORMAT_RULES
from sparkmirror.lint.probe import probe
from sparkmirror.lint.subject import Subject

RULES = (*FORMAT_RULES, *FILE_RULES, *FLOW_RULES)
_ORDER = [severity.value for severity in Severity]


def check(reading: Reading) -> list[Finding]:
    """What is wrong in the files, the worst first."""
    subject = Subject.of(reading)
    return _sorted(finding for rule in RULES for finding in rule.findings(subject))


def check_clusters(reading: Reading, timeout_s: float) -> list[Finding]:
    """What is wrong between the files and the clusters, which are as before when it ends."""
    subject = Subject.of(reading)
    probes = [probe(flow, timeout_s) for flow in subject.flows]
    found = [finding for one in probes for rule in CLUSTER_RULES for finding in rule.findings(one)]
    return _sorted(found)


def _sorted(findings: Iterable[Finding]) -> list[Finding]:
    once = dict.fromkeys(findings)
    return sorted(once, key=lambda one: (_ORDER.index(one.severity), one.file, one.line, one.key))
