"""A named precondition of a switch, and its result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from sparkmirror.migrate.checks.facts import Facts


class CheckVerdict(StrEnum):
    """What a check has found."""

    OK = "ok"
    WARN = "warn"
    """The switch works, and something may be lost or surprise."""
    FAIL = "fail"
    """The switch would be refused, would be undone, or would leave somebody behind."""
    UNKNOWN = "unknown"
    """No cluster tells."""


class CheckFinding(NamedTuple):
    """One thing that a check has found."""

    verdict: CheckVerdict
    words: str
    remedy: str = ""
    """What to do about it; empty for the check's own remedy."""


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
    """What holds if the check is ok."""
    remedy: str
    look: Callable[[Facts], Iterable[CheckFinding]]

    def result(self, facts: Facts) -> CheckResult:
        """Return the worst of what was found, with the number of the others."""
        found = sorted(self.look(facts), key=lambda each: _WORST_FIRST.index(each.verdict))
        if not found:
            return CheckResult(id=self.id, verdict=CheckVerdict.OK, words=self.what)
        worst = found[0]
        alike = [each for each in found if each.verdict is worst.verdict]
        words = "; ".join(each.words for each in alike[:_SHOWN])
        if len(alike) > _SHOWN:
            words += f"; and {len(alike) - _SHOWN} more"
        if worst.verdict is CheckVerdict.OK:
            return CheckResult(id=self.id, verdict=worst.verdict, words=words)
        remedies = dict.fromkeys(each.remedy or self.remedy for each in alike[:_SHOWN])
        return CheckResult(id=self.id, verdict=worst.verdict, words=words, remedy="; ".join(remedies))


_WORST_FIRST = (CheckVerdict.FAIL, CheckVerdict.WARN, CheckVerdict.UNKNOWN, CheckVerdict.OK)
_SHOWN = 3


def ok(words: str) -> CheckFinding:
    """Return a good find."""
    return CheckFinding(CheckVerdict.OK, words)


def warn(words: str, remedy: str = "") -> CheckFinding:
    """Return a find that does not stop a switch."""
    return CheckFinding(CheckVerdict.WARN, words, remedy)


def fail(words: str, remedy: str = "") -> CheckFinding:
    """Return a find that stops a switch."""
    return CheckFinding(CheckVerdict.FAIL, words, remedy)


def unknown(words: str, remedy: str = "") -> CheckFinding:
    """Return a find that no cluster tells."""
    return CheckFinding(CheckVerdict.UNKNOWN, words, remedy)


def blocked(*ids: str) -> Callable[[Facts], Iterator[CheckFinding]]:
    """Return a look for what blocks the next switch, of these kinds."""

    def look(facts: Facts) -> Iterator[CheckFinding]:
        for blocker in facts.blockers(*ids):
            yield fail(blocker.words)

    return look
