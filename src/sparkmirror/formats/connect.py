"""MirrorMaker 2 as Kafka Connect runs it: up to three connectors for each flow, and the workers' own file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from sparkmirror.config import Entry
from sparkmirror.config.control_settings import GROUP_SETTINGS, HEARTBEAT_SETTINGS, TOPIC_SYNC_SETTINGS

PACKAGE = "org.apache.kafka.connect.mirror."
RUNNING = "running"
STATES = ("paused", "stopped", RUNNING)
"""What may be wanted of a connector."""


class ConnectorRole(Enum):
    """The three connectors, by their classes' names."""

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
"""Keys that say which connector it is."""

NAMELESS = ("unnamed", "target")
"""What source and target are called whose alias is empty, which MirrorMaker 2 takes (`config.aliases`)."""

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
"""Names that one connector reads (`mm2.md` 1.2 to 1.4)."""

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
"""Where source and checkpoint connector must say the same, with Kafka's defaults."""


def readers(name: str) -> tuple[ConnectorRole, ...]:
    """The connectors that read this name, the one whose value counts first."""
    for role, names in _ONLY.items():
        if name in names:
            return (role,)
    return (ConnectorRole.SOURCE, ConnectorRole.CHECKPOINT) if name in _NOT_HEARTBEATS else tuple(ConnectorRole)


@dataclass(frozen=True, slots=True)
class Connector:
    """One connector's configuration, as its REST interface or operator is given it."""

    role: ConnectorRole
    name: str
    settings: Mapping[str, Entry]
    """By Connect's own keys."""
    path: str
    """Of its file."""
    state: str = RUNNING
    """As it is wanted: `running`, `paused` or `stopped`; if it isn't the first, `enabled` is false in `settings`."""
    nameless: tuple[str, str] = NAMELESS
    """What its clusters are called if their aliases are empty."""

    def text(self, key: str, default: str = "") -> str:
        """The value of a key, trimmed as Connect does."""
        return self.settings[key].value.strip() if key in self.settings else default

    @property
    def flow(self) -> tuple[str, str]:
        """Source and target; a source without an alias is nothing, a target is `target`, which is Kafka's default."""
        source, target = self.nameless
        if SOURCE_ALIAS not in self.settings:
            source = ""
        return self.text(SOURCE_ALIAS) or source, self.text(TARGET_ALIAS, "target") or target

    def wants(self) -> bool:
        """Whether it has anything to do."""
        return self.text("enabled", "true").lower() != "false"


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """The configuration of Connect's workers: the file of `connect-distributed.sh`."""

    settings: Mapping[str, Entry]
    path: str


@dataclass(frozen=True, slots=True)
class ConnectCluster:
    """Workers and what they run; without a worker file the defaults hold."""

    connectors: tuple[Connector, ...]
    worker: WorkerSettings | None = None
    target: str | None = None
    """Its target's alias, if it is said outside the connectors."""


def resting(role: ConnectorRole, at: Entry) -> dict[str, Entry]:
    """The settings of a connector that is not to run, which `at` says."""
    keys = ("enabled", "emit.heartbeats.enabled") if role is ConnectorRole.HEARTBEAT else ("enabled",)
    return {key: Entry(key, "false", at.where, at.line) for key in keys}


def by_flow(clusters: Iterable[ConnectCluster]) -> dict[tuple[str, str], dict[ConnectorRole, Connector]]:
    """The connectors of each flow, in the order of the files; a role that comes twice is the caller's to refuse."""
    flows: dict[tuple[str, str], dict[ConnectorRole, Connector]] = {}
    for cluster in clusters:
        for connector in cluster.connectors:
            flows.setdefault(connector.flow, {}).setdefault(connector.role, connector)
    return flows
