"""Checks of connectors' configurations; that they are Connect's own is seen in `test_same_as_connect.py`."""

from __future__ import annotations

import pytest

from sparkmirror.connect.connector_model import Offset
from sparkmirror.connect.definitions import MIRROR, OWN
from sparkmirror.connect.offset_checks import OffsetRefused, check_offsets
from sparkmirror.connect.plugins import PACKAGE, definitions, find_class
from sparkmirror.connect.validation import validate

SOURCE = {"connector.class": PACKAGE + "MirrorSourceConnector", "name": "shop", "source.cluster.alias": "a"}


def _errors(**settings: str | None) -> dict[str, list[str]]:
    given = {key.replace("_", "."): value for key, value in settings.items()}
    return {value.name: value.errors for value in validate({**SOURCE, **given}).values if value.errors}


def test_what_is_fine_has_no_errors() -> None:
    assert not _errors()
    assert not _errors(tasks_max=" 4 ", key_converter=f" {PACKAGE}Any", topics="orders.*, shop")
    assert not _errors(config_properties_exclude="+a.*, +b")


@pytest.mark.parametrize(
    ("setting", "value", "error"),
    [
        ("tasks_max", "0", "Invalid value 0 for configuration tasks.max: Value must be at least 1"),
        ("tasks_max", "1.5", "Invalid value 1.5 for configuration tasks.max: Not a number of type INT"),
        (
            "admin_timeout_ms",
            "9" * 20,
            f"Invalid value {'9' * 20} for configuration admin.timeout.ms: Not a number of type LONG",
        ),
        ("topics", "a,,b", "Configuration 'topics' values must not be empty."),
        ("topics", "a,a", "Configuration 'topics' values must not be duplicated."),
        ("topics", None, "Configuration 'topics' values must not be null."),
        ("config_properties_exclude", "a,,b", "Configuration 'config.properties.exclude' values must not be empty."),
        (
            "config_properties_exclude",
            "a,+b",
            "Invalid value [a, +b] for configuration config.properties.exclude: has items with a + and items without:"
            " write it before each one to add them to the default list, or before none to replace that",
        ),
        (
            "refresh_topics_enabled",
            "yes",
            "Invalid value yes for configuration refresh.topics.enabled: Expected value to be either true or false",
        ),
        (
            "topic_filter_class",
            "x.Filter",
            "Invalid value x.Filter for configuration topic.filter.class: Class x.Filter could not be found.",
        ),
        ("no_such_key", None, "Null value can not be supplied as the configuration value."),
    ],
)
def test_what_is_wrong_is_said_as_connect_says_it(setting: str, value: str | None, error: str) -> None:
    assert error in _errors(**{setting: value})[setting.replace("_", ".")]


def test_passwords_are_not_shown() -> None:
    shown = {value.name: value.value for value in validate({**SOURCE, "ssl.key.password": "never-shown"}).values}
    assert shown["ssl.key.password"] == "[hidden]"


def test_class_names() -> None:
    full = PACKAGE + "MirrorSourceConnector"
    assert find_class("MirrorSourceConnector") == find_class("MirrorSource") == find_class(f" {full} ") == full
    assert find_class("Mirror") is None
    assert {name: len(definitions(PACKAGE + name)) for name in OWN} == {
        "MirrorSourceConnector": 118,
        "MirrorCheckpointConnector": 113,
        "MirrorHeartbeatConnector": 102,
    }
    assert all(definition.type != "PASSWORD" or definition.default is None for definition in MIRROR)


def test_offsets() -> None:
    at = {"cluster": "a", "topic": "t", "partition": 0}
    check_offsets("MirrorSourceConnector", [(at, {"offset": 7}), ({}, None)])
    check_offsets("MirrorHeartbeatConnector", [({"sourceClusterAlias": "a", "targetClusterAlias": "b"}, {"offset": 0})])
    wrong: list[Offset] = [
        (at, {"offset": True}),
        ({**at, "partition": 2**31}, {"offset": 0}),
        (at, {"offset": -1}),
    ]
    for partition, offset in wrong:
        with pytest.raises(OffsetRefused, match="has an invalid value"):
            check_offsets("MirrorSourceConnector", [(partition, offset)])
    with pytest.raises(OffsetRefused, match="the only accepted value is 0"):
        check_offsets("MirrorCheckpointConnector", [({"group": "g", "topic": "t", "partition": 0}, {"offset": 1})])
