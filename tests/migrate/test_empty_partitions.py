"""Groups in partitions that have no record, and of which nothing was ever copied, have a place at the other side."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from lab import KafkaCluster
from tests.migrate.test_checks_on_clusters import commit, write_files
from tests.support import mirror_process as mp
from tests.support.loss_tools import delete_records

from sparkmirror.config import ClusterConfig
from sparkmirror.exact.durable.claim_log import ClaimLog
from sparkmirror.exact.durable.claims import segments_topic
from sparkmirror.exact.durable.identity import Identity
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.migrate.migration import Migration
from sparkmirror.migrate.observation import Side
from sparkmirror.migrate.rehearsal import Rehearsed

pytestmark = pytest.mark.broker

Pair = tuple[KafkaCluster, KafkaCluster]


def seen(path: Path, group: str, topic: str) -> tuple[int | None, list[str]]:
    """The group's place at the target, and what a rehearsal says."""
    with Migration.load(path) as moving:
        position = moving.observe().flows[Side.SOURCE].positions[group][topic, 0]
        return position, [str(each.result) for each in moving.rehearse().partitions]


def agree(target: KafkaCluster) -> None:
    """As a mirror's first start does."""
    mp.create_topic(target.bootstrap_servers, segments_topic("empty-A"), 1)
    config = ClusterConfig(alias="empty-B", bootstrap_servers=(target.bootstrap_servers,))
    with closing(ClusterClient(config, "test")) as client:
        client.metadata([])
        ClaimLog(TopicLog(client, segments_topic("empty-A"))).agree(
            client.cluster_id, Identity(client.cluster_id, 4000, 0)
        )


def test_a_group_continues_where_the_first_record_will_be(cluster_pair: Pair, topic_name: str, tmp_path: Path) -> None:
    source, target = cluster_pair
    agree(target)
    group = f"{topic_name}-group"
    policies: dict[str, Any] = {"drain": "1 s"}
    path = write_files(tmp_path, cluster_pair, topic_name, fence="none", policies=policies)
    for file in tmp_path.iterdir():  # aliases of its own: other tests' mirrors agree on other producers
        file.write_text(re.sub(r"\b[AB]\b", r"empty-\g<0>", file.read_text()))
    mp.create_topic(source.bootstrap_servers, topic_name, 1)
    commit(source, group, topic_name, 0)
    lag, equal = str(Rehearsed.LAG), str(Rehearsed.EQUAL)
    assert seen(path, group, topic_name) == (None, [str(Rehearsed.UNKNOWN)]), "there is no copy yet"
    mp.create_topic(target.bootstrap_servers, topic_name, 1)
    assert seen(path, group, topic_name) == (0, [equal])
    mp.produce(target.bootstrap_servers, topic_name, 1, 3)
    assert seen(path, group, topic_name) == (3, [equal]), "a record that is copied now lies behind a stranger's"
    mp.produce(source.bootstrap_servers, topic_name, 1, 2)
    assert seen(path, group, topic_name) == (None, [lag]), "what is to be copied may be to be read"
    delete_records(source, topic_name, 0, before=2)
    assert seen(path, group, topic_name) == (3, [str(Rehearsed.UNKNOWN)]), "deleted before it was copied"
