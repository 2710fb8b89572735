"""The doctor's rules at the end of `docs/runbook.md`: written there, when this is run."""

from __future__ import annotations

from pathlib import Path

from tools.runbook_rules import BEGIN, page

PAGE = Path(__file__).parents[2] / "docs" / "runbook.md"
COMMAND = "python -m tests.doctor.doctor_page"


def whole_page() -> str:
    """The runbook with the rules as they are."""
    before, _, _ = PAGE.read_text().partition(BEGIN)
    return f"{before}{BEGIN}{page().removeprefix(BEGIN)}"


if __name__ == "__main__":
    PAGE.write_text(whole_page())
