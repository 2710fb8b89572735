"""Packages: the lock has the version that was tested of each, within the bounds; the oldest ones can be written."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
OF_EACH_USER = {"pyspark", "gssapi"}
"""Spark is the one that is there, and Kerberos is compiled where its headers are."""


def asked() -> list[Requirement]:
    """All that users may install."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = [
        text
        for name, texts in project["optional-dependencies"].items()
        if name not in ("dev", "lint")
        for text in texts
    ]
    found = [Requirement(text) for text in (*project["dependencies"], *extras)]
    return [item for item in found if item.name not in {"sparkmirror", *OF_EACH_USER}]


def locked() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    return {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines[1:])}


def test_the_lock_has_each_package_within_its_bounds() -> None:
    versions = locked()
    for item in asked():
        assert item.specifier.contains(versions[canonicalize_name(item.name)]), f"make lock: {item}"


def test_the_lock_names_versions_and_no_places() -> None:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()[1:]
    assert all(re.fullmatch(r"[\w.-]+==[\w.+!]+", line) for line in lines)


def test_each_package_has_a_lowest_version() -> None:
    for item in asked():
        assert any(bound.operator == ">=" for bound in item.specifier), item
