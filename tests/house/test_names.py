"""No two classes share a name, private ones included: a search finds the one that is meant."""

from __future__ import annotations

from pathlib import Path

from tests.house.names import classes_of_one_name

import sparkmirror

SOURCE = Path(sparkmirror.__file__).parent


def test_no_two_classes_share_a_name() -> None:
    assert classes_of_one_name(SOURCE) == {}


def test_it_would_be_seen(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("class Claim: ...\n")
    (tmp_path / "b.py").write_text("class Claim: ...\nclass Other: ...\n")
    assert classes_of_one_name(tmp_path) == {"Claim": ["a.py", "b.py"]}
