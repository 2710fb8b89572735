"""`docs/configuration.md` says what the code does."""

from __future__ import annotations

from pathlib import Path

from tools.configuration_page import reference

from sparkmirror.config.known_keys import CLIENT, CONNECT, CONNECTOR, CONNECTOR_BASE
from sparkmirror.config.originals import CONNECTOR_NAMES

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"
DEFINITIONS = Path(__file__).parent / "connector_definitions.txt"
"""The names in the definitions of MirrorMaker 2 4.3.1's three connectors, but for `ssl.` and `sasl.`."""


def test_page_is_as_the_code_is() -> None:
    assert PAGE.read_text() == reference(), "python -m tools.configuration_page > docs/configuration.md"


def test_every_key_of_the_connectors_is_decided() -> None:
    assert set(DEFINITIONS.read_text().split()) == CONNECTOR_NAMES


def test_each_key_without_effect_has_a_reason() -> None:
    for keys in (CONNECTOR, CONNECTOR_BASE, CONNECT, CLIENT):
        assert all(name == key.name and key.reason for name, key in keys.items())
