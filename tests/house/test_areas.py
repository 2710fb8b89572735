"""`make test-full AREA=PACKAGE` finds the tests of each package."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.areas import paths

import sparkmirror

PACKAGES = sorted(file.parent.name for file in Path(sparkmirror.__file__).parent.glob("*/__init__.py"))


@pytest.mark.parametrize("package", PACKAGES)
def test_each_package_has_tests(package: str) -> None:
    assert paths(package)
    assert [path for path in paths(package) if not path.exists()] == []


def test_a_name_that_is_no_package() -> None:
    with pytest.raises(KeyError):
        paths("offsets")
