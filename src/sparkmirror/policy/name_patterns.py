"""Java regexes that include and exclude names, as in MirrorMaker 2's filters.

Source: `mm2.md` 1.5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

import regex

from sparkmirror.errors import SparkMirrorError
from sparkmirror.policy.java_regex import TOO_LONG_S, compile_java

_BLANKS = " \t\n\x0b\f\r"
"""Characters that Java's `\\s` matches."""


class NamePatterns:
    """Accepts names that are included and not excluded.

    A regex matches whole names; an empty list of regexes matches nothing. Raises `ValueError` for an invalid regex, and
    for a regex that can't be translated to Python.
    """

    def __init__(self, include: Sequence[str], exclude: Sequence[str] = ()) -> None:
        self._include = _compiled(include)
        self._exclude = _compiled(exclude)

    def accepts(self, name: str) -> bool:
        """True if `name` is included and not excluded."""
        return _matches(self._include, name) and not _matches(self._exclude, name)


def matching(expressions: Sequence[str], name: str) -> str:
    """Return the expression that matches a name; empty if none does."""
    if not NamePatterns(expressions).accepts(name):
        return ""
    for expression in expressions:
        with suppress(ValueError):  # half of an expression that contains a comma
            if NamePatterns([expression]).accepts(name):
                return expression
    return ",".join(expressions)


def names_in(settings: Mapping[str, str], key: str) -> tuple[str, ...]:
    """Return a list setting's items, split as Kafka does; empty if unset."""
    text = settings.get(key, "").strip()
    return tuple(item.strip(_BLANKS) for item in text.split(",")) if text else ()


def _matches(pattern: regex.Pattern[str] | None, name: str) -> bool:
    if pattern is None:
        return False
    try:
        return pattern.fullmatch(name, timeout=TOO_LONG_S) is not None
    except TimeoutError:
        raise SparkMirrorError(
            f"a regular expression takes more than {TOO_LONG_S:g} s to say whether it matches {name!r}: write it"
            " without a repetition within a repetition"
        ) from None


def _compiled(patterns: Sequence[str]) -> regex.Pattern[str] | None:
    # Joined first, as Java does: a regex with a comma arrives here in two halves.
    return compile_java("|".join(patterns)) if patterns else None
