"""Families of series, and their text in Prometheus' exposition format 0.0.4."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def labels(**pairs: str | int) -> str:
    """Return labels as in the exposition format, without braces."""
    return ",".join(f'{name}="{str(value).translate(_ESCAPES)}"' for name, value in pairs.items())


@dataclass(slots=True)
class Family:
    """A metric with its series; a histogram's samples carry their suffix."""

    name: str
    kind: str
    """`counter`, `gauge`, `histogram` or `summary`."""
    help: str
    samples: list[tuple[str, str, float]] = field(default_factory=list)
    """Samples: the name's suffix, labels as text, value."""

    def add(self, label_text: str, value: float | None, suffix: str = "") -> None:
        """Add a sample; add none for `None`, which means "not known"."""
        if value is not None:
            self.samples.append((suffix, label_text, value))


class Families(Mapping[str, Family]):
    """A scrape's families, by name, in order of declaration."""

    def __init__(self) -> None:
        self._families: dict[str, Family] = {}

    def __getitem__(self, name: str) -> Family:
        return self._families[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._families)

    def __len__(self) -> int:
        return len(self._families)

    def declare(self, name: str, kind: str, help_text: str) -> Family:
        """Return the family with this name; declare the family if it is new.

        A name that two profiles share is declared once.
        """
        return self._families.setdefault(name, Family(name, kind, help_text))


def exposition(families: Iterable[Family]) -> bytes:
    """Return a scrape's text; families without samples are left out."""
    lines: list[str] = []
    for family in families:
        if not family.samples:
            continue
        lines.append(f"# HELP {family.name} {family.help}\n# TYPE {family.name} {family.kind}")
        name = family.name
        lines.extend(
            f"{name}{suffix}{{{text}}} {_number(value)}" if text else f"{name}{suffix} {_number(value)}"
            for suffix, text, value in family.samples
        )
    lines.append("")
    return "\n".join(lines).encode()


def _number(value: float) -> str:
    if isinstance(value, int):
        return str(value)
    if math.isfinite(value):
        return repr(value)
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
