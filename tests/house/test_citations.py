"""Every page, section and rule that code or docs cite is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.support.links import broken_links, steps_from

ROOT = Path(__file__).parents[2]
CODE = [file for part in ("src", "tests", "bench", "chaos") for file in sorted((ROOT / part).rglob("*.py"))]
FOLDERS = ("docs", "examples", "bench", "chaos", "tests")
PAGES = sorted([*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))])
RULE = re.compile(r"(?<![\w`/])R([1-9]\d?)\b(?!\.)")
SECTION = re.compile(r"`(mm2|exactness)\.md`,? (?:sections? )?(\d+(?:\.\d+)?)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert list(broken_links(page)) == []


def test_a_reader_finds_each_page() -> None:
    """From the README by two links at most."""
    steps = steps_from(ROOT / "README.md")
    assert [str(page.relative_to(ROOT)) for page in PAGES if steps.get(page.resolve(), 9) > 2] == []


def test_a_page_without_a_link_would_be_seen(tmp_path: Path) -> None:
    for name, text in (("a", "[b](b.md)"), ("b", "[a](a.md) [c](c.md#x) [d](https://x/d.md)"), ("c", "# x"), ("d", "")):
        (tmp_path / f"{name}.md").write_text(text)
    assert {page.stem: steps for page, steps in steps_from(tmp_path / "a.md").items()} == {"a": 0, "b": 1, "c": 2}


def test_rules_are_on_their_page() -> None:
    stated = set(re.findall(r"^### R(\d+)", (ROOT / "docs" / "exactness.md").read_text("utf-8"), re.MULTILINE))
    cited = {number for file in CODE for number in RULE.findall(file.read_text("utf-8"))}
    assert cited - stated == set()
    assert cited, "nothing was found: the pattern is wrong"


def test_sections_are_on_their_pages() -> None:
    missing = [
        f"{file.relative_to(ROOT)}: {page}.md {number}"
        for file in CODE
        for page, number in SECTION.findall(file.read_text("utf-8"))
        if not re.search(
            rf"^#+ {re.escape(number)}[ .]", (ROOT / "docs" / f"{page}.md").read_text("utf-8"), re.MULTILINE
        )
    ]
    assert missing == []


def test_pages_that_code_names_exist() -> None:
    names = {page.name for page in PAGES}
    missing = {
        f"{file.relative_to(ROOT)}: {name}"
        for file in CODE
        if file.is_relative_to(ROOT / "src")
        for name in re.findall(r"\b([\w-]+\.md)\b", file.read_text("utf-8"))
        if name not in names
    }
    assert missing == set()


def test_a_broken_link_would_be_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One two\n[here](#one-two) [there](other.md) [nowhere](#three) [out](https://example.com)\n")
    assert list(broken_links(page)) == ["other.md", "#three"]
