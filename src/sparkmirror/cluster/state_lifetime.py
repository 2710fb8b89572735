"""How long a cluster's brokers remember a producer: by their configuration, as far as we may read it."""

from __future__ import annotations

from kafka.protocol.admin import DescribeConfigsRequest

from sparkmirror.cluster.client import ClusterClient

KEYS = ("producer.id.expiration.ms", "transactional.id.expiration.ms")
"""The first that a broker knows counts; before Kafka 3.4 there is only the second (KIP-854)."""

_BROKER = 4
_UNITS = ((86_400_000, "day"), (3_600_000, "hour"), (60_000, "minute"), (1000, "second"), (1, "ms"))


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


def period(ms: int) -> str:
    """Milliseconds in the largest unit that is whole, such as `1 day` or `36 hours`."""
    size, unit = next((size, unit) for size, unit in _UNITS if ms % size == 0)
    count = ms // size
    return f"{count} {unit}" + ("s" if count != 1 and unit != "ms" else "")
