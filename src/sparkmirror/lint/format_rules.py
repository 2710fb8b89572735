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
        yield Spot(path or error.origin, int(line) if path else 0, error.key or "", error.reason)


def missing_secret(subject: Subject) -> Iterator[Spot]:
    for note in subject.reading.notes:
        if note.kind == "secret":
            yield Spot(note.path, note.line, note.key, note.reason)


FORMAT_RULES: tuple[LintRule[Subject], ...] = (
    LintRule(
        "wrong-file",
        LintSeverity.ERROR,
        "this file is left out here",
        "sparkmirror run and config stop at it; the other files are looked at without it",
        "as the reason says, or move the file elsewhere",
        wrong_file,
    ),
    LintRule(
        "missing-secret",
        LintSeverity.WARNING,
        "can't be looked at",
        "sparkmirror run stops; sparkmirror convert writes that it is not known",
        "as the reason says",
        missing_secret,
    ),
)
