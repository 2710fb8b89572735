"""Properties to create a copy with, and later changes to keep the copy equal.

Settings: `config.properties.exclude`, `use.defaults.from`, `config.property.filter.class` (`mm2.md` 1.2, 1.5 and 3.2:
targetConfig, syncTopicConfigs; KIP-894).
"""

from __future__ import annotations

from collections.abc import Iterable

from sparkmirror.kafka.cluster.config_changes import ConfigChange
from sparkmirror.kafka.cluster.topic_configs import ConfigEntry
from sparkmirror.mirror.sync.topic_rules import TopicRules

RECORD_FORMAT = "message.format.version"
"""Property that is never copied.

The property concerns the brokers that store the records, and Kafka 4.0 no longer knows it (KIP-724).
"""
DEFAULT, STATIC, TOPIC = "DEFAULT_CONFIG", "STATIC_BROKER_CONFIG", "DYNAMIC_TOPIC_CONFIG"


def creation_configs(entries: Iterable[ConfigEntry], rules: TopicRules) -> dict[str, str]:
    """Return the properties set for the topic, or for running source brokers.

    The source's defaults are included if the property filter asks for them.
    """
    return {
        entry.name: entry.value
        for entry in entries
        if entry.value is not None
        and _is_copied(entry, rules)
        and (entry.source != DEFAULT or rules.keeps_default(entry.name))
    }


def config_change(
    remote: str, source: Iterable[ConfigEntry], target: Iterable[ConfigEntry], rules: TopicRules
) -> tuple[ConfigChange, tuple[str, ...]]:
    """Return the remote topic's changes, and properties unknown to target brokers.

    A property gets the source's value. A property with the source's default is removed, unless the filter asks for
    defaults. Excluded properties, and properties from the source brokers' configuration files, stay as they are.
    """
    present = {entry.name: entry for entry in target}
    values, removed, unknown = {}, [], []
    for entry in source:
        if not _is_copied(entry, rules):
            continue
        theirs = present.get(entry.name)
        set_there = theirs is not None and theirs.source == TOPIC
        if entry.source == DEFAULT and not rules.keeps_default(entry.name):
            if set_there:
                removed.append(entry.name)
        elif entry.value is None or (set_there and theirs is not None and theirs.value == entry.value):
            continue
        elif theirs is None:
            unknown.append(entry.name)
        else:
            values[entry.name] = entry.value
    return ConfigChange(remote, values, tuple(removed)), tuple(unknown)


def _is_copied(entry: ConfigEntry, rules: TopicRules) -> bool:
    if entry.read_only or entry.sensitive or entry.source == STATIC or entry.name == RECORD_FORMAT:
        return False
    return rules.keeps(entry.name)
