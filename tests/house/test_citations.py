"""Every page, section and rule that code or docs cite is there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = [file for part in ("src", "tests", "bench", "chaos") for file in sorted((ROOT / part).rglob("*.py"))]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
RULE = re.compile(r"(?<![\w`/])R([1-9]\d?)\b(?!\.)")
SECTION = re.compile(r"`(mm2|exactness)\.md`,? (?:sections? )?(\d+(?:\.\d+)?)")
LINK = re.compile(r"\]\(([^)#\s]*)(#[^)\s]*)?\)")
HEADING = re.compile(r"^#{1,6} +(.*?)\s*$", re.MULTILINE)
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


@cache
def text_of(page: Path) -> str:
    """A page without its blocks of code."""
    return _FENCED.sub("", page.read_text())


@cache
def anchors(page: Path) -> frozenset[str]:
    """The fragments of a page's headings, as a forge makes them."""
    plain = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading) for heading in HEADING.findall(text_of(page)))
    return frozenset(re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in plain)


def broken_links(page: Path) -> Iterator[str]:
    """Links inside the repository that lead nowhere, as they stand."""
    for target, fragment in LINK.findall(text_of(page)):
        if re.match(r"[a-z]+:", target):
            continue
        file = (page.parent / target).resolve() if target else page
        if not file.exists() or (fragment and file.suffix == ".md" and fragment[1:] not in anchors(file)):
            yield f"{target}{fragment}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert list(broken_links(page)) == []


def test_rules_are_on_their_page() -> None:
    stated = set(re.findall(r"^### R(\d+)", (ROOT / "docs" / "exactness.md").read_text(), re.MULTILINE))
    cited = {number for file in CODE for number in RULE.findall(file.read_text())}
    assert cited - stated == set()
    assert cited, "nothing was found: the pattern is wrong"


def test_sections_are_on_their_pages() -> None:
    missing = [
        f"{file.relative_to(ROOT)}: {page}.md {number}"
        for file in CODE
        for page, number in SECTION.findall(file.read_text())
        if not re.search(rf"^#+ {re.escape(number)}[ .]", (ROOT / "docs" / f"{page}.md").read_text(), re.MULTILINE)
    ]
    assert missing == []


def test_pages_that_code_names_exist() -> None:
    names = {page.name for page in PAGES}
    missing = {
        f"{file.relative_to(ROOT)}: {name}"
        for file in CODE
        if file.is_relative_to(ROOT / "src")
        for name in re.findall(r"\b([\w-]+\.md)\b", file.read_text())
        if name not in names
    }
    assert missing == set()


def test_a_broken_link_would_be_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One two\n[here](#one-two) [there](other.md) [nowhere](#three) [out](https://example.com)\n")
    assert list(broken_links(page)) == ["other.md", "#three"]
