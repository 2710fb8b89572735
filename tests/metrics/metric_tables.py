"""The tables of `docs/metrics.md`, from a scrape that has everything.

`PYTHONPATH=src:tests/engine python -m tests.metrics.metric_tables` writes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tests.metrics.rich_snapshot import RICH
from tests.support.boards import ABSENT

from sparkmirror.look.metrics.own import HighWater, own_families
from sparkmirror.look.metrics.profile import Profile
from sparkmirror.look.metrics.profiles import add_profiles
from sparkmirror.web.series import Families

_HEAD = "| names | type | labels | meaning |\n|---|---|---|---|"
_PROFILES_HEAD = """\
A name without a type is a gauge.
The label *client id* is `clientId` with the profile `aws`, `clientid` with `strimzi`, else `client_id`.

| names | profiles | type | labels | meaning |
|---|---|---|---|---|"""
_OWN = "A name without a type is a gauge. Each has the label `flow`, but for those of the *process*."
_CELL = 300
"""Most characters of a cell."""


def tables() -> str:
    """All of them, each under its heading."""
    parts = ["## Names that are not here", "", "| name | why, and what to ask for |", "|---|---|"]
    parts += [f"| {', '.join(f'`{name}`' for name in names.split(', '))} | {why} |" for names, why in ABSENT.items()]
    parts += [
        "",
        "## sparkmirror's names",
        "",
        _OWN,
        "",
        _HEAD,
        *_rows(_own()),
    ]
    parts += ["", "## The profiles' names", "", _PROFILES_HEAD, *_rows(_of_profiles())]
    return "\n".join(parts) + "\n"


def _own() -> Iterator[tuple[str, tuple[str, ...]]]:
    """sparkmirror's own names, with the label `flow` left out."""
    for name, (kind, labels, meaning) in _facts(own_families(RICH, HighWater())):
        first, _, others = labels.partition(", ")
        told = others if first == "flow" else f"*process*: {labels}".removesuffix(": ")
        yield name, (kind, told, meaning)


def _of_profiles() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Names of all profiles, with the profiles that have them in common."""
    profiles: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for profile in Profile:
        families = Families()
        add_profiles(families, RICH, [profile])
        for name, (kind, labels, meaning) in _facts(families):
            client = re.sub(r"client_?id", "*client id*", labels, flags=re.IGNORECASE)
            profiles.setdefault((name, (kind, client, meaning)), []).append(f"`{profile.value}`")
    for (name, facts), having in profiles.items():
        yield name, ("all" if len(having) == len(Profile) else ", ".join(having), *facts)


def _facts(families: Families) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each family's name, and its type, labels and meaning."""
    for family in families.values():
        labels = (name for _, text, _ in family.samples for name in re.findall(r'(\w+)="', text) if name != "le")
        suffixes = {suffix for suffix, _, _ in family.samples if suffix and family.kind == "summary"}
        meaning = re.sub(r"^MirrorMaker 2's [a-z-]+\.$", "MirrorMaker 2's metric of that name.", family.help)
        if family.samples:
            name = family.name + (suffixes.pop() if suffixes else "")
            yield name, (family.kind.replace("gauge", ""), ", ".join(dict.fromkeys(labels)), meaning)


def _rows(names: Iterable[tuple[str, tuple[str, ...]]]) -> Iterator[str]:
    """Rows of names that have all facts in common, as many names in each as a cell takes."""
    cells: dict[tuple[str, ...], list[str]] = {}
    for name, facts in names:
        cell = cells.setdefault(facts, [f"`{name}`"])
        if len(cell[-1]) + len(name) + 4 > _CELL:
            cell.append(f"`{name}`")
        elif f"`{name}`" not in cell[-1].split(", "):
            cell[-1] += f", `{name}`"
    for facts, cell in cells.items():
        yield from (f"| {each} | {' | '.join(facts)} |" for each in cell)


if __name__ == "__main__":
    print(tables(), end="")
