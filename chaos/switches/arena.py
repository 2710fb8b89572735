"""Two clusters that know their clients by SCRAM and keep ACLs, and a mirror of both directions between them."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

from kafka import KafkaAdminClient
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    NewTopic,
    ResourcePattern,
    ResourceType,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from kafka.errors import UnknownTopicOrPartitionError
from lab import KafkaCluster
from lab.listeners import scram
from lab.zookeeper import ZooKeeperCluster

from chaos.switches.plan import Names

SOURCE, TARGET = "A", "B"
MIRROR, SHOP, BILLING = "mirror", "shop", "billing"
"""Users: the mirror and the tool; the producers; the consumers."""
PASSWORD = "hunter2"  # noqa: S105 - of users that live for minutes
STRANGER = "stranger at "
"""With an alias: how a client comes that no ACL holds."""
_LISTENER = "SCRAM"
_MECHANISM = "SCRAM-SHA-512"
_HEAP_MB = 384
_FIRST_KRAFT = (3, 3)


class Arena:
    """As a context both clusters run; they are deleted at the end, but for their logs."""

    def __init__(self, directory: Path, version: str) -> None:
        """Choose the source's version: `2.8.2`, `3.6.2` or `4.3.1`; the target is the newest."""
        self.directory = directory
        self.version = version
        self.source = _cluster(directory / "source", version)
        self.target = KafkaCluster(
            directory / "target", acls=True, listeners=_listeners(), properties=_SETTINGS, heap_mb=_HEAP_MB
        )

    def __enter__(self) -> Self:
        try:
            with ThreadPoolExecutor(2) as pool:
                list(pool.map(KafkaCluster.start, (self.source, self.target)))
            for cluster in (self.source, self.target):
                _let_in(cluster)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Kill both clusters and delete their data."""
        for cluster in (self.source, self.target):
            cluster.cleanup(keep_logs=True)

    def cluster(self, alias: str) -> KafkaCluster:
        """Return the cluster with this alias."""
        return self.source if alias == SOURCE else self.target

    def servers(self, alias: str) -> str:
        """Return where users sign in."""
        return self.cluster(alias).servers(_LISTENER)

    def clients(self) -> dict[str, Mapping[str, str]]:
        """Return the settings of Java clients, by a name for each cluster and user."""
        found: dict[str, Mapping[str, str]] = {}
        for alias in (SOURCE, TARGET):
            for user in (SHOP, BILLING):
                found[f"{user} at {alias}"] = {"bootstrap.servers": self.servers(alias), **_signed(user)}
            found[STRANGER + alias] = {"bootstrap.servers": self.cluster(alias).direct_servers}
        return found

    def knows_new_groups(self) -> bool:
        """True if both clusters have the consumer protocol of KIP-848."""
        return self.version.startswith("4.")

    def create_topics(self, alias: str, names: Mapping[str, Mapping[str, str]], partitions: int) -> None:
        """Create topics with their settings."""
        with _admin(self.cluster(alias)) as admin:
            admin.create_topics(
                [NewTopic(name, partitions, 1, topic_configs=dict(configs)) for name, configs in names.items()],
                wait_for_metadata=True,
            )

    def delete_topics(self, alias: str, names: list[str]) -> None:
        """Delete topics; missing ones are no error."""
        with _admin(self.cluster(alias)) as admin:
            for name in names:
                with contextlib.suppress(UnknownTopicOrPartitionError):
                    admin.delete_topics([name])

    def let_write(self, alias: str, *, literal: str, prefix: str) -> None:
        """Let the producers write to a topic, and to all topics with a prefix."""
        with _admin(self.cluster(alias)) as admin:
            _allow(admin, SHOP, ACLOperation.WRITE, ResourceType.TOPIC, literal)
            _allow(admin, SHOP, ACLOperation.WRITE, ResourceType.TOPIC, prefix, prefixed=True)


def _listeners() -> dict[str, Any]:
    return {_LISTENER: scram(_MECHANISM, "SASL_PLAINTEXT")}


_SETTINGS = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000"}


def _cluster(directory: Path, version: str) -> KafkaCluster:
    major, minor = (int(part) for part in version.split(".")[:2])
    kind = KafkaCluster if (major, minor) >= _FIRST_KRAFT else ZooKeeperCluster
    return kind(directory, version=version, acls=True, listeners=_listeners(), properties=_SETTINGS, heap_mb=_HEAP_MB)


def _signed(user: str) -> dict[str, str]:
    module = "org.apache.kafka.common.security.scram.ScramLoginModule required"
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": _MECHANISM,
        "sasl.jaas.config": f'{module} username="{user}" password="{PASSWORD}";',
    }


@contextlib.contextmanager
def _admin(cluster: KafkaCluster) -> Any:
    admin: Any = KafkaAdminClient(bootstrap_servers=cluster.direct_servers)
    try:
        yield admin
    finally:
        admin.close()


def _let_in(cluster: KafkaCluster) -> None:
    """Make the users, and what they may do all the time; only writing is left to each round."""
    with _admin(cluster) as admin:
        for user in (MIRROR, SHOP, BILLING):
            change = UserScramCredentialUpsertion(user, ScramMechanism.SCRAM_SHA_512, PASSWORD, iterations=4096)
            admin.alter_user_scram_credentials([change])
        for kind, name in (
            (ResourceType.TOPIC, "*"),
            (ResourceType.GROUP, "*"),
            (ResourceType.TRANSACTIONAL_ID, "*"),
            (ResourceType.CLUSTER, "kafka-cluster"),
        ):
            _allow(admin, MIRROR, ACLOperation.ALL, kind, name)
        _allow(admin, SHOP, ACLOperation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, "kafka-cluster")
        _allow(admin, SHOP, ACLOperation.ALL, ResourceType.TRANSACTIONAL_ID, "*")
        _allow(admin, BILLING, ACLOperation.READ, ResourceType.TOPIC, "*")
        _allow(admin, BILLING, ACLOperation.READ, ResourceType.GROUP, "*")


def _allow(
    admin: Any, user: str, operation: ACLOperation, kind: ResourceType, name: str, *, prefixed: bool = False
) -> None:
    pattern = ACLResourcePatternType.PREFIXED if prefixed else ACLResourcePatternType.LITERAL
    where = ResourcePattern(kind, name, pattern)
    admin.create_acls([ACL(f"User:{user}", "*", operation, ACLPermissionType.ALLOW, where)])


def write_mirror_file(path: Path, arena: Arena, names: Names, *, syncs_groups: bool, back: bool = True) -> Path:
    """Write the mirror's file, for topics and groups of all rounds; without `back` nothing flows from the target."""
    settings = {
        "clusters": f"{SOURCE}, {TARGET}",
        "replication.policy.class": names.policy,
        "topics": "r[0-9]+-.*",
        "groups": "r[0-9]+-.*",
        "replication.factor": "1",
        "checkpoints.topic.replication.factor": "1",
        "heartbeats.topic.replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "offset.storage.replication.factor": "1",
        "tasks.max": "2",
        "refresh.topics.interval.seconds": "2",
        "refresh.groups.interval.seconds": "2",
        "emit.checkpoints.interval.seconds": "2",
        "sync.topic.acls.interval.seconds": "2",
        "emit.heartbeats.enabled": "false",
        "heartbeats.replication.enabled": "false",
        "sync.group.offsets.enabled": str(syncs_groups).lower(),
    }
    for alias in (SOURCE, TARGET):
        signed = {"bootstrap.servers": arena.servers(alias), "session.timeout.ms": "6000", **_signed(MIRROR)} | {
            "consumer.isolation.level": "read_committed"
        }
        settings |= {f"{alias}.{key}": value for key, value in signed.items()}
    for flow, turn in ((f"{SOURCE}->{TARGET}", "first"), (f"{TARGET}->{SOURCE}", "second")):
        settings[f"{flow}.enabled"] = str(back or turn == "first").lower()
        if names is not Names.RENAMED:
            settings[f"{flow}.sparkmirror.turn"] = turn
    path.write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))
    return path
