"""Settings of topics, groups, offset syncs, heartbeats and Connect's offsets.

The settings of copying are in `settings`.
"""

from __future__ import annotations

from pydantic import BaseModel

from sparkmirror.config.model import (
    DEFAULT_CONFIG_EXCLUDE,
    DEFAULT_CONFIG_FILTER,
    DEFAULT_GROUP_FILTER,
    ConnectStorage,
    GroupConfig,
    HeartbeatConfig,
    OffsetSyncConfig,
    TopicSyncConfig,
)
from sparkmirror.config.setting import KeyScope, Setting
from sparkmirror.config.values import (
    FACTOR,
    LONG_MAX,
    NAME_CHARACTERS,
    SECONDS,
    Additions,
    Boolean,
    Choice,
    ClassName,
    Integer,
    Names,
    ValueKind,
)


def _of(model: type[BaseModel], name: str, kind: ValueKind, doc: str, origin: str) -> Setting:
    place = KeyScope.PAIR if name == "use.defaults.from" else KeyScope.CONNECTOR
    return Setting(name, kind, place, doc, origin, model)


def _access(name: str, field: str, doc: str) -> Setting:
    return Setting(f"sparkmirror.{name}", Boolean(), KeyScope.CONNECTOR, doc, "docs/topics.md", TopicSyncConfig, field)


def _storage(name: str, kind: ValueKind, doc: str, place: KeyScope) -> Setting:
    return Setting(name, kind, place, doc, "1.6", ConnectStorage)


CONFIG_EXCLUDE = _of(
    TopicSyncConfig,
    "config.properties.exclude",
    Additions(DEFAULT_CONFIG_EXCLUDE),
    "Regexes of properties that are not copied. With `+` before each one they are added to the default ones.",
    "1.2",
)
TOPIC_SYNC_SETTINGS: tuple[Setting, ...] = (
    CONFIG_EXCLUDE,
    _of(
        TopicSyncConfig,
        "config.property.filter.class",
        ClassName((DEFAULT_CONFIG_FILTER,)),
        "What decides by `config.properties.exclude`.",
        "1.2",
    ),
    _of(TopicSyncConfig, "use.defaults.from", Choice(("target", "source")), "Whose defaults a copy has.", "1.5"),
    _of(TopicSyncConfig, "sync.topic.configs.enabled", Boolean(), "Whether topics' properties are kept equal.", "1.2"),
    _of(
        TopicSyncConfig,
        "sync.topic.configs.interval.seconds",
        SECONDS,
        "How often topics' properties are made equal.",
        "1.2",
    ),
    _of(TopicSyncConfig, "sync.topic.acls.enabled", Boolean(), "Whether topics' ACLs are copied.", "1.2"),
    _of(TopicSyncConfig, "sync.topic.acls.interval.seconds", SECONDS, "How often topics' ACLs are copied.", "1.2"),
    _access(
        "sync.acls.patterns.enabled", "acl_patterns_enabled", "Whether ACLs of prefixes and of `*` are copied, too."
    ),
    _access(
        "sync.acls.removals.enabled",
        "acl_removals_enabled",
        "Whether what this mirror has added is removed when the source has it no more; quotas, too.",
    ),
    _access("sync.group.acls.enabled", "sync_group_acls_enabled", "Whether ACLs of groups are copied."),
    _access(
        "sync.transactional.id.acls.enabled",
        "sync_transactional_id_acls_enabled",
        "Whether ACLs of transactional ids are copied.",
    ),
    _access("sync.client.quotas.enabled", "sync_client_quotas_enabled", "Whether client quotas are copied."),
)
"""Settings that keep remote topics like the source's topics."""

GROUP_SETTINGS: tuple[Setting, ...] = (
    _of(GroupConfig, "groups", Names(), "Regexes of consumer groups to translate.", "1.3"),
    _of(GroupConfig, "groups.exclude", Names(), "Regexes of groups not to translate, though `groups` matches.", "1.3"),
    _of(GroupConfig, "group.filter.class", ClassName((DEFAULT_GROUP_FILTER,)), "What decides by `groups`.", "1.3"),
    _of(GroupConfig, "refresh.groups.enabled", Boolean(), "Whether new groups are looked for.", "1.3"),
    _of(GroupConfig, "refresh.groups.interval.seconds", SECONDS, "How often they are looked for.", "1.3"),
    _of(GroupConfig, "emit.checkpoints.enabled", Boolean(), "Whether checkpoints are written.", "1.3"),
    _of(GroupConfig, "emit.checkpoints.interval.seconds", SECONDS, "How often they are written.", "1.3"),
    _of(GroupConfig, "checkpoints.topic.replication.factor", FACTOR, "Of the topic of checkpoints.", "1.3"),
    _of(GroupConfig, "sync.group.offsets.enabled", Boolean(), "Whether groups' offsets are set at the target.", "1.3"),
    _of(GroupConfig, "sync.group.offsets.interval.seconds", SECONDS, "How often they are set.", "1.3"),
)
"""Settings of consumer groups and their positions."""

OFFSET_SYNC_SETTINGS: tuple[Setting, ...] = (
    _of(OffsetSyncConfig, "offset.lag.max", Integer(0, LONG_MAX), "How stale a sync may be, in records.", "1.2"),
    _of(OffsetSyncConfig, "emit.offset-syncs.enabled", Boolean(), "Whether offset syncs are written.", "1.2"),
    _of(
        OffsetSyncConfig,
        "offset-syncs.topic.location",
        Choice(("source", "target")),
        "The cluster that they are written to.",
        "1.2",
    ),
    _of(OffsetSyncConfig, "offset-syncs.topic.replication.factor", FACTOR, "Of the topic of offset syncs.", "1.2"),
)
"""Settings of MirrorMaker 2's offset syncs."""

EMIT_HEARTBEATS = _of(HeartbeatConfig, "emit.heartbeats.enabled", Boolean(), "Whether heartbeats are sent.", "1.4")
HEARTBEAT_SETTINGS: tuple[Setting, ...] = (
    EMIT_HEARTBEATS,
    _of(HeartbeatConfig, "emit.heartbeats.interval.seconds", SECONDS, "How often they are sent.", "1.4"),
    _of(HeartbeatConfig, "heartbeats.topic.replication.factor", FACTOR, "Of the topic of heartbeats.", "1.4"),
)
"""Settings of heartbeats.

The interval and the topic's replication factor count also for pairs that copy nothing.
"""

STORAGE_SETTINGS: tuple[Setting, ...] = (
    _storage("offset.storage.topic", NAME_CHARACTERS, "Where Kafka Connect keeps its offsets.", KeyScope.STORAGE),
    _storage("offset.storage.partitions", Integer(1, also=-1), "Of that topic.", KeyScope.STORAGE),
    _storage("offset.storage.replication.factor", FACTOR, "Of that topic.", KeyScope.STORAGE),
    _storage("offset.flush.interval.ms", Integer(1, LONG_MAX), "How often they are written.", KeyScope.WORKER),
)
"""Settings of the offsets of MirrorMaker 2's Connect workers.

The stored offsets let an operator hand the flow back to MirrorMaker 2.
"""

CONTROL_SETTINGS: tuple[Setting, ...] = (
    *TOPIC_SYNC_SETTINGS,
    *GROUP_SETTINGS,
    *OFFSET_SYNC_SETTINGS,
    *HEARTBEAT_SETTINGS,
    *STORAGE_SETTINGS,
)
"""All settings of the duties beside copying."""
