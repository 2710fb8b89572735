"""Fold equal findings: the common words once, and a list of all places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sparkmirror.lint.findings import LintFinding


@dataclass(frozen=True, slots=True)
class FoldedPlace:
    """A folded finding's single place."""

    file: str
    line: int
    key: str
    what: str
    """Words about the mistake in this place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """Finding with all its places; `file`, `line` and `key` are the first place's."""

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
        """Yield the finding's output lines.

        Severity and rule, which are printed before the first line, are not part of the lines.
        """
        if len(self.places) == 1:
            yield f"{_at(self.file, self.line)}:{f' {self.key}:' if self.key else ''} {self.what}"
        else:
            yield self.what
            for (file, detail), places in self._by_detail().items():
                keys = ", ".join(f"{place.key} (line {place.line})" if place.line else place.key for place in places)
                yield f"    {file}: {keys}{f': {detail}' if detail else ''}"
        yield f"    causes: {self.effect}"
        yield f"    do: {self.fix}"

    def _by_detail(self) -> dict[tuple[str, str], list[FoldedPlace]]:
        groups: dict[tuple[str, str], list[FoldedPlace]] = {}
        for place in self.places:
            groups.setdefault((place.file, place.what.removeprefix(self.what).removeprefix(": ")), []).append(place)
        return groups


def folded(findings: Iterable[LintFinding]) -> list[Folded]:
    """Fold findings of equal rule, severity and advice, in the order of the first."""
    groups: dict[tuple[str, str, str], list[LintFinding]] = {}
    for finding in findings:
        groups.setdefault((finding.rule, finding.severity, finding.fix), []).append(finding)
    return [_fold(group) for group in groups.values()]


def _fold(group: list[LintFinding]) -> Folded:
    first = group[0]
    return Folded(
        rule=first.rule,
        severity=first.severity,
        file=first.file,
        line=first.line,
        key=first.key,
        what=first.what if len(group) == 1 else first.words,
        effect=first.effect,
        fix=first.fix,
        places=tuple(FoldedPlace(finding.file, finding.line, finding.key, finding.what) for finding in group),
    )


def _at(file: str, line: int) -> str:
    return f"{file}, line {line}" if line else file
