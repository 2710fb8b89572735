"""What is told of one thing that is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How bad it is; the first is the worst."""

    CRITICAL = "critical"
    """Data is lost, or will be soon, or nothing is copied."""
    WARNING = "warning"
    """It gets worse, or a promise is broken."""
    NOTICE = "notice"
    """Worth knowing."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong. Each text is one line."""

    rule: str
    """The rule's name, as `docs/doctor.md` and the alert's runbook have it: lower case with dashes."""
    severity: Severity
    flow: str
    subject: str
    """What it is about: a topic, `topic-partition`, group, cluster or duty; empty: the flow."""
    title: str
    evidence: str
    """The figures."""
    cause: str
    action: str
    """What to change, with the command or key."""
    explains: tuple[str, ...] = ()
    """Rules whose findings in this flow follow from it."""
