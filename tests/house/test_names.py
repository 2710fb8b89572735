"""No two classes share a name, private ones included, and no two modules but those about the same thing."""

from __future__ import annotations

from pathlib import Path

from tests.house.names import classes_of_one_name, modules_of_one_name

import sparkmirror

SOURCE = Path(sparkmirror.__file__).parent


def test_no_two_classes_share_a_name() -> None:
    assert classes_of_one_name(SOURCE) == {}


def test_it_would_be_seen(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("class Claim: ...\n")
    (tmp_path / "b.py").write_text("class Claim: ...\nclass Other: ...\n")
    assert classes_of_one_name(tmp_path) == {"Claim": ["a.py", "b.py"]}


def test_modules_of_one_name_are_about_the_same_thing() -> None:
    assert modules_of_one_name(SOURCE) == {}


def test_modules_that_share_a_name_would_be_seen(tmp_path: Path) -> None:
    root = tmp_path / "house"
    for package in ("low", "high", "cli"):
        (root / package).mkdir(parents=True)
    for name in ("claims", "records", "topics"):
        (root / "low" / f"{name}.py").write_text("")
    (root / "high" / "claims.py").write_text("from house.low.claims import Claim\n")
    (root / "high" / "records.py").write_text("from house.low import claims\n")
    (root / "cli" / "topics.py").write_text("")
    assert modules_of_one_name(root) == {"records": ["high/records.py", "low/records.py"]}
