"""`make test-full AREA=PACKAGE` finds the tests of each package; tests/README.md names the files there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.areas import PAGE, TESTS, files_by_area, page, paths

import sparkmirror

PACKAGES = sorted({file.parent.name for file in Path(sparkmirror.__file__).parent.glob("*/**/[a-z]*.py")})
"""Packages with modules; a floor of packages has none."""


@pytest.mark.parametrize("package", PACKAGES)
def test_each_package_has_tests(package: str) -> None:
    assert paths(package)
    assert [path for path in paths(package) if not path.exists()] == []


def test_a_name_that_is_no_package() -> None:
    with pytest.raises(KeyError):
        paths("offsets")


def test_the_page_has_the_files_that_there_are() -> None:
    assert PAGE.read_text("utf-8") == page(), "python tests/areas.py"
    areas = re.findall(r"^### (.+)\n\n(?:.+\n)+\n[^#\n]", page(), re.MULTILINE)
    assert areas == sorted(files_by_area(), key=areas.index), "each area has its files, and a text"


def test_what_the_page_cites_is_there() -> None:
    """Files by their paths, and tests by their names."""
    text = PAGE.read_text("utf-8")
    files = {path for path in re.findall(r"`(tests/[a-z0-9_/]+(?:\.py)?)`", text) if not (TESTS.parent / path).exists()}
    assert files == set()
    names = re.findall(r"`(test_\w+)`", text)
    assert names
    code = "".join(path.read_text("utf-8") for path in TESTS.glob("*/**/test_*.py"))
    assert {name for name in names if f"def {name}(" not in code} == set()
