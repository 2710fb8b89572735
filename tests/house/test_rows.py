"""Rows of `make test` have each test once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from tests.rows import ALONE, CALM, ENGINE, REAL, STANDALONE, TESTS, TIMED, TIMELESS, alone, rows

FILES = {str(file) for file in TESTS.glob("*/test_*.py")} | {str(file) for file in TESTS.glob("deploy/node/test_*.py")}


def files_of(command: list[str], files: set[str]) -> set[str]:
    """Those that pytest would look into."""
    paths = [argument for argument in command if argument.startswith("/")]
    ignored = {argument.removeprefix("--ignore=") for argument in command if argument.startswith("--ignore=")}
    return {file for file in files - ignored if any(file == path or file.startswith(f"{path}/") for path in paths)}


@pytest.mark.parametrize("full", [False, True])
def test_each_file_is_in_one_row_with_and_without_brokers(full: bool) -> None:
    left_out = {file for file in FILES if full and Path(file).relative_to(TESTS).parts[0] in {"versions", "deploy"}}
    files = FILES - left_out
    real, others = Counter[str](), Counter[str]()
    commands = [part.arguments for row in rows(full=full) for part in row if part.arguments != list(STANDALONE)]
    for command in commands:
        marks = command[command.index("-m") + 1] if "-m" in command else ""
        if full:
            marks = marks.removesuffix(f"not {ALONE}").removesuffix(" and ")
        for count, wanted in ((real, f"({REAL})"), (others, f"not ({REAL})")):
            if marks in {"", wanted}:
                count.update(files_of(command, FILES))
    assert {*real} == {*others} == files
    assert max(others.values()) == max(real.values()) == 1


def test_what_runs_alone_is_in_no_row() -> None:
    for row in rows(full=True):
        for part in row:
            assert part.arguments[-1].endswith(f"not {ALONE}") or part.arguments == list(STANDALONE)
    *_, mark = last = alone()
    assert mark == ALONE
    marked = {file for file in FILES if f"mark.{ALONE}" in Path(file).read_text("utf-8")}
    assert marked
    assert marked <= files_of(last, FILES)


def test_chosen_files_and_directories_are_there() -> None:
    assert all(Path(file).is_file() for file in (*CALM, *TIMED))
    assert all(Path(directory).is_dir() for directory in TIMELESS)
    assert str(ENGINE) not in TIMELESS
