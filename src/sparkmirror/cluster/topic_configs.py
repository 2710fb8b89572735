"""Values of topics' properties, read by a pump."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kafka.protocol.admin import DescribeConfigsRequest

from sparkmirror.cluster.client import ClusterClient

CLEANUP_POLICY = "cleanup.policy"

_TOPIC = 2


def topic_configs(client: ClusterClient, topics: Iterable[str], names: Sequence[str]) -> dict[str, dict[str, str]]:
    """Read the values of these properties for each topic, defaults included.

    Properties that the principal may not read are left out.
    """
    wanted = list(topics)
    answer = client.ask_any(
        lambda: DescribeConfigsRequest(
            resources=[
                DescribeConfigsRequest.DescribeConfigsResource(
                    resource_type=_TOPIC, resource_name=topic, configuration_keys=list(names)
                )
                for topic in wanted
            ],
            include_synonyms=False,
        )
    )
    values: dict[str, dict[str, str]] = {topic: {} for topic in wanted}
    for result in answer.results:
        if not result.error_code:
            values[result.resource_name] = {
                entry.name: entry.value for entry in result.configs if entry.value is not None
            }
    return values
