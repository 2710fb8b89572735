from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from lab import KafkaCluster
from tests.sink.sink_query import Query


@pytest.fixture
def query(target_cluster: KafkaCluster, topic_name: str) -> Iterator[Query]:
    made = Query(target_cluster, topic_name)
    with closing(made.client):
        yield made
