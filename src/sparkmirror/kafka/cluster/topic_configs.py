"""Topic and broker properties, as a cluster describes them."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kafka.admin import ConfigSourceType
from kafka.protocol.admin import DescribeConfigsRequest

from sparkmirror.chunks import chunks
from sparkmirror.kafka.cluster.client import TOPICS_PER_REQUEST, ClusterClient

CLEANUP_POLICY = "cleanup.policy"

_TOPIC, _BROKER = 2, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigEntry:
    """One topic property, and where its value comes from."""

    name: str
    value: str | None
    source: str
    """Kafka's name for the source, such as `DYNAMIC_TOPIC_CONFIG` or `DEFAULT_CONFIG`."""
    read_only: bool
    sensitive: bool


def describe_topic_configs(
    client: ClusterClient, topics: Iterable[str], names: Sequence[str] | None = None
) -> dict[str, tuple[ConfigEntry, ...]]:
    """Read these topics' properties, defaults included.

    Without `names` all properties are read. A deleted topic, or a topic whose configuration may not be read, is left
    out.
    """
    wanted = sorted(set(topics))
    configs: dict[str, tuple[ConfigEntry, ...]] = {}
    for chunk in chunks(wanted, TOPICS_PER_REQUEST):
        answer = client.ask_any(functools.partial(_request, _TOPIC, chunk, names))
        for result in answer.results:
            if not result.error_code and result.configs:
                configs[result.resource_name] = tuple(map(_entry, result.configs))
    return configs


def topic_configs(client: ClusterClient, topics: Iterable[str], names: Sequence[str]) -> dict[str, dict[str, str]]:
    """Read these properties' values for each topic, defaults included.

    Properties that the principal may not read are left out.
    """
    wanted = list(topics)
    described = describe_topic_configs(client, wanted, names)
    return {
        topic: {entry.name: entry.value for entry in described.get(topic, ()) if entry.value is not None}
        for topic in wanted
    }


def broker_config(client: ClusterClient, name: str) -> str | None:
    """Read one broker property from the first broker that answers.

    None if the broker does not have the property.
    """
    return broker_properties(client, [name]).get(name)


def broker_properties(client: ClusterClient, names: Sequence[str] | None = None) -> dict[str, str | None]:
    """Read these properties, or all, from the first broker that answers.

    None stands for a value that the broker hides. Properties that it does not have, or does not tell, are left out.
    """
    client.metadata([])
    living = sorted(client.brokers)
    for broker in living:
        try:
            answer = client.ask(broker, _request(_BROKER, [str(broker)], names))
        except ConnectionError:
            if broker == living[-1]:
                raise
            continue
        return {entry.name: entry.value for result in answer.results for entry in result.configs}
    return {}


def _request(kind: int, resources: Sequence[str], names: Sequence[str] | None) -> Any:
    return DescribeConfigsRequest(
        resources=[
            DescribeConfigsRequest.DescribeConfigsResource(
                resource_type=kind, resource_name=resource, configuration_keys=None if names is None else list(names)
            )
            for resource in resources
        ],
        include_synonyms=False,
    )


def _entry(entry: Any) -> ConfigEntry:
    if entry.config_source > ConfigSourceType.UNKNOWN:
        source = ConfigSourceType(entry.config_source)
    else:  # brokers before Kafka 1.1 tell only whether the value is the default
        source = ConfigSourceType.DEFAULT_CONFIG if entry.is_default else ConfigSourceType.DYNAMIC_TOPIC_CONFIG
    return ConfigEntry(
        name=entry.name,
        value=entry.value,
        source=source.name,
        read_only=entry.read_only,
        sensitive=entry.is_sensitive,
    )
