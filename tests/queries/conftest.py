from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
from kafka.admin import NewTopic
from lab import KafkaCluster
from tests.support.copied_flow import Side


@pytest.fixture
def side(target_cluster: KafkaCluster, topic_name: str) -> Iterator[Side]:
    with contextlib.closing(Side("us", target_cluster)) as side:
        side.create_all(NewTopic(topic_name, 1, 1, topic_configs={"cleanup.policy": "compact"}))
        yield side
