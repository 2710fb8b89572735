"""A flow's patterns that match nothing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UnmatchedPattern:
    """A flow's pattern that matches nothing at the source."""

    key: str
    """Setting: `topics`, `topics.exclude` or `groups`."""
    pattern: str
    fault: str = ""
    """Fault in the spelling; empty without a fault."""
    nearest: tuple[str, ...] = ()
    """Similar names at the source."""

    @property
    def hint(self) -> str:
        """Fault and nearest names; empty without either."""
        meant = f"did you mean {', '.join(self.nearest)}?" if self.nearest else ""
        return "; ".join(filter(None, (self.fault, meant)))

    @property
    def words(self) -> str:
        """Setting, pattern and hint."""
        return f"{self.key} = {self.pattern}" + (f" ({self.hint})" if self.hint else "")
