"""Named preconditions of a switch, and results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from sparkmirror.migrate.checks.facts import Facts


class CheckVerdict(StrEnum):
    """A check's verdict."""

    OK = "ok"
    WARN = "warn"
    """The switch works, and a loss or a surprise is possible."""
    FAIL = "fail"
    """The switch would be refused or undone, or would leave a client out."""
    UNKNOWN = "unknown"
    """No cluster tells."""


class CheckFind(NamedTuple):
    """A single result of a look."""

    verdict: CheckVerdict
    words: str
    remedy: str = ""
    """Advice; empty for the check's own remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """A check's outcome: a verdict, a line of words, and what to do."""

    id: str
    verdict: CheckVerdict
    words: str
    remedy: str = ""
    """Empty where nothing is to be done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A precondition; `look` is a pure function."""

    id: str
    what: str
    """Statement, true if the check is ok."""
    remedy: str
    look: Callable[[Facts], Iterable[CheckFind]]

    def result(self, facts: Facts) -> CheckResult:
        """Return the worst finds; many are cut short."""
        finds = sorted(self.look(facts), key=lambda each: _WORST_FIRST.index(each.verdict))
        if not finds:
            return CheckResult(id=self.id, verdict=CheckVerdict.OK, words=self.what)
        worst = finds[0]
        alike = [each for each in finds if each.verdict is worst.verdict]
        words = "; ".join(each.words for each in alike[:_SHOWN])
        if len(alike) > _SHOWN:
            words += f"; and {len(alike) - _SHOWN} more"
        if worst.verdict is CheckVerdict.OK:
            return CheckResult(id=self.id, verdict=worst.verdict, words=words)
        remedies = dict.fromkeys(each.remedy or self.remedy for each in alike[:_SHOWN])
        return CheckResult(id=self.id, verdict=worst.verdict, words=words, remedy="; ".join(remedies))


_WORST_FIRST = (CheckVerdict.FAIL, CheckVerdict.WARN, CheckVerdict.UNKNOWN, CheckVerdict.OK)
_SHOWN = 3


def ok(words: str) -> CheckFind:
    """Return a good find."""
    return CheckFind(CheckVerdict.OK, words)


def warn(words: str, remedy: str = "") -> CheckFind:
    """Return a find that does not stop a switch."""
    return CheckFind(CheckVerdict.WARN, words, remedy)


def fail(words: str, remedy: str = "") -> CheckFind:
    """Return a find that stops a switch."""
    return CheckFind(CheckVerdict.FAIL, words, remedy)


def unknown(words: str, remedy: str = "") -> CheckFind:
    """Return a find that no cluster tells."""
    return CheckFind(CheckVerdict.UNKNOWN, words, remedy)


def blocked(*ids: str) -> Callable[[Facts], Iterator[CheckFind]]:
    """Return a look for blockers of the next switch, by kind."""

    def look(facts: Facts) -> Iterator[CheckFind]:
        for blocker in facts.blockers(*ids):
            yield fail(blocker.words)

    return look
