"""Rules about unreadable files and missing Secrets.

Each rule is one small function.
"""

from __future__ import annotations

from collections.abc import Iterator

from sparkmirror.lint.findings import LintRule, LintSeverity, Spot
from sparkmirror.lint.subject import Subject


def wrong_file(subject: Subject) -> Iterator[Spot]:
    for error in subject.reading.wrong:
        path, _, line = error.origin.rpartition(", line ")
        yield Spot(path=path or error.origin, line=int(line) if path else 0, key=error.key or "", detail=error.reason)


def missing_secret(subject: Subject) -> Iterator[Spot]:
    for note in subject.reading.notes:
        if note.kind == "secret":
            yield Spot(path=note.path, line=note.line, key=note.key, detail=note.reason)


FORMAT_RULES: tuple[LintRule[Subject], ...] = (
    LintRule(
        name="wrong-file",
        severity=LintSeverity.ERROR,
        what="this file is left out here",
        effect="sparkmirror run and config stop at it; the other files are looked at without it",
        fix="as the reason says, or move the file elsewhere",
        look=wrong_file,
    ),
    LintRule(
        name="missing-secret",
        severity=LintSeverity.WARNING,
        what="can't be looked at",
        effect="sparkmirror run stops; sparkmirror convert writes that it is not known",
        fix="as the reason says",
        look=missing_secret,
    ),
)
