"""How long a cluster's brokers remember a producer: by their configuration, as far as we may read it."""

from __future__ import annotations

from kafka.protocol.admin import DescribeConfigsRequest

from sparkmirror.cluster.client import ClusterClient

KEYS = ("producer.id.expiration.ms", "transactional.id.expiration.ms")
"""The first that a broker knows counts; before Kafka 3.4 there is only the second (KIP-854)."""

_BROKER = 4


def state_lifetime_ms(client: ClusterClient) -> int | None:
    """By one broker, in milliseconds; None: it doesn't say. Raises `ConnectionError`."""
    node = client.brokers[0]
    answer = client.ask(
        node,
        DescribeConfigsRequest(
            resources=[
                DescribeConfigsRequest.DescribeConfigsResource(
                    resource_type=_BROKER, resource_name=str(node), configuration_keys=list(KEYS)
                )
            ],
            include_synonyms=False,
        ),
    )
    values = {
        config.name: int(config.value)
        for result in answer.results
        if not result.error_code
        for config in result.configs
        if config.value is not None
    }
    return next((values[key] for key in KEYS if key in values), None)
