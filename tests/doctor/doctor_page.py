"""`docs/doctor.md`: the page of the rules, and the table of planted faults. Printed, when it is run."""

from __future__ import annotations

from planted import FAULTS
from planted_flows import Fault

from sparkmirror.doctor.findings import Finding, diagnose
from sparkmirror.doctor.page import page

COMMAND = "PYTHONPATH=src:tests/engine python tests/doctor/doctor_page.py > docs/doctor.md"


def first_of(fault: Fault) -> Finding | None:
    """The first finding."""
    now, before = fault.snapshots
    return next(iter(diagnose(now, before)), None)


def whole_page() -> str:
    """The page with the table."""
    return page() + "\n" + "\n".join(_table()) + "\n"


def _table() -> list[str]:
    rows, right = [], 0
    for fault in FAULTS:
        now, before = fault.snapshots
        rules = list(dict.fromkeys(finding.rule for finding in diagnose(now, before)))
        is_right = bool(rules) and rules[0] == fault.rule
        right += is_right
        shown = ", ".join(f"`{rule}`" for rule in rules[1:5])
        rows.append(
            f"| {fault.words} | `{rules[0] if rules else ''}` | {'yes' if is_right else fault.rule} | {shown} |"
        )
    return [
        "## Planted faults",
        "",
        f"{len(FAULTS)} faults, each planted with its consequences; the right finding is first in {right}.",
        "",
        "| what went wrong | first finding | right | and then |",
        "|---|---|---|---|",
        *rows,
        "",
        f"This page is made from the code and its test: `{COMMAND}`.",
    ]


if __name__ == "__main__":
    print(whole_page(), end="")
