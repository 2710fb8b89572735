"""Which topics stamp their records themselves (`message.timestamp.type=LogAppendTime`)."""

from __future__ import annotations

from collections.abc import Collection

from kafka.protocol.admin import DescribeConfigsRequest

from sparkmirror.cluster.client import ClusterClient

_KEY = "message.timestamp.type"
_STAMPS = "LogAppendTime"
_TOPIC = 2
"""The kind of resource."""


def stamping_topics(client: ClusterClient, topics: Collection[str]) -> dict[str, bool]:
    """Whether each topic does; those that are not there, or may not be described, are left out."""
    answer = client.ask_any(
        lambda: DescribeConfigsRequest(
            resources=[
                DescribeConfigsRequest.DescribeConfigsResource(
                    resource_type=_TOPIC, resource_name=topic, configuration_keys=[_KEY]
                )
                for topic in topics
            ],
            include_synonyms=False,
            include_documentation=False,
        )
    )
    return {
        found.resource_name: config.value == _STAMPS
        for found in answer.results
        if not found.error_code
        for config in found.configs
        if config.name == _KEY
    }
