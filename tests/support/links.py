"""Links between the pages of this repository, and the headings that they lead to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

LINK = re.compile(r"\]\(([^)#\s]*)(#[^)\s]*)?\)")
HEADING = re.compile(r"^#{1,6} +(.*?)\s*$", re.MULTILINE)
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


@cache
def text_of(page: Path) -> str:
    """A page without its blocks of code."""
    return _FENCED.sub("", page.read_text("utf-8"))


@cache
def anchors(page: Path) -> frozenset[str]:
    """The fragments of a page's headings, as a forge makes them."""
    plain = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading) for heading in HEADING.findall(text_of(page)))
    return frozenset(re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in plain)


def _links(page: Path) -> Iterator[tuple[str, str, Path]]:
    """Target, fragment and file of each link that stays inside the repository."""
    for target, fragment in LINK.findall(text_of(page)):
        if not re.match(r"[a-z]+:", target):
            yield target, fragment, (page.parent / target).resolve() if target else page


def broken_links(page: Path) -> Iterator[str]:
    """Links inside the repository that lead nowhere, as they stand."""
    for target, fragment, file in _links(page):
        if not file.exists() or (fragment and file.suffix == ".md" and fragment[1:] not in anchors(file)):
            yield f"{target}{fragment}"


def steps_from(start: Path) -> dict[Path, int]:
    """How many links lead from a page to each page that can be reached from it."""
    steps, waiting = {start.resolve(): 0}, [start.resolve()]
    for page in waiting:
        for target, _, file in _links(page):
            if target.endswith(".md") and file.exists() and file not in steps:
                steps[file] = steps[page] + 1
                waiting.append(file)
    return steps
