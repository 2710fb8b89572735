"""Plugin of pytest that writes the names of failed tests to a file, a line each."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

FILE = "SPARKMIRROR_FAILED_TESTS"
"""Variable with the path of the file. Each process of a run appends to it."""


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        with Path(os.environ[FILE]).open("a") as file:
            file.write(f"{report.nodeid}\n")


def failed_tests(file: Path) -> list[str]:
    """Names in the file, each once."""
    return list(dict.fromkeys(file.read_text().splitlines()))
