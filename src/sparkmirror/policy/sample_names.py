"""Sample names for a regular expression, to try a flow with.

The names are guesses: test each against the expression.
"""

from __future__ import annotations

import re
from itertools import islice, product

MOST = 20
"""Most names from one expression."""
_LONGEST = 249
"""Longest topic name."""

_PART = re.compile(
    r"\\[pP]\{[^}]*\}|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?<?[=!]|\(\?[a-z-]*:|\(\?<\w+>|\(\?[a-z-]+\)|[()|]"
    r"|[*+?][+?]?|\{\d+(?:,\d*)?\}[+?]?|[\^$]|.",
    re.DOTALL,
)
_NAMES = re.compile(r"[\w.|()^$-]*")
"""Expressions with names and alternatives only; a dot means a literal dot."""
_MOST_NAMED = 1000
_CLASSES = {"d": "1", "w": "a", "s": " ", "D": "a", "W": "-", "S": "a"}
_NOTHING = frozenset("bBAzZGQE")
"""Escapes that match a position instead of a character, and the quotes `\\Q`, `\\E`."""


def named(pattern: str) -> list[str] | None:
    """Return the names that an expression lists, as `orders` or `(bills|orders)`.

    None if the expression is meant for other names, too.
    """
    plain = pattern.replace("(?:", "(").replace(r"\.", ".").replace("[.]", ".").replace(r"\-", "-")
    if not _NAMES.fullmatch(plain):
        return None
    return names_like(plain.replace(".", r"\."), _MOST_NAMED)


def names_like(pattern: str, most: int = MOST) -> list[str]:
    """Return some names for an expression; each alternative's, if there are few."""
    try:
        names, _ = _alternatives(_PART.findall(pattern), 0, most)
    except RecursionError:
        return []
    return [name for name in dict.fromkeys(names) if name]


def _alternatives(split: list[str], at: int, most: int) -> tuple[list[str], int]:
    """Return the names from `at` to the group's end, and the end's index."""
    names: list[str] = []
    parts: list[list[str]] = []
    while at < len(split) and split[at] != ")":
        part = split[at]
        at += 1
        if part == "|":
            names += _joined(parts, most)
            parts = []
        elif part.startswith("(") and not part.endswith(")"):
            inner, end = _alternatives(split, at, most)
            at = end + 1
            parts.append([""] if part.endswith(("=", "!")) else inner)
        elif part[0] == "{" and len(part) > 1 and parts:
            times = re.findall(r"\d+", part)[0]
            parts[-1] = [(name * min(int(times), _LONGEST))[:_LONGEST] for name in parts[-1]]
        elif part[0] not in "*+?^$" and not part.startswith("(?"):
            parts.append([_one(part)])
    return [*names, *_joined(parts, most)][:most], at


def _joined(parts: list[list[str]], most: int) -> list[str]:
    return list(islice(map("".join, product(*parts)), most))


def _one(part: str) -> str:
    """Return a text that matches a part that stands for one character."""
    if part[0] == "\\" and len(part) > 1:
        if part[1] in "pP":
            return "a"
        return "" if part[1] in _NOTHING else _CLASSES.get(part[1], part[1])
    if part[0] == "[" and len(part) > 1:
        inside = re.findall(r"\\.|.", part[1:-1], re.DOTALL)
        return "a" if part[1] == "^" else _one(inside[0]) if inside else ""
    return "a" if part == "." else part
