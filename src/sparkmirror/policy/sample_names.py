"""Names that a regular expression could be meant for: good enough to try a flow with, and tried they must be."""

from __future__ import annotations

import re
from itertools import islice, product

MOST = 20
"""Of one expression."""
_LONGEST = 249
"""Of a topic's name."""

_PART = re.compile(
    r"\\[pP]\{[^}]*\}|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?<?[=!]|\(\?[a-z-]*:|\(\?<\w+>|\(\?[a-z-]+\)|[()|]"
    r"|[*+?][+?]?|\{\d+(?:,\d*)?\}[+?]?|[\^$]|.",
    re.DOTALL,
)
_NAMES = re.compile(r"[\w.|()^$-]*")
"""Expressions without anything but names and alternatives; a dot is meant as one."""
_MOST_NAMED = 1000
_CLASSES = {"d": "1", "w": "a", "s": " ", "D": "a", "W": "-", "S": "a"}
_NOTHING = frozenset("bBAzZGQE")
"""What matches a place, behind a backslash; and quotes."""


def named(pattern: str) -> list[str] | None:
    """The names that an expression lists, as `orders` or `(bills|orders)`; None if it is meant for others, too."""
    plain = pattern.replace("(?:", "(").replace(r"\.", ".").replace("[.]", ".").replace(r"\-", "-")
    if not _NAMES.fullmatch(plain):
        return None
    return names_like(plain.replace(".", r"\."), _MOST_NAMED)


def names_like(pattern: str, most: int = MOST) -> list[str]:
    """Some names, with each alternative if there are few."""
    try:
        names, _ = _alternatives(_PART.findall(pattern), 0, most)
    except RecursionError:
        return []
    return [name for name in dict.fromkeys(names) if name]


def _alternatives(split: list[str], at: int, most: int) -> tuple[list[str], int]:
    """What stands from `at` to the end of the group, and where that is."""
    found: list[str] = []
    parts: list[list[str]] = []
    while at < len(split) and split[at] != ")":
        part = split[at]
        at += 1
        if part == "|":
            found += _joined(parts, most)
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
    return [*found, *_joined(parts, most)][:most], at


def _joined(parts: list[list[str]], most: int) -> list[str]:
    return list(islice(map("".join, product(*parts)), most))


def _one(part: str) -> str:
    """A text for what stands for one character."""
    if part[0] == "\\" and len(part) > 1:
        if part[1] in "pP":
            return "a"
        return "" if part[1] in _NOTHING else _CLASSES.get(part[1], part[1])
    if part[0] == "[" and len(part) > 1:
        inside = re.findall(r"\\.|.", part[1:-1], re.DOTALL)
        return "a" if part[1] == "^" else _one(inside[0]) if inside else ""
    return "a" if part == "." else part
