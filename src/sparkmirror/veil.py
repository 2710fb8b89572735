"""Values from elsewhere, and the references that are shown in their place.

A value behind a reference (`${file:/path:key}`, or a placeholder `${NAME}`) may be secret, whatever its key. So each
text for people passes a veil: messages about reading a file pass the reading's veil; errors and log lines pass `VEIL`,
which knows all but topic and group names.
"""

from __future__ import annotations

import json
import re
import threading

LEAST = 4
"""Characters in the shortest hidden value; a shorter value is part of many words."""

_LONG = 40
"""Characters by which a long value is known, as messages cut long values."""
_WORDS = ("true", "false")
_SEPARATORS = re.compile(r"[,|\s]+")


class Veil:
    """Hides values behind their references; thread-safe.

    For each reference only the newest value is known.
    """

    def __init__(self, least: int = LEAST) -> None:
        """Hide values that have `least` characters or more."""
        self._least = least
        self._values: dict[str, str] = {}
        self._pattern: tuple[re.Pattern[str], dict[str, str]] | None = None
        self._lock = threading.Lock()

    def put(self, reference: str, value: str, *, short: bool = False) -> None:
        """Hide a value, and each item in a list.

        A `short` value is hidden whatever its length. A value that is a reference itself is shown.
        """
        whole = value.strip()
        kept = whole if whole and (short or len(whole) >= self._least) and not whole.startswith("${") else ""
        with self._lock:
            if self._values.get(reference) != kept:
                self._values[reference] = kept
                self._pattern = None

    def value(self, reference: str) -> str:
        """Return a reference's hidden value; empty if none is hidden."""
        return self._values.get(reference, "")

    def over(self, text: str) -> str:
        """Return the text with references in place of values."""
        if not self._values:
            return text
        with self._lock:
            self._pattern = self._pattern or _compiled(self._values)
            pattern, references = self._pattern
        return pattern.sub(lambda match: references.get(match[0].lower()) or _begun(match[0], references), text)


VEIL = Veil(8)
"""Veil of this process."""
NAMES_VEIL = Veil()
"""Veil over patterns for topics and groups, wherever the process shows patterns."""


def shown_patterns(text: str) -> str:
    """Return text with patterns for topics or groups as people may see it."""
    return NAMES_VEIL.over(VEIL.over(text))


def _compiled(values: dict[str, str]) -> tuple[re.Pattern[str], dict[str, str]]:
    """Return a pattern for all spellings, the longest first, and their references.

    The references' spellings are in lower case.
    """
    references: dict[str, str] = {}
    for reference, whole in values.items():
        items = [item for item in _SEPARATORS.split(whole) if len(item) >= LEAST]
        for part in (whole, *items):
            if part and part.lower() not in _WORDS:
                for spelling in (part, repr(part)[1:-1], json.dumps(part)[1:-1]):
                    references.setdefault(spelling.lower(), reference)
                if len(part) > _LONG:
                    references.setdefault(part[:_LONG].lower(), reference)
    longest = sorted(references, key=len, reverse=True)
    words = [re.escape(word) + (r"[^\s'\"]*" if len(word) == _LONG else "") for word in longest]
    return re.compile("|".join(words) or r"(?!)", re.IGNORECASE), references


def _begun(text: str, references: dict[str, str]) -> str:
    return references[text[:_LONG].lower()]
