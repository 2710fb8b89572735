"""The report of one fault."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """Severity of a finding; the first is the worst."""

    CRITICAL = "critical"
    """Data is lost, or will be soon, or nothing is copied."""
    WARNING = "warning"
    """A figure gets worse, or a promise is broken."""
    NOTICE = "notice"
    """Worth knowing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One fault of a running mirror.

    Each text is one line.
    """

    rule: str
    """Rule's name: lower case with dashes.

    `docs/runbook.md` uses the same name.
    """
    severity: Severity
    flow: str
    subject: str
    """Topic, `topic-partition`, group, cluster or duty; empty for the whole flow."""
    title: str
    evidence: str
    """Measured figures."""
    cause: str
    action: str
    """Change to make, with the command or key."""
    explains: tuple[str, ...] = ()
    """Rules whose findings in this flow follow from this finding."""
