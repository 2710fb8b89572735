"""What a topic's configuration allows, asked by a pump that was refused."""

from __future__ import annotations

from collections.abc import Sequence

from kafka.protocol.admin import DescribeConfigsRequest

from sparkmirror.cluster.client import ClusterClient

_TOPIC = 2


def topic_configs(client: ClusterClient, topic: str, names: Sequence[str]) -> dict[str, str]:
    """The values of a topic's configurations, defaults too; those that we may not read are left out."""
    answer = client.ask_any(
        lambda: DescribeConfigsRequest(
            resources=[
                DescribeConfigsRequest.DescribeConfigsResource(
                    resource_type=_TOPIC, resource_name=topic, configuration_keys=list(names)
                )
            ],
            include_synonyms=False,
        )
    )
    return {
        config.name: config.value
        for result in answer.results
        if not result.error_code
        for config in result.configs
        if config.value is not None
    }
