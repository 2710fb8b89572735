"""Wide values are made by keyword: dataclasses are keyword-only, `NamedTuple`s positional on hot paths only."""

from __future__ import annotations

from pathlib import Path

from tests.house.wide_values import positional

import sparkmirror

SOURCE = Path(sparkmirror.__file__).parent


def test_wide_values_are_made_by_keyword() -> None:
    assert positional(SOURCE) == []


def test_a_call_by_position_would_be_seen(tmp_path: Path) -> None:
    fields = "".join(f"    {name}: int\n" for name in "abcde")
    (tmp_path / "sync").mkdir()
    (tmp_path / "wire").mkdir()
    (tmp_path / "sync" / "a.py").write_text(
        f"@dataclass(frozen=True)\nclass Loose:\n{fields}\n"
        f"@dataclass(frozen=True, kw_only=True)\nclass Tight:\n{fields}\n"
        f"class Cold(NamedTuple):\n{fields}\n"
        "Cold(1, 2, 3, 4, 5)\nCold(a=1, b=2, c=3, d=4, e=5)\n"
    )
    (tmp_path / "wire" / "b.py").write_text(f"class Hot(NamedTuple):\n{fields}\nHot(1, 2, 3, 4, 5)\n")
    assert [fault.removeprefix(f"{tmp_path}/") for fault in positional(tmp_path)] == [
        "sync/a.py:2 Loose",
        "sync/a.py:24 Cold",
    ]
