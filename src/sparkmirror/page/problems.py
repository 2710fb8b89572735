"""The doctor's findings as the page lists them: causes, with their effects folded under them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sparkmirror.doctor.findings import Finding, Severity
from sparkmirror.doctor.losses import LOSSES

_SEVERITIES = list(Severity)

_DECIDED = {rule.name for rule in LOSSES}
"""Rules whose findings an operator must decide about, whatever caused them."""


@dataclass(slots=True)
class Problem:
    """A finding that no other finding explains, and the findings that it explains."""

    finding: Finding
    effects: list[Finding] = field(default_factory=list)

    @property
    def severity(self) -> Severity:
        """Severity of the worst of them."""
        return min((each.severity for each in (self.finding, *self.effects)), key=_SEVERITIES.index)


def problems(findings: Sequence[Finding]) -> list[Problem]:
    """Fold a snapshot's findings, in the doctor's order, under their causes.

    A finding goes to the first finding of its flow that explains it, and from there to that one's own cause.
    """
    causes: list[Problem] = []
    under: dict[int, Problem] = {}
    for place, finding in enumerate(findings):
        cause = _cause(findings, place)
        if cause is None:
            under[place] = Problem(finding)
            causes.append(under[place])
        else:
            under[place] = under[cause]
            under[cause].effects.append(finding)
    return causes


def _cause(findings: Sequence[Finding], place: int) -> int | None:
    """Return the place of the first earlier finding that explains the one at `place`."""
    finding = findings[place]
    if finding.rule in _DECIDED:
        return None
    for earlier, other in enumerate(findings[:place]):
        if other.flow == finding.flow and other.rule != finding.rule and finding.rule in other.explains:
            return earlier
    return None
