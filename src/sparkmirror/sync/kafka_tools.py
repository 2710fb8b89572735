"""Arguments with which Kafka's command-line tools reach a cluster.

For the commands that operators are told to run.
"""

from __future__ import annotations

from sparkmirror.config import ClusterConfig

SIGN_IN_FILE = "admin.properties"
"""Client properties file with an administrator's sign-in.

Commands name the file for a cluster whose listeners are encrypted or need a sign-in.
"""


def tool_arguments(cluster: ClusterConfig) -> tuple[str, ...]:
    """Return the brokers' addresses, and `SIGN_IN_FILE` if the cluster needs it."""
    signs_in = ("--command-config", SIGN_IN_FILE) if cluster.encrypted or cluster.signs_in else ()
    return ("--bootstrap-server", ",".join(cluster.bootstrap_servers), *signs_in)
