"""Two connectors of one pair through `sparkmirror serve`: the first one keeps copying, whatever comes after it."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from pathlib import Path

import pytest
from lab import KafkaCluster
from tests.connect.served_worker import ServedWorker
from tests.connect.test_places import CASE
from tests.support import mirror_process as mp

from sparkmirror.config import ClusterConfig
from sparkmirror.connect.connector_model import TargetState
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

KEPT_OUT = "source->target is copied by mirror2 already: put the topics of aaa into that one"


def test_a_newcomer_that_can_not_run_takes_nothing_from_the_one_that_runs(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    servers = source_cluster.bootstrap_servers
    mp.create_topic(servers, topic_name, 1)
    mp.produce(servers, topic_name, 1, 100)
    mirror = {
        **CASE["mirror2"],
        "topics": topic_name,
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "source.cluster.bootstrap.servers": servers,
        "target.cluster.bootstrap.servers": target_cluster.bootstrap_servers,
    }
    remote = f"source.{topic_name}"
    served = ServedWorker(source_cluster, target_cluster, f"{topic_name}-group", tmp_path)

    def copies(count: int) -> None:
        mp.produce(servers, topic_name, 1, count)
        ends = mp.end_offsets(servers, topic_name, 1)
        mp.wait_for(lambda: mp.end_offsets(served.target, remote, 1) == ends, 300, "the copy continues")

    with served:
        served.put("mirror2", mirror)
        served.wait_for("mirror2", "RUNNING")
        copies(1)
        served.put("aaa", CASE["aaa"])
        served.wait_for("aaa", "FAILED")
        assert KEPT_OUT in served.ask("GET", "/connectors/aaa/status")["connector"]["trace"]
        served.change("mirror2", tasks_max="2")  # it keeps its place
        copies(50)
        assert served.ask("GET", "/connectors/mirror2/status")["connector"]["state"] == "RUNNING"
        served.kill()
        _compact(served.target, f"connect-configs-{topic_name}-group")
        served.start()
        served.wait_for("mirror2", "RUNNING")
        copies(50)
        assert KEPT_OUT in served.ask("GET", "/connectors/aaa/status")["connector"]["trace"]
        # When the one that was there first goes, the other takes over by itself.
        served.put("aaa", mirror)
        served.wait_for("aaa", "FAILED")
        served.to(TargetState.STOPPED, "mirror2")
        served.wait_for("aaa", "RUNNING")
        copies(50)
        # And keeps it, though the older one is there again.
        served.to(TargetState.STARTED, "mirror2")
        served.wait_for("mirror2", "FAILED")
        copies(50)
        served.delete("aaa")
        served.wait_for("mirror2", "RUNNING")
        copies(50)
        with ExitStack() as stack:
            host, port = served.url.removeprefix("http://").split(":")
            for _ in range(500):  # clients that never say what they want
                stack.enter_context(socket.create_connection((host, int(port)), timeout=60)).sendall(
                    b"GET / HTTP/1.1\r\n"
                )
            copies(50)
            assert served.ask("GET", "/connectors/mirror2/status")["connector"]["state"] == "RUNNING"
        served.to(TargetState.PAUSED, "mirror2")


def _compact(servers: str, topic: str) -> None:
    """Have the broker's cleaner take all records of connectors but the newest, which it does every 15 s at most."""
    client = ClusterClient(ClusterConfig(alias="B", bootstrap_servers=(servers,)), "test")
    log = TopicLog(client, topic)
    mp.alter_topic(servers, topic, {"segment.ms": "100", "min.cleanable.dirty.ratio": "0.001"})

    def cleaned() -> bool:
        log.append(0, [(b"nobody's", b"{}")])  # only what is behind the segment in use is cleaned
        keys = [entry.key for entry in log.read(0, 0)[0]]
        return keys.count(b"connector-mirror2") == 1

    mp.wait_for(cleaned, 120, "the cleaner")
    client.close()
