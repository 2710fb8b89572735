"""Command lines of Kafka's own tools, complete with the brokers to ask."""

from __future__ import annotations

import shlex

from sparkmirror.config import ClusterConfig

SIGN_IN_FILE = "admin.properties"
"""Client properties file with an administrator's sign-in.

Commands name the file for a cluster whose listeners are encrypted or need a sign-in.
"""


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
    """Return the command that gives all brokers of a cluster properties."""
    return f"kafka-configs.sh {options} --alter --entity-type brokers --entity-default --add-config {properties}"
