"""Replacements in Java's `Matcher.replaceFirst`: `$1`, `${name}` and escapes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

from sparkmirror.policy.java_regex import groups_of

Part: TypeAlias = "str | int"
"""Text, or a group's number; 0 is the whole match."""

_PARTS = re.compile(r"(?P<plain>[^\\$]+)|\\(?P<escaped>.)|\$\{(?P<name>[^}]*)\}|\$(?P<digits>[0-9]+)", re.DOTALL)
_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9]*")


def parts_of(replacement: str, pattern: str) -> tuple[Part, ...]:
    """Return a replacement's parts; raise `ValueError` if `pattern` has no such group."""
    count, names = groups_of(pattern)
    parts: list[Part] = []
    at = 0
    while at < len(replacement):
        matched = _PARTS.match(replacement, at)
        if matched is None:
            raise ValueError(_mistake(replacement[at:]))
        at = matched.end()
        if matched["name"] is not None:
            parts.append(_named(matched["name"], names))
        elif matched["digits"]:
            parts += _numbered(matched["digits"], count)
        else:
            parts.append(matched["plain"] or matched["escaped"])
    return tuple(parts)


def filled(parts: Sequence[Part], groups: Sequence[str | None]) -> str:
    """Return the replacement; `groups` has the whole match first."""
    return "".join(part if isinstance(part, str) else groups[part] or "" for part in parts)


def _mistake(rest: str) -> str:
    if rest == "\\":
        return r"a backslash is its last character: write \\ for the character"
    if rest.startswith("${"):
        return "a group's name is not closed: write } after it"
    return r"a $ is not followed by a group's number or name: write \$ for the character"


def _named(name: str, names: dict[str, int]) -> int:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} can't be a group's name")
    if name not in names:
        raise ValueError(f"the regex has no group {name}")
    return names[name]


def _numbered(digits: str, count: int) -> list[Part]:
    """Return a group's number, and further digits as text.

    The number has as many digits as there are groups for.
    """
    number, length = int(digits[0]), 1
    if number > count:
        raise ValueError(f"the regex has no group {number}")
    while length < len(digits) and number * 10 + int(digits[length]) <= count:
        number = number * 10 + int(digits[length])
        length += 1
    return [number, *([digits[length:]] if digits[length:] else [])]
