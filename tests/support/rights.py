"""Rights of whoever shows a certificate to a cluster that keeps ACLs."""

from __future__ import annotations

from kafka import KafkaAdminClient
from kafka.admin import ACL, ACLOperation, ACLPermissionType, ACLResourcePatternType, ResourcePattern, ResourceType
from lab import KafkaCluster


def allow(cluster: KafkaCluster, topic: str, *operations: ACLOperation) -> None:
    """Let everybody do that with the topic."""
    pattern = ResourcePattern(ResourceType.TOPIC, topic, ACLResourcePatternType.LITERAL)
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    admin.create_acls([ACL("User:*", "*", operation, ACLPermissionType.ALLOW, pattern) for operation in operations])
    admin.close()
