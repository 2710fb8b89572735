"""Clusters start, stop, come back where they were, and never outlive the process that started them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import psutil
import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic
from lab import KafkaCluster

from sparkmirror.demo.readiness import brokers_known_to
from sparkmirror.errors import SetupError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.broker

# It starts the cluster in a thread that ends, as a test runner's might: the broker must not end with it.
ORPHAN_MAKER = """
import sys, threading, time
from pathlib import Path
from lab import KafkaCluster

cluster = KafkaCluster(Path(sys.argv[1]))
thread = threading.Thread(target=cluster.start)
thread.start()
thread.join()
time.sleep(1)
print(cluster.brokers[0].pid, flush=True)
time.sleep(600)
"""


def _produce(cluster: KafkaCluster, topic: str, value: bytes) -> None:
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap_servers)
    producer.send(topic, value)
    producer.close()


def _end_offset(cluster: KafkaCluster, topic: str) -> int:
    consumer = KafkaConsumer(bootstrap_servers=cluster.bootstrap_servers)
    partition = TopicPartition(topic, 0)
    end: int = consumer.end_offsets([partition])[partition]
    consumer.close()
    return end


def _gone(pid: int, within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.full
def test_a_broker_comes_back_where_it_was(tmp_path: Path, topic_name: str) -> None:
    cluster = KafkaCluster(tmp_path / "cluster", properties={"num.partitions": "7"})
    broker = cluster.brokers[0]
    with cluster:
        admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
        admin.create_topics([NewTopic(topic_name, num_partitions=1, replication_factor=1)])
        admin.close()
        _produce(cluster, topic_name, b"before")
        first_pid, port = broker.pid, broker.port
        broker.kill()
        assert not broker.running
        assert brokers_known_to(port) == frozenset()

        broker.start()
        assert broker.port == port
        assert broker.pid != first_pid
        _produce(cluster, topic_name, b"after")
        assert _end_offset(cluster, topic_name) == 2
        assert "num.partitions=7" in (broker.directory / "server.properties").read_text()

        broker.pause()
        assert brokers_known_to(port, timeout_s=0.3) == frozenset()
        broker.resume()
        broker.wait_until_known(frozenset({1}))

    assert not broker.running
    assert "shut down" in broker.log.read_text()
    cluster.cleanup(keep_logs=True)
    assert broker.log.exists()
    assert not broker.data.exists()
    cluster.cleanup()
    assert not cluster.directory.exists()


def test_brokers_die_with_the_process_that_started_them(tmp_path: Path) -> None:
    parent = subprocess.Popen([sys.executable, "-c", ORPHAN_MAKER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    with parent:
        assert parent.stdout is not None
        broker = int(parent.stdout.readline())
        assert psutil.pid_exists(broker)
        os.kill(parent.pid, signal.SIGKILL)
    assert _gone(broker, within_s=5)


def test_a_broker_that_cannot_start_says_why(tmp_path: Path) -> None:
    cluster = KafkaCluster(tmp_path, properties={"log.retention.ms": "not a number"})
    with pytest.raises(SetupError, match=r"broker 1 died .*\n(.*\n)*.*not a number"):
        cluster.start()
    assert not cluster.brokers[0].running


@pytest.mark.full
def test_three_brokers_replicate(tmp_path: Path, topic_name: str) -> None:
    with KafkaCluster(tmp_path, brokers=3) as cluster:
        admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
        admin.create_topics([NewTopic(topic_name, num_partitions=1, replication_factor=3)])
        admin.close()
        _produce(cluster, topic_name, b"before")
        cluster.brokers[0].kill()
        _produce(cluster, topic_name, b"while one is away")
        cluster.brokers[0].start()
        assert _end_offset(cluster, topic_name) == 2
