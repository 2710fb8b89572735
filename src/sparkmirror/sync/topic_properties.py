"""Which of a source topic's properties its copy is created with, and what is changed later to keep them equal.

Settings: `config.properties.exclude`, `use.defaults.from`, `config.property.filter.class` (`mm2.md` 1.2, 1.5 and
3.2: targetConfig, syncTopicConfigs; KIP-894).
"""

from __future__ import annotations

from collections.abc import Iterable

from sparkmirror.cluster.admin import ConfigEntry
from sparkmirror.cluster.config_changes import ConfigChange
from sparkmirror.sync.topic_rules import TopicRules

RECORD_FORMAT = "message.format.version"
"""Never copied: it is about the brokers that store the records, and Kafka 4.0 no longer knows it (KIP-724)."""
DEFAULT, STATIC, TOPIC = "DEFAULT_CONFIG", "STATIC_BROKER_CONFIG", "DYNAMIC_TOPIC_CONFIG"


def creation_configs(entries: Iterable[ConfigEntry], rules: TopicRules) -> dict[str, str]:
    """Return the properties that someone set: for the topic, or for the source's brokers while they ran.

    The source's defaults are among them if the property filter says so.
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
    """What to change of the remote topic, and which properties the target's brokers don't know.

    A property is set to what it is at the source; where it has the source's default, and the filter doesn't ask
    for that, it is removed. What the filter excludes, and what the source's brokers have in their files, stays.
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
