"""Requested versions: what is in them, what is none, and how they are said again."""

from __future__ import annotations

import pytest
from tests.support.in_memory_api import in_memory_api
from tests.support.rest_cases import connector

from sparkmirror.connect.plugin_versions import InvalidRange, VersionRange


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("4.3.1", "[4.3.1,4.3.1]"),
        ("[4.3.1]", "[4.3.1]"),
        ("4.3.1.0", "[4.3.1.0,4.3.1.0]"),
        ("[4.0,5.0)", "[4.0,5.0)"),
        ("(,5]", "(,5]"),
        ("(4,)", "(4,)"),
        ("[4.3.1-rc1,)", "[4.3.1-rc1,)"),
        ("[4.3.1,4.3.1]", "[4.3.1,4.3.1]"),
        ("[ 4.0 , 4.3.1 ]", "[ 4.0 , 4.3.1 ]"),
        ("(,)", "(,)"),
        ("latest", "[latest,latest]"),
    ],
)
def test_it_is_in(text: str, said: str) -> None:
    VersionRange(text).check()
    assert "4.3.1" in VersionRange(text)
    assert str(VersionRange(text)) == said


@pytest.mark.parametrize(
    "text",
    ["1.0.0", "4.3.1-rc1", "(4.3.1,5]", "[4,4.3.1)", "[4.3.1.1,)", "[4.3.10,)", "(,4.3.1-rc2]", "[" + "9" * 99 + ",)"],
)
def test_it_is_not_in(text: str) -> None:
    VersionRange(text).check()
    assert "4.3.1" not in VersionRange(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", "a b", "4.3.1-foo", "[1.0", "[2.0,1.0]", "(1,1)", "[1,1)", "(1.0,1)", "[1,2)x", "(4.3.1)", "[1],2"),
        *("[4.0,5.0),[6,7]", "[4.3.*]", "[=4.3.1]", "[4.3.1,4.4,4.5]", "[" + "9" * 5000 + ",)"),
    ],
)
def test_it_is_none(text: str) -> None:
    with pytest.raises(InvalidRange) as caught:
        VersionRange(text).check()
    assert str(caught.value) == f"no version and no range such as [4.0,5.0): {text}"
    assert "4.3.1" not in VersionRange(text)


@pytest.mark.parametrize("version", ["${file:/s:pw}", "[${file:/s:pw}"])
@pytest.mark.parametrize("key", ["connector.plugin.version", "key.converter.plugin.version"])
def test_what_a_reference_stands_for_is_not_said(key: str, version: str) -> None:
    """Whoever may ask for a check must not read what the providers can."""
    with in_memory_api(lambda text: text.replace("${file:/s:pw}", "hunter2")) as api:
        config = {**connector("Source", "source:9092", "target:9092"), "name": "shop", key: version}
        status, answer = api.ask("PUT", "/connector-plugins/MirrorSource/config/validate", config)
    assert status in (200, 400)
    assert "hunter2" not in str(answer)
