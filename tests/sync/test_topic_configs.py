"""Which properties a remote topic is created with (`mm2.md` 3.2, targetConfig)."""

from __future__ import annotations

import pytest

from sparkmirror.cluster.admin import ConfigEntry
from sparkmirror.sync.topic_configs import creation_configs


def entry(name: str, source: str = "DYNAMIC_TOPIC_CONFIG", **flags: bool) -> ConfigEntry:
    return ConfigEntry(name, "v", source, flags.get("read_only", False), flags.get("sensitive", False))


@pytest.mark.parametrize(
    ("source", "copied"),
    [
        ("DYNAMIC_TOPIC_CONFIG", True),
        ("DYNAMIC_BROKER_CONFIG", True),
        ("DYNAMIC_DEFAULT_BROKER_CONFIG", True),
        ("STATIC_BROKER_CONFIG", False),
        ("DEFAULT_CONFIG", False),
    ],
)
def test_only_what_someone_set_is_copied(source: str, copied: bool) -> None:
    assert creation_configs([entry("retention.ms", source)]) == ({"retention.ms": "v"} if copied else {})


def test_read_only_and_sensitive_properties_stay() -> None:
    assert creation_configs([entry("a", read_only=True), entry("b", sensitive=True)]) == {}


@pytest.mark.parametrize("name", ["message.timestamp.type", "min.insync.replicas", "unclean.leader.election.enable"])
def test_default_exclude(name: str) -> None:
    assert creation_configs([entry(name), entry(f"{name}.x")]) == {f"{name}.x": "v"}


def test_exclude_matches_whole_names() -> None:
    entries = [entry("retention.ms"), entry("delete.retention.ms"), entry("retention.bytes")]
    assert creation_configs(entries, [r"retention\..*"]) == {"delete.retention.ms": "v"}
    assert creation_configs(entries, []) == {e.name: "v" for e in entries}
