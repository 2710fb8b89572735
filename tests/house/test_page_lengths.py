"""Pages stay short: words of the README and of all docs, width of prose lines, length of cells in tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FOLDERS = ("docs", "examples", "bench", "chaos", "tests")
PAGES = sorted(
    [
        *(ROOT / name for name in ("README.md", "TESTING.md", "CONTRIBUTING.md")),
        *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md")),
    ]
)
README_WORDS = 800
DOCS_WORDS = 78_500
"""A ratchet: lower it when pages become shorter. The aim is 75,000."""
WIDTH, CELL = 120, 300

GENERATED = {
    "docs/configuration.md",
}
"""Pages, or most of a page, that programs write."""
NOT_YET_WRAPPED = {
    "docs/deploy/air-gapped.md",
    "docs/deploy/aws.md",
    "docs/deploy/aws_manual.md",
    "docs/deploy/images.md",
    "docs/deploy/kubernetes.md",
    "docs/deploy/vm.md",
}
"""Pages with longer lines: take a page out when it is wrapped, put none in."""
LONG_CELLS: set[str] = set()
"""Pages with a cell that should be a paragraph or a list: take a page out when it has none, put none in."""


def words(text: str) -> int:
    """The words of a text: whatever has a letter or a digit between blanks."""
    return len(re.findall(r"\S*\w\S*", text))


def prose(text: str) -> list[str]:
    """The lines of a page outside of blocks of code."""
    return re.sub(r"^( *)```.*?^\1```", "", text, flags=re.MULTILINE | re.DOTALL).splitlines()


def long_lines(text: str) -> Iterator[str]:
    for line in prose(text):
        if len(line) > WIDTH and not line.lstrip().startswith("|"):
            yield line


def long_cells(text: str) -> Iterator[str]:
    for line in prose(text):
        if line.lstrip().startswith("|"):
            yield from (cell for cell in re.split(r"(?<!\\)\|", line) if len(cell.strip()) > CELL)


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def test_the_readme_is_one_screen_or_two() -> None:
    assert words((ROOT / "README.md").read_text("utf-8")) <= README_WORDS


def test_the_docs_become_no_longer() -> None:
    assert sum(words(page.read_text("utf-8")) for page in DOCS.rglob("*.md")) <= DOCS_WORDS


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_lines_and_cells_are_short(page: Path) -> None:
    text = page.read_text("utf-8")
    if name(page) not in GENERATED:
        assert bool(list(long_lines(text))) == (name(page) in NOT_YET_WRAPPED), list(long_lines(text))[:3]
        assert bool(list(long_cells(text))) == (name(page) in LONG_CELLS), list(long_cells(text))[:3]


def test_the_lists_name_pages() -> None:
    assert (GENERATED | NOT_YET_WRAPPED | LONG_CELLS) - {name(page) for page in PAGES} == set()


def test_what_is_too_long_would_be_seen() -> None:
    line, cell = "word " * 30, "word " * 70
    text = f"{line}\n| a | {cell}|\n```\n{line}\n```\n"
    assert list(long_lines(text)) == [line]
    assert [each.strip() for each in long_cells(text)] == [cell.strip()]
    assert words("one, 2 | --- three") == 3
