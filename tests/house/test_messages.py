"""Messages of the program and sentences of the pages name the actor, deny once, and say `after` of an order."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.house.language import python_files
from tests.house.messages import begins_with_a_relative_word, faults, messages, prose

import sparkmirror

SOURCE = Path(sparkmirror.__file__).parent
ROOT = Path(__file__).parents[2]
FOLDERS = ("bench", "chaos", "examples", "tests")
"""Folders with a page of their own."""
PAGES = [
    *(ROOT / name for name in ("README.md", "TESTING.md", "CONTRIBUTING.md")),
    *(ROOT / folder / "README.md" for folder in FOLDERS),
    ROOT / "tests" / "conformance.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]


@pytest.mark.parametrize("package", sorted({file.parent for file in python_files(SOURCE)}), ids=lambda path: path.name)
def test_messages(package: Path) -> None:
    assert [
        f"{file.relative_to(SOURCE)}:{line} {fault}"
        for file in sorted(package.glob("*.py"))
        for line, text in messages(file)
        for fault in faults(text)
    ] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages(page: Path) -> None:
    text = page.read_text("utf-8")
    assert list(faults(prose(text))) == []
    assert not begins_with_a_relative_word(text)


@pytest.mark.parametrize(
    "text",
    [
        "somebody else writes to it",
        "the broker throttles us",
        "grant our principal READ on it",
        "copied behind it",
        "the source's records behind offset 7",
        "it goes on behind the old ones",
        "nothing that is not there",
        "no topic which does not match",
        "a file that is not unknown",
    ],
)
def test_faults_are_seen(text: str) -> None:
    assert len(list(faults(text))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "partitions that are far behind",
        "{} s behind, {} s promised",
        "the replicas lag behind the leader",
        "8 offsets behind (0 s ago)",
        "the clock of this host is behind.",
        "not until the next start",
        "each region of US is a flow",
        "a look-behind of several lengths",
    ],
)
def test_good_sentences_pass(text: str) -> None:
    assert list(faults(text)) == []


def test_strings_of_a_module_are_found(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text(
        '"""What is no message."""\n'
        'log.warning("lease not held: %s", reason)\n'
        'raise Refused(f"flow {name}: {error}; has the mirror run?")\n'
        'key = "tasks.max"\n'
    )
    assert list(messages(file)) == [(2, "lease not held: %s"), (3, "flow {}: {}; has the mirror run?")]


def test_first_sentences_of_pages(tmp_path: Path) -> None:
    assert begins_with_a_relative_word("# Lint\n\nWhat lint does.\n")
    assert begins_with_a_relative_word("# Lint\n\n```\nsparkmirror lint\n```\n\nwhere it looks.\n")
    assert not begins_with_a_relative_word("# Lint\n\n```\nwhat it prints\n```\n\nLint reads files.\n")
    assert not begins_with_a_relative_word("# Questions\n\nWhat does it cost?\n")
