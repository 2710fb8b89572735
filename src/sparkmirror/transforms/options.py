"""Options of transforms and predicates, read as Kafka's `ConfigDef` reads them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from sparkmirror.errors import HandledError
from sparkmirror.policy.java_regex import to_python
from sparkmirror.values import Boolean, Choice

BLANKS = "".join(map(chr, range(0x21)))
"""Characters that Java's `String.trim` takes off."""

_COMMA = re.compile(r"[ \t\n\x0b\f\r]*,[ \t\n\x0b\f\r]*")

Options = Mapping[str, Any]
"""Values for all options in a class, defaults included."""


class BadOption(HandledError):
    """An option doesn't fit the others."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason
        super().__init__(f"{name}: {reason}")


class OptionKind(Protocol):
    """Kind of option, with its rule for reading text."""

    def parse(self, text: str) -> object:
        """Return the value in `text`; raise `ValueError` with the reason."""


@dataclass(frozen=True, slots=True)
class Trimmed:
    """Text without the blanks around it; `filled` refuses the empty text."""

    filled: bool = False

    def parse(self, text: str) -> str:
        word = text.strip(BLANKS)
        if self.filled and not word:
            raise ValueError("it is empty: write a text, or take this key out")
        return word


@dataclass(frozen=True, slots=True)
class Items:
    """List with commas; `filled` refuses no items, `named` an empty item."""

    filled: bool = True
    named: bool = True

    def parse(self, text: str) -> tuple[str, ...]:
        word = text.strip(BLANKS)
        items = tuple(_COMMA.split(word)) if word else ()
        if self.filled and not items:
            raise ValueError("it is empty: name at least one")
        if self.named and "" in items:
            raise ValueError("an item between two commas is empty: take the comma out")
        return items


@dataclass(frozen=True, slots=True)
class Pattern:
    """Java's regular expression, kept as text."""

    filled: bool = False

    def parse(self, text: str) -> str:
        word = Trimmed(self.filled).parse(text)
        to_python(word)
        return word


@dataclass(frozen=True, slots=True)
class Option:
    """Option of a transform or a predicate."""

    name: str
    kind: OptionKind
    default: object = None
    required: bool = False


NULL_REPLACED = Option("replace.null.with.default", Boolean(), default=True)
"""Option without effect: data without a schema has no defaults."""

FIELD_SYNTAX = Option("field.syntax.version", Choice(("V1", "V2"), any_case=True), default="V1")
