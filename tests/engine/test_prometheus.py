"""A real Prometheus scrapes a real mirror: each expression of each dashboard has data, each rule can be evaluated.

Boards of others have data, too, but for names of which `docs/metrics.md` says why they are not there.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata
from lab import KafkaCluster
from pyspark.sql import SparkSession
from scraping import asked, prometheus
from tests.support import mirror_process as mp
from tests.support.boards import BOARDS, IN_TROUBLE, is_absent
from tests.support.deployed import DASHBOARDS, panels, rules, selectors
from tests.support.mirror_thread import run_config

from sparkmirror.cli.metrics import metrics_served
from sparkmirror.config import load_mm2_properties
from sparkmirror.demo.ports import free_ports
from sparkmirror.look.metrics.profile import Profile

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

SETTINGS = {
    "emit.checkpoints.interval.seconds": "1",
    "sync.group.offsets.enabled": "true",
    "sync.group.offsets.interval.seconds": "1",
    "B.offset.flush.interval.ms": "2000",
    "emit.heartbeats.enabled": "true",
    "emit.heartbeats.interval.seconds": "1",
    "heartbeats.topic.replication.factor": "1",
    "heartbeats.replication.enabled": "true",
    "sparkmirror.objective.seconds": "60",
}


@contextmanager
def traffic(servers: str, topic: str) -> Iterator[None]:
    """Records as long as the context is open, and a group that has read some of them."""
    ended = threading.Event()
    with closing(KafkaProducer(bootstrap_servers=servers)) as producer:

        def send() -> None:
            while not ended.wait(0.02):
                producer.send(topic, b"x" * 100)

        thread = threading.Thread(target=send)
        thread.start()
        with closing(KafkaConsumer(bootstrap_servers=servers, group_id=topic)) as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            consumer.commit({TopicPartition(topic, 0): OffsetAndMetadata(5, "", -1)})
        try:
            yield
        finally:
            ended.set()
            thread.join(30)


def is_filled(url: str, expression: str) -> bool:
    """Whether there is a number, as a panel shows it."""
    series = asked(f"{url}/api/v1/query", query=expression)["result"]
    return any(one["value"][1] != "NaN" for one in series)


def of_others(topic: str) -> list[tuple[str, str, str]]:
    """What boards of others ask for, of this topic: kind of exporter, whether a name is absent, expression."""
    return [
        (kind, "absent" if any(is_absent(selector.name) for selector in selectors(text)) else "", text)
        for kind, (_, expressions) in BOARDS.items()
        for expression in expressions
        if expression not in IN_TROUBLE
        for text in [expression.replace("orders", topic)]
    ]


def test_no_panel_is_empty(
    spark: SparkSession, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    source, target = source_cluster.bootstrap_servers, target_cluster.bootstrap_servers
    mp.create_topic(source, topic_name, 2)
    (port,) = free_ports(1)
    settings = {**SETTINGS, "groups": topic_name, "sparkmirror.metrics.listeners": f"http://127.0.0.1:{port}"}
    config = load_mm2_properties(
        str(mp.write_properties(tmp_path / "mm2.properties", source, target, topic_name, settings))
    )
    expressions = [(path.stem, *panel) for path in DASHBOARDS for panel in panels(path)]
    others = of_others(topic_name)
    expressions += [each for each in others if not each[1]]
    with (
        traffic(source, topic_name),
        run_config(config, spark, use_lease=True) as mirror,
        metrics_served(None, tuple(Profile), config, mirror.observer.snapshot),
        prometheus(tmp_path, port) as url,
    ):
        empty = expressions

        def all_filled() -> bool:
            nonlocal empty
            try:
                empty = [one for one in empty if not is_filled(url, one[2])]
            except OSError:  # it starts
                return False
            return not empty

        try:
            mp.wait_for(all_filled, 120, "every panel has data")
        except AssertionError:
            pytest.fail(f"empty: {empty}")
        assert [each for each in others if each[1] and is_filled(url, each[2])] == []
        told = [rule for group in asked(f"{url}/api/v1/rules")["groups"] for rule in group["rules"]]
        assert len(told) == len(rules("alerts.yml")) + len(rules("recording.yml"))
        mp.wait_for(
            lambda: (
                {rule["health"] for group in asked(f"{url}/api/v1/rules")["groups"] for rule in group["rules"]}
                == {"ok"}
            ),
            20,
            "each rule is evaluated",
        )
