"""The tables of `docs/metrics.md`, from a scrape that has everything.

`PYTHONPATH=src:tests/engine python -m tests.metrics.metric_tables` writes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.metrics.boards import ABSENT
from tests.metrics.rich_snapshot import RICH

from sparkmirror.metrics.own import HighWater, own_families
from sparkmirror.metrics.profile import Profile
from sparkmirror.metrics.profiles import add_profiles
from sparkmirror.metrics.series import Families

_HEAD = "| name | type | labels | meaning |\n|---|---|---|---|"


def tables() -> str:
    """All of them, each under its heading."""
    parts = ["## Names that are not here", "", "| name | why, and what to ask for |", "|---|---|"]
    parts += [f"| {', '.join(f'`{name}`' for name in names.split(', '))} | {why} |" for names, why in ABSENT.items()]
    parts += ["", "## sparkmirror's names", "", _HEAD, *_rows(own_families(RICH, HighWater()))]
    for profile in Profile:
        families = Families()
        add_profiles(families, RICH, [profile])
        parts += ["", f"## Profile `{profile.value}`", "", _HEAD, *_rows(families)]
    return "\n".join(parts) + "\n"


def _rows(families: Families) -> Iterator[str]:
    for family in families.values():
        names = (name for _, text, _ in family.samples for name in re.findall(r'(\w+)="', text) if name != "le")
        suffixes = {suffix for suffix, _, _ in family.samples if suffix and family.kind == "summary"}
        name = family.name + (suffixes.pop() if suffixes else "")
        if family.samples:
            yield f"| `{name}` | {family.kind} | {', '.join(dict.fromkeys(names))} | {family.help} |"


if __name__ == "__main__":
    print(tables(), end="")
