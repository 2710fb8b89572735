"""Internal topics on a cluster with ACLs: taken to be there where we may not create them; a word if we can't write."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ACL, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType
from lab import KafkaCluster

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.config.model import HeartbeatConfig, OffsetSyncConfig
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.mirror.sync.heartbeat_duty import Heartbeats
from sparkmirror.mirror.sync.offset_syncs import CopiedTo, OffsetSyncEmitter
from sparkmirror.policy import DefaultReplicationPolicy

pytestmark = [pytest.mark.broker, pytest.mark.full]

GUARDED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
SYNCS = "mm2-offset-syncs.B.internal"
POLICY = DefaultReplicationPolicy()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[KafkaCluster]:
    """Where everybody may do what no ACL forbids."""
    one = KafkaCluster(tmp_path / "guarded", properties=GUARDED)
    try:
        one.start()
        yield one
    finally:
        one.cleanup(keep_logs=True)


def forbid(admin: KafkaAdminClient, kind: ResourceType, name: str, operation: ACLOperation) -> None:
    """Everybody may do all but this."""
    everybody = {"principal": "User:*", "host": "*", "resource_pattern": ResourcePattern(kind, name)}
    admin.create_acls(
        [
            ACL(operation=ACLOperation.ALL, permission_type=ACLPermissionType.ALLOW, **everybody),
            ACL(operation=operation, permission_type=ACLPermissionType.DENY, **everybody),
        ]
    )


def test_topics_that_are_forbidden(cluster: KafkaCluster) -> None:
    servers = (cluster.bootstrap_servers,)
    flow = FlowConfig(
        source=ClusterConfig(alias="A", bootstrap_servers=servers),
        target=ClusterConfig(alias="B", bootstrap_servers=servers),
        heartbeat=HeartbeatConfig(heartbeats_topic_replication_factor=1),
        offset_sync=OffsetSyncConfig(offset_syncs_topic_replication_factor=1),
    )
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    forbid(admin, ResourceType.TOPIC, SYNCS, ACLOperation.WRITE)
    emitter = OffsetSyncEmitter(flow, POLICY, lambda: [CopiedTo("t", 0, 1, 1)])
    with pytest.raises(ClusterUnreachable, match=f"cluster A: .* may not write to topic {SYNCS}") as told:
        emitter.run()
    assert str(told.value).endswith("grant it CREATE and WRITE on it, or write offset-syncs.topic.location = target")
    emitter.close()
    forbid(admin, ResourceType.CLUSTER, "kafka-cluster", ACLOperation.CREATE)
    forbid(admin, ResourceType.TOPIC, "heartbeats", ACLOperation.CREATE)
    admin.close()
    heartbeats = Heartbeats(flow, POLICY)
    with pytest.raises(ConnectionError, match="heartbeats: it isn't there"):
        heartbeats.run()
    heartbeats.close()
