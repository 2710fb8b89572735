"""Super users, whom brokers ask for no ACL: are there any?"""

from __future__ import annotations

from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_configs import broker_properties

_NAME = "super.users"
"""Setting of Kafka's authorizers.

Brokers tell that it is set, and hide its value, since they don't know its type.
"""


def names_super_users(client: ClusterClient) -> bool | None:
    """Tell whether the brokers' files name super users.

    None: the brokers don't tell their properties. Raises `ConnectionError`s.
    """
    properties = broker_properties(client)
    return _NAME in properties if properties else None
