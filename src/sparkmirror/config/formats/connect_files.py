"""MirrorMaker 2 as Kafka Connect runs it: connectors and workers.

A flow has up to three connectors; the workers have their own file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from sparkmirror.config.duty_settings import GROUP_SETTINGS, HEARTBEAT_SETTINGS, TOPIC_SYNC_SETTINGS
from sparkmirror.config.entries import Entry

PACKAGE = "org.apache.kafka.connect.mirror."
RUNNING = "running"
STATES = ("paused", "stopped", RUNNING)
"""Wanted connector states."""


class ConnectorRole(Enum):
    """A MirrorMaker 2 connector's role; the value is its class's name."""

    SOURCE = "MirrorSourceConnector"
    CHECKPOINT = "MirrorCheckpointConnector"
    HEARTBEAT = "MirrorHeartbeatConnector"

    @property
    def word(self) -> str:
        """`source`, `checkpoint` or `heartbeat`."""
        return self.name.lower()


SOURCE_ALIAS = "source.cluster.alias"
TARGET_ALIAS = "target.cluster.alias"
IDENTITY = frozenset(("name", "connector.class", "connector.plugin.version", SOURCE_ALIAS, TARGET_ALIAS))
"""Keys that tell connectors apart."""

NAMELESS = ("unnamed", "target")
"""Source and target names for empty aliases.

MirrorMaker 2 takes empty aliases (`config.aliases`).
"""

_ONLY = {
    ConnectorRole.SOURCE: {
        *(setting.name for setting in TOPIC_SYNC_SETTINGS),
        "replication.factor",
        "refresh.topics.enabled",
        "refresh.topics.interval.seconds",
        "heartbeats.replication.enabled",
        "offset.lag.max",
        "offset-syncs.topic.replication.factor",
    },
    ConnectorRole.CHECKPOINT: {setting.name for setting in GROUP_SETTINGS},
    ConnectorRole.HEARTBEAT: {setting.name for setting in HEARTBEAT_SETTINGS},
}
"""Names that only a single connector reads (`mm2.md` 1.2 to 1.4)."""

_NOT_HEARTBEATS = frozenset(
    (
        "topics",
        "topics.exclude",
        "topic.filter.class",
        "offset-syncs.topic.location",
        "emit.offset-syncs.enabled",
        "consumer.poll.timeout.ms",
        "metric.names.formats",
    )
)

MUST_AGREE = {
    "replication.policy.class": PACKAGE + "DefaultReplicationPolicy",
    "replication.policy.separator": ".",
    "replication.policy.internal.topic.separator.enabled": "true",
    "offset-syncs.topic.location": "source",
    "topic.filter.class": PACKAGE + "DefaultTopicFilter",
}
"""Names that must agree in source and checkpoint connector, with Kafka's defaults."""


def readers(name: str) -> tuple[ConnectorRole, ...]:
    """Return the connectors that read this name; the first value counts."""
    for role, names in _ONLY.items():
        if name in names:
            return (role,)
    return (ConnectorRole.SOURCE, ConnectorRole.CHECKPOINT) if name in _NOT_HEARTBEATS else tuple(ConnectorRole)


@dataclass(frozen=True, slots=True, kw_only=True)
class Connector:
    """A connector's configuration, as Connect or Strimzi's operator gets it."""

    role: ConnectorRole
    name: str
    settings: Mapping[str, Entry]
    """Settings by Connect's own keys."""
    path: str
    """The connector file's path."""
    state: str = RUNNING
    """Wanted state: `running`, `paused` or `stopped`.

    Unless it is `running`, `enabled` is false in `settings`.
    """
    nameless: tuple[str, str] = NAMELESS
    """Names for the connector's clusters if their aliases are empty."""

    def text(self, key: str, default: str = "") -> str:
        """Return a key's value, trimmed as Connect does."""
        return self.settings[key].value.strip() if key in self.settings else default

    @property
    def flow(self) -> tuple[str, str]:
        """Source and target.

        A source without an alias is empty. A target without an alias is `target`, Kafka's default.
        """
        source, target = self.nameless
        if SOURCE_ALIAS not in self.settings:
            source = ""
        return self.text(SOURCE_ALIAS) or source, self.text(TARGET_ALIAS, "target") or target

    def wants(self) -> bool:
        """True unless the connector is disabled."""
        return self.text("enabled", "true").lower() != "false"


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """Connect workers' configuration: the file for `connect-distributed.sh`."""

    settings: Mapping[str, Entry]
    path: str


@dataclass(frozen=True, slots=True)
class ConnectCluster:
    """Workers with their connectors; without a worker's file the defaults hold."""

    connectors: tuple[Connector, ...]
    worker: WorkerSettings | None = None
    target: str | None = None
    """The target's alias, if it is known from outside the connectors."""


def resting(role: ConnectorRole, at: Entry) -> dict[str, Entry]:
    """Return the settings for a connector that is not to run.

    `at` is the entry that says so.
    """
    keys = ("enabled", "emit.heartbeats.enabled") if role is ConnectorRole.HEARTBEAT else ("enabled",)
    return {key: Entry(key=key, value="false", where=at.where, line=at.line) for key in keys}


def by_flow(clusters: Iterable[ConnectCluster]) -> dict[tuple[str, str], dict[ConnectorRole, Connector]]:
    """Return each flow's connectors, in the order of the files.

    The caller refuses roles that come twice.
    """
    flows: dict[tuple[str, str], dict[ConnectorRole, Connector]] = {}
    for cluster in clusters:
        for connector in cluster.connectors:
            flows.setdefault(connector.flow, {}).setdefault(connector.role, connector)
    return flows
