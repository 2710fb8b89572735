"""Java's regular expressions as Python's, as far as both mean the same; the rest is refused.

Topic names are ASCII, so classes like `\\w` are taken as Java's, ASCII only. Possessive quantifiers and
atomic groups are Python's own since 3.11. What differs, and is translated: `\\Q..\\E`, `\\p{Alpha}` and its
kin, `\\z`, named groups, and flags like `(?i)`, which in Java hold to the end of their group.
"""

from __future__ import annotations

import re
from collections.abc import Callable

POSIX = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "ASCII": r"\x00-\x7f",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": r"!-/:-@\[-`{-~",
    "Graph": "!-~",
    "Print": " -~",
    "Blank": r" \t",
    "Cntrl": r"\x00-\x1f\x7f",
    "XDigit": "0-9a-fA-F",
    "Space": r" \t\n\x0b\f\r",
}

_QUOTED = re.compile(r"\\Q(.*?)(?:\\E|\Z)", re.DOTALL)
_PROPERTY = re.compile(r"\\([pP])\{(\w+)\}")
_SAME_ESCAPE = re.compile(r"\\(?:[dDwWsStnrfa]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|[^A-Za-z0-9])", re.DOTALL)
_SAME_OUTSIDE = re.compile(r"\\(?:[bBAZ]|[1-9](?![0-9]))")
_END = re.compile(r"\\z")
_NAMED_REFERENCE = re.compile(r"\\k<([A-Za-z][A-Za-z0-9]*)>")
_NAMED_GROUP = re.compile(r"\(\?<([A-Za-z][A-Za-z0-9]*)>")
_GROUP = re.compile(r"\((?:\?(?:[:=!>]|<[=!]|-?[ism]+(?:-[ism]+)?:)|(?!\?))")
_FLAGS = re.compile(r"\(\?(-?[ism]+(?:-[ism]+)?)\)")
_QUANTIFIER = re.compile(r"\{[0-9]+(?:,[0-9]*)?\}")
_PLAIN = re.compile(r"[^\\\[\](){}|]+|[\]}]")
_CLASS_START = re.compile(r"\[\^?\]?")
_CLASS_END = re.compile(r"\]")
_CLASS_SET = re.compile(r"\\[dDwWsS]")
_CLASS_PROPERTY = re.compile(r"\\p\{(\w+)\}")
_DASH = re.compile(r"-")
_CLASS_PLAIN = re.compile(r"(?!--)[^\\\[\]&]|&(?!&)", re.DOTALL)


def to_python(pattern: str) -> str:
    """The Python expression that matches what Java's `pattern` matches; raises `ValueError` otherwise."""
    return _Translation(pattern).run()


def compile_java(pattern: str) -> re.Pattern[str]:
    """Java's `pattern`, compiled; raises `ValueError` that names it."""
    translated = to_python(pattern)
    try:
        return re.compile(translated, re.ASCII)
    except (re.error, OverflowError) as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from None


class _Translation:
    """One pass over a pattern; `_flags` holds, for each open group, the flags set within it."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._out: list[str] = []
        self._flags: list[list[str]] = [[]]

    def run(self) -> str:
        """Translate the whole pattern."""
        while self._at < len(self._pattern):
            self._step()
        if len(self._flags) > 1:
            raise self._refused("a parenthesis is not closed")
        self._close_flags()
        return "".join(self._out)

    def _step(self) -> None:
        if self._take(_QUOTED, _quoted):
            return
        if self._take(_PLAIN) or self._take(_QUANTIFIER) or self._take_escape():
            return
        if self._take(_FLAGS, self._open_flags):
            return
        if self._take(_NAMED_GROUP, r"(?P<\1>") or self._take(_GROUP):
            self._flags.append([])
        elif self._take(_CLASS_START):
            self._class()
        elif self._pattern[self._at] == "|":
            self._alternative()
        elif self._pattern[self._at] == ")" and len(self._flags) > 1:
            self._close_group()
        else:
            raise self._refused("it can't be translated from Java to Python")

    def _take_escape(self) -> bool:
        return (
            self._take(_SAME_ESCAPE)
            or self._take(_SAME_OUTSIDE)
            or self._take(_END, lambda _: r"\Z")
            or self._take(_NAMED_REFERENCE, r"(?P=\1)")
            or self._take(_PROPERTY, lambda found: f"[{'^' * (found[1] == 'P')}{self._posix(found[2])}]")
        )

    def _class(self) -> None:
        """The inside of `[...]` and its end; unions and intersections of classes are refused."""
        while not self._take(_CLASS_END):
            if self._take(_QUOTED, _quoted) or self._take(_CLASS_PLAIN, _class_plain):
                continue
            if self._take(_CLASS_SET) or self._take(_CLASS_PROPERTY, lambda found: self._posix(found[1])):
                # Java takes a dash behind a set of characters as a dash, Python as half a range.
                self._take(_DASH, lambda _: r"\-")
            elif not self._take(_SAME_ESCAPE):
                raise self._refused("a part of a class in brackets can't be translated from Java to Python")

    def _alternative(self) -> None:
        """End this alternative's flags and set them again for the next one."""
        flags = self._flags[-1]
        self._out.append(")" * len(flags) + "|" + "".join(f"(?{flag}:" for flag in flags))
        self._at += 1

    def _open_flags(self, found: re.Match[str]) -> str:
        self._flags[-1].append(found[1])
        return f"(?{found[1]}:"

    def _close_flags(self) -> None:
        self._out.append(")" * len(self._flags.pop()))

    def _close_group(self) -> None:
        self._close_flags()
        self._out.append(")")
        self._at += 1

    def _posix(self, name: str) -> str:
        if name not in POSIX:
            raise self._refused(f"the class {name} is not supported")
        return POSIX[name]

    def _take(self, expected: re.Pattern[str], instead: str | Callable[[re.Match[str]], str] = r"\g<0>") -> bool:
        """Read `expected` if it comes next, and write what stands for it."""
        found = expected.match(self._pattern, self._at)
        if found is None:
            return False
        self._out.append(found.expand(instead) if isinstance(instead, str) else instead(found))
        self._at = found.end()
        return True

    def _refused(self, reason: str) -> ValueError:
        return ValueError(f"{self._pattern!r} is no regular expression that can be used: {reason}")


def _quoted(found: re.Match[str]) -> str:
    return re.escape(found[1])


def _class_plain(found: re.Match[str]) -> str:
    """A character of a class; those that Python reserves for sets are escaped."""
    return f"\\{found[0]}" if found[0] in "&|~" else found[0]
