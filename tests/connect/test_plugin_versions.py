"""Ranges of versions: what is in them, what is none, and how they are said again, as maven-artifact 3.9 has it."""

from __future__ import annotations

import pytest
from tests.connect.in_memory_api import in_memory_api
from tests.connect.rest_cases import connector

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
        ("[4.3.1,4.3.1]", "[4.3.1,4.3.1]"),
        ("4.3.1-final", "[4.3.1-final,4.3.1-final]"),
        ("4.3.1.release", "[4.3.1.release,4.3.1.release]"),
        ("(,)", "(,)"),
        ("[,]", "[,]"),
        ("(,4.3.1],[5,)", "(,4.3.1],[5,)"),
        ("[4.3.1-cr1,4.3.1b]", "[4.3.1-cr1,4.3.1b]"),
        ("[4.0-rc1,4.3.1-foo]", "[4.0-rc1,4.3.1-foo]"),
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
        ("(,4.3.1a1]", "(,4.3.1a1]"),
        ("(,4.3.1-m2]", "(,4.3.1-m2]"),
        ("[4.3.1-sp,)", "[4.3.1-sp,)"),
        ("[1.0,1]", "[1.0,1]"),
        ("[" + "9" * 5000 + ",)", "[" + "9" * 5000 + ",)"),
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
        ("(1,1)", "Range defies version ordering: (1,1)"),
        ("[1,1)", "Range defies version ordering: [1,1)"),
        ("(1.0,1)", "Range defies version ordering: (1.0,1)"),
        ("[,1],[,2]", "Ranges overlap: [,1],[,2]"),
        ("[1,2)x", "Only fully-qualified sets allowed in multiple set scenario: [1,2)x"),
        ("[1],2", "Only fully-qualified sets allowed in multiple set scenario: [1],2"),
        ("(4.3.1)", "Single version must be surrounded by []: (4.3.1)"),
        ("[1,2],[1.5,3]", "Ranges overlap: [1,2],[1.5,3]"),
    ],
)
def test_it_is_none(text: str, reason: str) -> None:
    with pytest.raises(InvalidRange) as caught:
        VersionRange(text).check()
    assert str(caught.value) == reason


@pytest.mark.parametrize("version", ["${file:/s:pw}", "[${file:/s:pw}"])
@pytest.mark.parametrize("key", ["connector.plugin.version", "key.converter.plugin.version"])
def test_what_a_reference_stands_for_is_not_said(key: str, version: str) -> None:
    """Whoever may ask for a check must not read what the providers can."""
    with in_memory_api(lambda text: text.replace("${file:/s:pw}", "hunter2")) as api:
        config = {**connector("Source", "source:9092", "target:9092"), "name": "shop", key: version}
        status, answer = api.ask("PUT", "/connector-plugins/MirrorSource/config/validate", config)
    assert status in (200, 400)
    assert "hunter2" not in str(answer)
