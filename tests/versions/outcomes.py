"""What came of each cell of the matrix, and of each upgrade: kept in the checkout's cache, a file for each trial."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from sparkmirror import __version__

DIRECTORY = Path(__file__).parents[2] / ".cache" / "versions"

WORKS, REFUSED, FAILS = "works", "refused", "fails"
CELLS = (
    "lint --connect",
    "run --once",
    "two kills",
    "groups",
    "translate",
    "verify",
    "losses",
    "next to MirrorMaker 2",
)
"""In the order of the table; each pair has those that it was tried for."""

_WORDS = 600
"""Characters kept of what a failing cell says."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A source and a target, by the names of `cluster_of`."""

    source: str
    target: str

    @property
    def title(self) -> str:
        """What its trial is called."""
        return f"{self.source} to {self.target}"


class Outcomes:
    """Of one trial, from one run: each cell is written down as soon as it ends."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._cells: dict[str, dict[str, str]] = {}
        self._failed: list[str] = []
        self._write()

    @contextmanager
    def cell(self, name: str, outcome: str = WORKS) -> Iterator[list[str]]:
        """Do what is in the `with`: `outcome` is what comes of it unless it fails.

        The list takes words for the table's reader. A failure ends the `with`, not the test: `finish` does.
        """
        words: list[str] = []
        began = time.monotonic()
        try:
            yield words
        except Exception as error:
            outcome, words = FAILS, [str(error)[-_WORDS:] or type(error).__name__]
            self._failed.append(f"{name}: {error}")
        self._cells[name] = {"outcome": outcome, "says": "\n".join(words)}
        print(f"{self._title}: {name}: {outcome}, {time.monotonic() - began:.0f} s")
        self._write()

    def finish(self) -> None:
        """Fail the test if a cell has failed."""
        assert not self._failed, "\n\n".join(self._failed)

    def _write(self) -> None:
        DIRECTORY.mkdir(parents=True, exist_ok=True)
        content = {"date": str(date.today()), "sparkmirror": __version__, "cells": self._cells}
        _file(self._title).write_text(json.dumps(content, indent=1))


def recorded(title: str) -> dict[str, dict[str, str]]:
    """Return the cells that were written down of a trial, each with its outcome and what it says."""
    try:
        cells: dict[str, dict[str, str]] = json.loads(_file(title).read_text())["cells"]
    except OSError:
        return {}
    return cells


def _file(title: str) -> Path:
    return DIRECTORY / f"{title}.json".replace(" ", "_")
