"""The doctor's findings for the page's list: causes, with folded effects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sparkmirror.look.doctor.findings import Finding, Severity
from sparkmirror.look.doctor.losses import LOSSES

_SEVERITIES = list(Severity)

_DECIDED = {rule.name for rule in LOSSES}
"""Rules with findings that an operator must decide about."""


@dataclass(slots=True)
class Problem:
    """An unexplained finding, and the explained findings."""

    finding: Finding
    effects: list[Finding] = field(default_factory=list)

    @property
    def severity(self) -> Severity:
        """The worst finding's severity."""
        return min((each.severity for each in (self.finding, *self.effects)), key=_SEVERITIES.index)


def problems(findings: Sequence[Finding]) -> list[Problem]:
    """Fold a snapshot's findings, in the doctor's order, under the causes.

    A finding goes to the flow's first explaining finding, and from there to the explaining finding's cause.
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
    """Return the place of the first finding that explains the finding at `place`."""
    finding = findings[place]
    if finding.rule in _DECIDED:
        return None
    for earlier, other in enumerate(findings[:place]):
        if other.flow == finding.flow and other.rule != finding.rule and finding.rule in other.explains:
            return earlier
    return None
