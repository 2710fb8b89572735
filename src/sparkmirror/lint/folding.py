"""Equal findings as one: what several places have in common is said once, and no place is left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sparkmirror.lint.findings import LintFinding


@dataclass(frozen=True, slots=True)
class FoldedPlace:
    """One of the places of a folded finding."""

    file: str
    line: int
    key: str
    what: str
    """What is wrong in this place."""


@dataclass(frozen=True, slots=True)
class Folded:
    """A finding with all of its places; `file`, `line` and `key` are the first one's."""

    rule: str
    severity: str
    file: str
    line: int
    key: str
    what: str
    effect: str
    fix: str
    places: tuple[FoldedPlace, ...]

    def lines(self) -> Iterator[str]:
        """As a reader sees it, without the severity and the rule, which go before the first line."""
        if len(self.places) == 1:
            yield f"{_at(self.file, self.line)}:{f' {self.key}:' if self.key else ''} {self.what}"
        else:
            yield self.what
            for (file, detail), places in self._by_detail().items():
                keys = ", ".join(f"{one.key} (line {one.line})" if one.line else one.key for one in places)
                yield f"    {file}: {keys}{f': {detail}' if detail else ''}"
        yield f"    causes: {self.effect}"
        yield f"    do: {self.fix}"

    def _by_detail(self) -> dict[tuple[str, str], list[FoldedPlace]]:
        groups: dict[tuple[str, str], list[FoldedPlace]] = {}
        for place in self.places:
            groups.setdefault((place.file, place.what.removeprefix(self.what).removeprefix(": ")), []).append(place)
        return groups


def folded(findings: Iterable[LintFinding]) -> list[Folded]:
    """In the order of the first of each."""
    groups: dict[tuple[str, str, str], list[LintFinding]] = {}
    for finding in findings:
        groups.setdefault((finding.rule, finding.severity, finding.fix), []).append(finding)
    return [_fold(group) for group in groups.values()]


def _fold(group: list[LintFinding]) -> Folded:
    first = group[0]
    return Folded(
        first.rule,
        first.severity,
        first.file,
        first.line,
        first.key,
        first.what if len(group) == 1 else first.words,
        first.effect,
        first.fix,
        tuple(FoldedPlace(one.file, one.line, one.key, one.what) for one in group),
    )


def _at(file: str, line: int) -> str:
    return f"{file}, line {line}" if line else file
