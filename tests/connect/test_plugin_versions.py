"""Ranges of versions: what is in them, what is none, and how they are said again, as a real worker says it."""

from __future__ import annotations

import pytest

from sparkmirror.connect.plugin_versions import InvalidRange, VersionRange


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("4.3.1", "[4.3.1,4.3.1]"),
        (" 4.3.1 ", "[4.3.1,4.3.1]"),
        ("[4.3.1]", "[4.3.1,4.3.1]"),
        ("4.3.1.0", "[4.3.1.0,4.3.1.0]"),
        ("4.3.1,5", "[4.3.1,5]"),
        ("[4.0,5.0)", "[4.0,5.0)"),
        ("(,5]", "(,5]"),
        ("(4,)", "(4,)"),
        ("[4.3.1-rc1,)", "[4.3.1-rc1,)"),
        ("[1.0,2.0),[4,5]", "[1.0,2.0),[4,5]"),
        ("latest", ""),
    ],
)
def test_it_is_in(text: str, said: str) -> None:
    assert "4.3.1" in VersionRange(text)
    assert str(VersionRange(text)) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "[,]"),
        ("1.0.0", "[1.0.0,1.0.0]"),
        ("4.3.1-rc1", "[4.3.1-rc1,4.3.1-rc1]"),
        ("a b", "[a b,a b]"),
        ("(4.3.1,5]", "(4.3.1,5]"),
        ("[4,4.3.1)", "[4,4.3.1)"),
        ("[4,4.3.1-SNAPSHOT]", "[4,4.3.1-SNAPSHOT]"),
        ("[4.3.1.1,)", "[4.3.1.1,)"),
        ("[4.3.10,)", "[4.3.10,)"),
        ("latest ", "[latest,latest]"),
    ],
)
def test_it_is_not_in(text: str, said: str) -> None:
    assert "4.3.1" not in VersionRange(text)
    assert str(VersionRange(text)) == said


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[1.0", "Unbounded range: [1.0"),
        ("[2.0,1.0]", "Range defies version ordering: [2.0,1.0]"),
        ("(1,1)", "Range cannot have identical boundaries: (1,1)"),
        ("[1],2", "Only fully-qualified sets allowed in multiple set scenario: [1],2"),
        ("(4.3.1)", "Single version must be surrounded by []: (4.3.1)"),
        ("[1,2],[1.5,3]", "Ranges overlap: [1,2],[1.5,3]"),
    ],
)
def test_it_is_none(text: str, reason: str) -> None:
    with pytest.raises(InvalidRange) as caught:
        VersionRange(text).check()
    assert str(caught.value) == reason
