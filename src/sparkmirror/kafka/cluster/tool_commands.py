"""Command lines for Kafka's own tools, complete with the brokers to ask."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from sparkmirror.config import ClusterConfig
from sparkmirror.kafka.cluster.acls import ALLOW, ANYWHERE, LITERAL, Acl, AclResource

SIGN_IN_FILE = "admin.properties"
"""Client properties file with an administrator's sign-in.

Commands name the file for a cluster whose listeners are encrypted or need a sign-in.
"""
ACL_WORDS = {
    AclResource.TOPIC: ("--topic", "topic"),
    AclResource.GROUP: ("--group", "group"),
    AclResource.CLUSTER: ("--cluster", "cluster"),
    AclResource.TRANSACTIONAL_ID: ("--transactional-id", "transactionalId"),
}
"""Option for `kafka-acls.sh`, and Strimzi's resource type."""

AclKey = tuple[AclResource, str, int, str, str, int]
"""An ACL's fields, without its operation."""


def tool_options(cluster: ClusterConfig) -> str:
    """Return the options by which Kafka's tools reach a cluster."""
    options = ["--bootstrap-server", ",".join(cluster.bootstrap_servers)]
    if cluster.encrypted or cluster.signs_in:
        options += ["--command-config", SIGN_IN_FILE]
    return shlex.join(options)


def set_topic_property(options: str, topic: str, properties: str) -> str:
    """Return the command that gives a topic properties, as in `name=value,…`."""
    return f"kafka-configs.sh {options} --alter --entity-type topics --entity-name {topic} --add-config {properties}"


def set_broker_default(options: str, properties: str) -> str:
    return f"kafka-configs.sh {options} --alter --entity-type brokers --entity-default --add-config {properties}"


def acl_lines(acls: Iterable[Acl], cluster: ClusterConfig, *, remove: bool = False) -> list[str]:
    """Return commands that add or remove ACLs.

    There is one command for each principal, host and resource.
    """
    options = tool_options(cluster)
    lines = []
    for (resource, name, pattern, principal, host, permission), operations in grouped(acls).items():
        word = "allow" if permission == ALLOW else "deny"
        words = [
            *("--remove" if remove else "--add", f"--{word}-principal", principal),
            *((f"--{word}-host", host) if host != ANYWHERE else ()),
            *(part for operation in operations for part in ("--operation", pascal(operation))),
            *(ACL_WORDS[resource][0], name, "--resource-pattern-type", "literal" if pattern == LITERAL else "prefixed"),
        ]
        lines.append(f"kafka-acls.sh {options} {shlex.join(words)}")
    return lines


def grouped(acls: Iterable[Acl]) -> dict[AclKey, list[str]]:
    """Group operations' names by the ACLs' other fields."""
    operations: dict[AclKey, list[str]] = {}
    for acl in sorted(acls, key=_order):
        key = (acl.resource, acl.name, acl.pattern, acl.principal, acl.host, acl.permission)
        operations.setdefault(key, []).append(acl.operation_name)
    return operations


def _order(acl: Acl) -> tuple[object, ...]:
    return acl.principal, acl.resource, acl.name, acl.pattern, acl.host, acl.permission, acl.operation


def pascal(operation: str) -> str:
    """Return an operation as Kafka's tools and Strimzi spell it.

    DESCRIBE_CONFIGS becomes DescribeConfigs.
    """
    return "".join(word.capitalize() for word in operation.split("_"))
