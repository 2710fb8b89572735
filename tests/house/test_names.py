"""No two classes share a name, private ones included, and no two modules but those about the same thing."""

from __future__ import annotations

from pathlib import Path

from tests.house.names import classes_of_one_name, modules_of_one_name

import sparkmirror

SOURCE = Path(sparkmirror.__file__).parent
TESTS = Path(__file__).parents[1]


def test_no_two_classes_share_a_name() -> None:
    assert classes_of_one_name(SOURCE) == {}


def test_it_would_be_seen(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("class Claim: ...\n")
    (tmp_path / "b.py").write_text("class Claim: ...\nclass Other: ...\n")
    assert classes_of_one_name(tmp_path) == {"Claim": ["a.py", "b.py"]}


def test_the_public_face_has_the_names_of_what_it_stands_for(tmp_path: Path) -> None:
    root = tmp_path / "house"
    for package, text in (("low", ""), ("api", "from house.low.mirror import Mirror as Engine\n")):
        (root / package).mkdir(parents=True)
        (root / package / "mirror.py").write_text(f"{text}class Mirror: ...\nclass {package.title()}: ...\n")
        (root / package / "claims.py").write_text("class Claim: ...\n")
    assert classes_of_one_name(root) == {"Claim": ["api/claims.py", "low/claims.py"]}


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


def test_no_module_of_the_tests_hides_a_package() -> None:
    """pytest puts each directory of tests before the tree's own: `tools.py` in one of them would hide `tools/`."""
    packages = {place.name for place in TESTS.parent.iterdir() if place.is_dir() and any(place.glob("*.py"))}
    assert {"lab", "tools"} <= packages
    assert [file for file in TESTS.rglob("*.py") if file.stem in packages] == []
