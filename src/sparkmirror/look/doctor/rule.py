"""Rules, and the signs seen by rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from sparkmirror.look.doctor.case import Case
from sparkmirror.look.doctor.finding import Finding, Severity

NO_COPY = ("no-progress", "partitions-stuck")
"""Rules on partitions that are not copied at all."""

LATE = (*NO_COPY, "retention-race", "lag-growing", "lag-over-objective", "group-sync-late", "group-would-reread")
"""Rules on late copies: effects of every cause that slows a flow down."""


class Sign(NamedTuple):
    """Observation of a rule.

    Empty texts and `None` stand for the rule's own texts and values.
    """

    subject: str
    evidence: str
    cause: str = ""
    action: str = ""
    severity: Severity | None = None
    explains: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A check, and the words for its findings."""

    name: str
    severity: Severity
    title: str
    when: str
    """Condition of a finding: the compared values, and the source of the threshold."""
    cause: str
    action: str
    look: Callable[[Case], Iterator[Sign]]
    explains: tuple[str, ...] = ()
    """Rules whose findings follow from this rule's findings.

    The explained rules come later in the list of rules.
    """
    everywhere: bool = False
    """True if the rule also applies to a process without the lease."""

    def findings(self, case: Case) -> Iterator[Finding]:
        """Yield the rule's findings in a flow."""
        if not (self.everywhere or case.leads):
            return
        for sign in self.look(case):
            yield Finding(
                rule=self.name,
                severity=sign.severity or self.severity,
                flow=case.flow.flow,
                subject=sign.subject,
                title=self.title,
                evidence=_line(sign.evidence),
                cause=_line(sign.cause) or self.cause,
                action=_line(sign.action) or self.action,
                explains=self.explains if sign.explains is None else sign.explains,
            )


def counted(count: int, word: str, words: str = "") -> str:
    """Return a number with its noun, as in `1 partition` and `2 partitions`."""
    return f"{count:,} {word if count == 1 else words or word + 's'}"


def _line(text: str) -> str:
    return " ".join(text.split())
