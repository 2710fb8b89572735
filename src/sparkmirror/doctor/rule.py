"""What a rule is, and what it sees."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from sparkmirror.doctor.case import Case
from sparkmirror.doctor.finding import Finding, Severity

NO_COPY = ("no-progress", "partitions-stuck")
"""Rules for what is not copied at all."""

LATE = (*NO_COPY, "retention-race", "lag-growing", "lag-over-objective", "group-sync-late", "group-would-reread")
"""Rules for what is copied too late: what follows from whatever slows a flow down."""


class Sign(NamedTuple):
    """What a rule has seen; empty texts are the rule's own."""

    subject: str
    evidence: str
    cause: str = ""
    action: str = ""
    severity: Severity | None = None
    explains: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """A check, and the words for what it finds."""

    name: str
    severity: Severity
    title: str
    when: str
    """What it compares with what, and where the threshold comes from."""
    cause: str
    action: str
    look: Callable[[Case], Iterator[Sign]]
    explains: tuple[str, ...] = ()
    """Rules whose findings follow from this one's; they come later in the list of rules."""
    everywhere: bool = False
    """It looks at what a process without the lease knows, too."""

    def findings(self, case: Case) -> Iterator[Finding]:
        """What it finds in a flow."""
        if not (self.everywhere or case.leads):
            return
        for sign in self.look(case):
            yield Finding(
                self.name,
                sign.severity or self.severity,
                case.flow.flow,
                sign.subject,
                self.title,
                _line(sign.evidence),
                _line(sign.cause) or self.cause,
                _line(sign.action) or self.action,
                self.explains if sign.explains is None else sign.explains,
            )


def counted(count: int, word: str, words: str = "") -> str:
    """As `1 partition`, `2 partitions`."""
    return f"{count:,} {word if count == 1 else words or word + 's'}"


def _line(text: str) -> str:
    return " ".join(text.split())
