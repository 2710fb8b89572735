"""Settings for topics, groups, offset syncs, heartbeats and Connect's offsets.

The settings for copying are in `settings`.
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
from sparkmirror.values import (
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
    return Setting(name=name, kind=kind, place=place, doc=doc, origin=origin, model=model)


def _access(name: str, field: str, doc: str) -> Setting:
    return Setting(
        name=f"sparkmirror.{name}",
        kind=Boolean(),
        place=KeyScope.CONNECTOR,
        doc=doc,
        origin="docs/topics.md",
        model=TopicSyncConfig,
        renamed=field,
    )


def _storage(name: str, kind: ValueKind, doc: str, place: KeyScope) -> Setting:
    return Setting(name=name, kind=kind, place=place, doc=doc, origin="1.6", model=ConnectStorage)


CONFIG_EXCLUDE = _of(
    TopicSyncConfig,
    "config.properties.exclude",
    Additions(DEFAULT_CONFIG_EXCLUDE),
    "Regexes of properties that are not copied. With `+` before each regex they are added to the default ones.",
    "1.2",
)
TOPIC_SYNC_SETTINGS: tuple[Setting, ...] = (
    CONFIG_EXCLUDE,
    _of(
        TopicSyncConfig,
        "config.property.filter.class",
        ClassName((DEFAULT_CONFIG_FILTER,)),
        "Class that applies `config.properties.exclude`.",
        "1.2",
    ),
    _of(
        TopicSyncConfig, "use.defaults.from", Choice(("target", "source")), "Cluster whose defaults a copy has.", "1.5"
    ),
    _of(
        TopicSyncConfig,
        "sync.topic.configs.enabled",
        Boolean(),
        "true: copies' properties are kept equal to the source's.",
        "1.2",
    ),
    _of(
        TopicSyncConfig,
        "sync.topic.configs.interval.seconds",
        SECONDS,
        "Time between two comparisons of topics' properties.",
        "1.2",
    ),
    _of(TopicSyncConfig, "sync.topic.acls.enabled", Boolean(), "true: topics' ACLs are copied.", "1.2"),
    _of(
        TopicSyncConfig, "sync.topic.acls.interval.seconds", SECONDS, "Time between two copies of topics' ACLs.", "1.2"
    ),
    _access("sync.acls.patterns.enabled", "acl_patterns_enabled", "true: ACLs of prefixes and of `*` are copied, too."),
    _access(
        "sync.acls.removals.enabled",
        "acl_removals_enabled",
        "true: ACLs and quotas that this mirror added are removed once they are gone at the source.",
    ),
    _access("sync.group.acls.enabled", "sync_group_acls_enabled", "true: ACLs of groups are copied."),
    _access(
        "sync.transactional.id.acls.enabled",
        "sync_transactional_id_acls_enabled",
        "true: ACLs of transactional ids are copied.",
    ),
    _access("sync.client.quotas.enabled", "sync_client_quotas_enabled", "true: client quotas are copied."),
)
"""Settings that keep remote topics like the source's topics."""

GROUP_SETTINGS: tuple[Setting, ...] = (
    _of(GroupConfig, "groups", Names(), "Regexes of consumer groups to translate.", "1.3"),
    _of(GroupConfig, "groups.exclude", Names(), "Regexes of groups not to translate, though `groups` matches.", "1.3"),
    _of(
        GroupConfig,
        "group.filter.class",
        ClassName((DEFAULT_GROUP_FILTER,)),
        "Class that applies `groups` and `groups.exclude`.",
        "1.3",
    ),
    _of(GroupConfig, "refresh.groups.enabled", Boolean(), "true: the mirror looks for new groups.", "1.3"),
    _of(GroupConfig, "refresh.groups.interval.seconds", SECONDS, "Time between two looks for new groups.", "1.3"),
    _of(GroupConfig, "emit.checkpoints.enabled", Boolean(), "true: checkpoints are written.", "1.3"),
    _of(GroupConfig, "emit.checkpoints.interval.seconds", SECONDS, "Time between two writes of checkpoints.", "1.3"),
    _of(
        GroupConfig,
        "checkpoints.topic.replication.factor",
        FACTOR,
        "Replication factor of the checkpoints topic.",
        "1.3",
    ),
    _of(GroupConfig, "sync.group.offsets.enabled", Boolean(), "true: groups' offsets are set at the target.", "1.3"),
    _of(
        GroupConfig,
        "sync.group.offsets.interval.seconds",
        SECONDS,
        "Time between two settings of groups' offsets.",
        "1.3",
    ),
)
"""Settings for consumer groups and their positions."""

OFFSET_SYNC_SETTINGS: tuple[Setting, ...] = (
    _of(
        OffsetSyncConfig,
        "offset.lag.max",
        Integer(0, LONG_MAX),
        "Most records between two offset syncs of a partition.",
        "1.2",
    ),
    _of(OffsetSyncConfig, "emit.offset-syncs.enabled", Boolean(), "true: offset syncs are written.", "1.2"),
    _of(
        OffsetSyncConfig,
        "offset-syncs.topic.location",
        Choice(("source", "target")),
        "Cluster that offset syncs are written to.",
        "1.2",
    ),
    _of(
        OffsetSyncConfig,
        "offset-syncs.topic.replication.factor",
        FACTOR,
        "Replication factor of the offset syncs topic.",
        "1.2",
    ),
)
"""Settings for MirrorMaker 2's offset syncs."""

EMIT_HEARTBEATS = _of(HeartbeatConfig, "emit.heartbeats.enabled", Boolean(), "true: heartbeats are sent.", "1.4")
HEARTBEAT_SETTINGS: tuple[Setting, ...] = (
    EMIT_HEARTBEATS,
    _of(HeartbeatConfig, "emit.heartbeats.interval.seconds", SECONDS, "Time between two heartbeats.", "1.4"),
    _of(
        HeartbeatConfig,
        "heartbeats.topic.replication.factor",
        FACTOR,
        "Replication factor of the heartbeats topic.",
        "1.4",
    ),
)
"""Settings for heartbeats.

The interval and the topic's replication factor count also for pairs that copy nothing.
"""

STORAGE_SETTINGS: tuple[Setting, ...] = (
    _storage("offset.storage.topic", NAME_CHARACTERS, "Topic of Kafka Connect's offsets.", KeyScope.STORAGE),
    _storage(
        "offset.storage.partitions",
        Integer(1, also=-1),
        "Partitions of the topic of Connect's offsets.",
        KeyScope.STORAGE,
    ),
    _storage(
        "offset.storage.replication.factor",
        FACTOR,
        "Replication factor of the topic of Connect's offsets.",
        KeyScope.STORAGE,
    ),
    _storage(
        "offset.flush.interval.ms",
        Integer(1, LONG_MAX),
        "Time between two writes of Connect's offsets.",
        KeyScope.WORKER,
    ),
)
"""Settings for the offsets that MirrorMaker 2's Connect workers keep.

The stored offsets let an operator hand the flow back to MirrorMaker 2.
"""

DUTY_SETTINGS: tuple[Setting, ...] = (
    *TOPIC_SYNC_SETTINGS,
    *GROUP_SETTINGS,
    *OFFSET_SYNC_SETTINGS,
    *HEARTBEAT_SETTINGS,
    *STORAGE_SETTINGS,
)
"""All settings for the duties next to copying."""
