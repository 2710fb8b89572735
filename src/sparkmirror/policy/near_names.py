"""Patterns that match no name: doubtful spellings, and similar names."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from difflib import SequenceMatcher
from heapq import nlargest
from itertools import islice, pairwise
from typing import NamedTuple

from sparkmirror.errors import SparkMirrorError
from sparkmirror.policy.name_patterns import NamePatterns

MOST_NEAREST = 3
"""Most names that are suggested for a pattern."""

MOST_COMPARED = 2_000
"""Most names compared with a pattern: a comparison takes some 20 microseconds."""

_ALIKE = 0.7
"""Least likeness for a suggested name; difflib's default is 0.6."""

_SHORTEST = 3
"""Fewest characters in a word for a comparison."""

_PART = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?\S*?[:=!>)]|\{[^}]*\}|.", re.DOTALL)
"""Parts of a regex: escapes, classes, heads of groups, counts, characters."""

_SPECIAL = frozenset("()|.^$*+?{}[]\\,")
_QUOTES = frozenset("\"'`\u201c\u201d\u2018\u2019")
_LEGAL = re.compile(r"[a-zA-Z0-9._-]")


class _Part(NamedTuple):
    """Part of a regex."""

    text: str
    literal: str
    """Character with no other meaning than itself; else empty."""


def hardly_meant(pattern: str, *, of_topics: bool) -> str:
    """Return why a pattern can hardly be meant as written; empty without a reason.

    Group names may have any characters.
    """
    text = pattern.strip()
    if len(text) > 1 and text[0] in _QUOTES and text[-1] in _QUOTES:
        return "the quotes are part of the pattern: leave them out"
    if len(text) > 1 and text[0] == text[-1] == "/":
        return "the slashes are part of the pattern: leave them out"
    parts = _parts(text)
    if any(part.literal == ";" for part in parts):
        return "`;` separates no patterns: write commas"
    for part, after in pairwise(parts):
        if part.text == part.literal and part.literal and after.text == "*":
            return f"`{part.text}*` means `{part.text}` any number of times: write `{part.text}.*` if all may follow it"
    return _illegal(parts) if of_topics else ""


def _parts(pattern: str) -> Sequence[_Part]:
    return [_Part(text, _literal(text)) for text in _PART.findall(pattern)]


def _literal(text: str) -> str:
    if text[0] == "\\" and len(text) > 1:
        return "" if text[1].isalnum() else text[1]
    return "" if len(text) > 1 or text in _SPECIAL else text


def _illegal(parts: Sequence[_Part]) -> str:
    """Return the first character that no topic's name can have, in words; else empty."""
    illegal = next((part.literal for part in parts if part.literal and not _LEGAL.fullmatch(part.literal)), "")
    if not illegal:
        return ""
    if illegal.isspace():
        return "no topic's name has a blank: write commas between patterns"
    if illegal in _QUOTES:
        return f"no topic's name has a quote ({illegal}): leave it out"
    return f"no topic's name has `{illegal}`"


def matches_any(pattern: str, names: Collection[str]) -> bool:
    """True if a pattern matches a name, or can't be judged alone.

    Half of a regex that contains a comma can't.
    """
    if pattern in names:
        return True
    with suppress(ValueError, SparkMirrorError):
        return any(map(NamePatterns([pattern]).accepts, names))
    return True


def nearest_names(pattern: str, names: Collection[str]) -> tuple[str, ...]:
    """Return the names that are most like a pattern, the likest first."""
    words = _words(pattern)
    rated = [(_likeness(words, name), name) for name in islice(sorted(names), MOST_COMPARED)] if words else []
    best = nlargest(MOST_NEAREST, rated, key=lambda entry: (entry[0], -len(entry[1])))
    return tuple(name for likeness, name in best if likeness >= _ALIKE)


def _words(pattern: str) -> list[str]:
    """Return the name parts that a pattern spells out."""
    parts = _parts(pattern)
    ends = [*parts, _Part(" ", " ")]
    spelt = "".join(
        "." if part.text == "." and after.text[:1] not in ("*", "+", "?", "{") else part.literal or " "
        for part, after in pairwise(ends)
    )
    words = (word.strip("._-").lower() for word in re.split(r"[^\w.-]+", spelt))
    return [word for word in words if len(word) >= _SHORTEST]


def _likeness(words: Sequence[str], name: str) -> float:
    """Return a name's likeness, or its beginning's, to one of the words, 0 to 1."""
    name = name.lower()
    return max(SequenceMatcher(None, word, text).ratio() for word in words for text in (name, name[: len(word)]))
