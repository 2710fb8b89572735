"""What a rule is, and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Generic, NamedTuple, TypeVar

from sparkmirror.config import Entry
from sparkmirror.formats.written import as_written

_Looked = TypeVar("_Looked")


class LintSeverity(Enum):
    """`error` and `warning` are things that are wrong; `info` is worth knowing."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Spot(NamedTuple):
    """Where a rule has found something: a file, its line (0: none) and key; `detail` goes behind the rule's words."""

    path: str
    line: int
    key: str
    detail: str = ""
    fix: str = ""
    """What to do here; empty: what the rule says."""


@dataclass(frozen=True, slots=True)
class LintFinding:
    """One thing that was found."""

    rule: str
    severity: str
    file: str
    line: int
    key: str
    what: str
    effect: str
    fix: str
    words: str
    """What `what` begins with: the rule's own words."""


@dataclass(frozen=True, slots=True)
class LintRule(Generic[_Looked]):
    """A check, and the words for what it finds."""

    name: str
    severity: LintSeverity
    what: str
    effect: str
    fix: str
    look: Callable[[_Looked], Iterator[Spot]]

    def findings(self, looked: _Looked) -> Iterator[LintFinding]:
        """What it finds, in the order of the file."""
        for spot in self.look(looked):
            what = f"{self.what}: {spot.detail}" if spot.detail else self.what
            fix = spot.fix or self.fix
            severity = self.severity.value
            yield LintFinding(self.name, severity, spot.path, spot.line, spot.key, what, self.effect, fix, self.what)


def at(entry: Entry, detail: str = "", key: str | None = None, fix: str = "") -> Spot:
    """Where an entry stands."""
    path = entry.where.removesuffix(f", line {entry.line}")
    return Spot(path, entry.line, key or as_written(entry), detail, fix)
