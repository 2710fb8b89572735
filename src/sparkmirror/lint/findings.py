"""Types of the rules and their findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Generic, NamedTuple, TypeVar

from sparkmirror.config.entries import Entry
from sparkmirror.config.formats.written import as_written

_Looked = TypeVar("_Looked")


class LintSeverity(Enum):
    """A finding's severity: `error` and `warning` are mistakes, `info` is a hint."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Spot(NamedTuple):
    """A finding's place: a file, a line (0 if unknown) and a key.

    `detail` is printed after the rule's own words.
    """

    path: str
    line: int
    key: str
    detail: str = ""
    fix: str = ""
    """Advice for this place; empty for the rule's own advice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LintFinding:
    """Finding of one rule in one place."""

    rule: str
    severity: str
    file: str
    line: int
    key: str
    what: str
    effect: str
    fix: str
    words: str
    """Rule's own words, with which `what` begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LintRule(Generic[_Looked]):
    """Check, with the words for its findings."""

    name: str
    severity: LintSeverity
    what: str
    effect: str
    fix: str
    look: Callable[[_Looked], Iterator[Spot]]

    def findings(self, looked: _Looked) -> Iterator[LintFinding]:
        """Yield the rule's findings in the file's order."""
        for spot in self.look(looked):
            what = f"{self.what}: {spot.detail}" if spot.detail else self.what
            fix = spot.fix or self.fix
            severity = self.severity.value
            yield LintFinding(
                rule=self.name,
                severity=severity,
                file=spot.path,
                line=spot.line,
                key=spot.key,
                what=what,
                effect=self.effect,
                fix=fix,
                words=self.what,
            )


def at(entry: Entry, detail: str = "", key: str | None = None, fix: str = "") -> Spot:
    """Return an entry's place, with detail and advice."""
    path = entry.where.removesuffix(f", line {entry.line}")
    return Spot(path=path, line=entry.line, key=key or as_written(entry), detail=detail, fix=fix)
