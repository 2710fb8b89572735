"""Each file, test, module and function of ours that a page cites in backticks is there."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.house.cited_names import Names

import sparkmirror

ROOT = Path(__file__).parents[2]
PACKAGE = Path(sparkmirror.__file__).parent
PAGES = [
    *(ROOT / name for name in ("README.md", "TESTING.md", "CONTRIBUTING.md")),
    *(ROOT / folder / "README.md" for folder in ("bench", "chaos", "tests")),
    ROOT / "tests" / "conformance.md",
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.parent.name != "decisions"),
]
"""Without the decisions, which tell what was there in their time."""
FOLDERS = ("src", "lab", "tools", "tests", "bench", "chaos", "deploy", "examples")
NAMES = Names(ROOT, PACKAGE, FOLDERS, ROOT / "docs" / "configuration.md")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_cites_is_there(page: Path) -> None:
    assert list(NAMES.unknown(page)) == []


@pytest.mark.parametrize(
    "cited",
    [
        "`pump/partition.py` (`acknowledge`), `pump/partition.py`, `PartitionCopy.take`",
        "`tests/house/names.py`, `names.py`, `tests/AREA/test_FILE.py`, `mirror/sync/topic_*.py`, `/etc/theirs.py`",
        "`tests/house/test_names.py::test_it_would_be_seen`, `test_names.test_it_would_be_seen`, `test_names.py`",
        "`::test_it_would_be_seen`, `test_names`, `test_it_would_be_seen`",
        "`sparkmirror.pump.partition.PartitionCopy`, `sparkmirror.frames`, `sparkmirror.on.expired`",
    ],
)
def test_what_is_there_passes(cited: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# Page\n\n{cited}\n")
    assert list(NAMES.unknown(page)) == []


@pytest.mark.parametrize(
    ("cited", "unknown"),
    [
        ("`pump/partitions.py`", "pump/partitions.py"),
        ("`pump/partition.py` (`settle`)", "pump/partition.py: settle"),
        ("`pump/partition.py`, `PartitionCopy.settle`", "pump/partition.py: settle"),
        ("`tests/house/test_names.py::test_of_nothing`", "tests/house/test_names.py::test_of_nothing"),
        ("`test_language.test_it_would_be_seen`", "test_language.test_it_would_be_seen"),
        ("`test_of_nothing`", "test_of_nothing"),
        ("`sparkmirror.pump.partition.Nothing`", "sparkmirror.pump.partition.Nothing"),
        ("`sparkmirror.nothing.of.the.kind`", "sparkmirror.nothing.of.the.kind"),
    ],
)
def test_what_is_not_there_would_be_seen(cited: str, unknown: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# Page\n\n{cited}\n")
    assert list(NAMES.unknown(page)) == [unknown]
