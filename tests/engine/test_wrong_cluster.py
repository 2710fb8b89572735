"""Names that lead to another cluster than the flow's: nothing is copied from there, and everybody is told (R20)."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import KafkaCluster
from lab.proxy import Proxy
from tests.support import mirror_process as mp

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

NAMES_KEPT = {"replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"}
LOOKS_S = 15.0
"""In it a mirror that continued would have copied its own copies many times."""


@pytest.fixture
def source(tmp_path: Path) -> Iterator[KafkaCluster]:
    """Reached through a proxy, as through a name."""
    with KafkaCluster(tmp_path / "source", proxied=True) as made:
        yield made


@pytest.fixture
def target_cluster(tmp_path: Path) -> Iterator[KafkaCluster]:
    """A target that knows no other source as A."""
    with KafkaCluster(tmp_path / "target") as made:
        yield made


def ends(servers: str, *topics: str) -> dict[str, int]:
    return {topic: mp.end_offsets(servers, topic, 1)[0] for topic in topics}


def verb(*words: object) -> tuple[int, str]:
    run = subprocess.run([mp.COMMAND, *map(str, words)], capture_output=True, text=True, timeout=120)
    return run.returncode, run.stdout + run.stderr


def state_of(mirror: mp.MirrorProcess) -> str:
    printed = mirror.printed()
    return str(printed[-1]["state"]) if printed else ""


@pytest.mark.parametrize("settings", [{}, NAMES_KEPT], ids=["prefixed", "names kept"])
def test_a_sources_name_that_leads_to_the_target(
    source: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path, settings: dict[str, str]
) -> None:
    """On the night of a migration: applications write at the new cluster, and the old name leads there."""
    old, new = source.direct_servers, target_cluster.bootstrap_servers
    mp.create_topic(old, topic_name, 1)
    mp.produce(old, topic_name, 1, 10)
    copy = topic_name if settings else f"A.{topic_name}"
    file = mp.write_properties(
        tmp_path / "mm2.properties", source.bootstrap_servers, new, f"{topic_name}.*", {**settings}
    )
    (broker,) = source.brokers
    assert broker.proxy is not None
    with mp.MirrorProcess(file, tmp_path / "mirror.log", "-o", "json") as mirror:
        mp.wait_for(lambda: state_of(mirror) == "caught up" and ends(new, copy)[copy] == 10, 120, "the copy")
        mp.create_topic(new, f"{topic_name}-more", 1)
        mp.produce(new, f"{topic_name}-more", 1, 5)
        if not settings:
            mp.create_topic(new, topic_name, 1)
            mp.produce(new, topic_name, 1, 3)
        port = broker.proxy.port
        source.stop()
        before = ends(new, copy, f"{topic_name}-more", f"A.{topic_name}-more", f"A.A.{topic_name}")
        leads_elsewhere = Proxy(target_cluster.brokers[0].port, port=port)
        leads_elsewhere.start()
        mp.wait_for(lambda: state_of(mirror).startswith("wrong cluster"), 60, "the state")
        time.sleep(LOOKS_S)
        assert ends(new, *before) == before
        assert before == {copy: 10, f"{topic_name}-more": 5, f"A.{topic_name}-more": 0, f"A.A.{topic_name}": 0}
        code, words = verb("status", file, "--check")
        assert (code, "wrong cluster (A leads to another cluster" in words) == (1, True), words
        code, words = verb("doctor", file)
        assert code == 1
        assert "A name leads to another cluster" in words.splitlines()[0], words
        code, words = verb("clusters", file)
        assert (code, "are the same cluster" in words) == (1, True), words
        leads_elsewhere.close()
        source.start()
        mp.produce(old, topic_name, 1, 7)
        mp.wait_for(lambda: ends(new, copy)[copy] == 17 and state_of(mirror) == "caught up", 120, "what came since")
        assert mirror.terminate() == 0


def test_a_second_deployment_with_the_same_aliases_and_another_source(
    source: KafkaCluster, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    target = target_cluster.bootstrap_servers
    for servers, count in ((source.direct_servers, 10), (source_cluster.bootstrap_servers, 20)):
        mp.create_topic(servers, topic_name, 1)
        mp.produce(servers, topic_name, 1, count)
    first = mp.write_properties(
        tmp_path / "first.properties", source.bootstrap_servers, target, topic_name, takes_source=False
    )
    second = mp.write_properties(
        tmp_path / "second.properties", source_cluster.bootstrap_servers, target, topic_name, takes_source=False
    )
    copy = f"A.{topic_name}"
    with mp.MirrorProcess(first, tmp_path / "first.log", "-o", "json") as mirror:
        mp.wait_for(lambda: ends(target, copy)[copy] == 10, 120, "the copy")
        code, words = verb("run", second)
        assert code == 2
        assert words.count("A leads to another cluster: flow A->B is with cluster") == 1, words
        assert mirror.terminate() == 0
    assert verb("run", second, "--once")[0] == 2
    assert ends(target, copy) == {copy: 10}


def test_a_source_that_was_rebuilt(
    source: KafkaCluster, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    target, copy = target_cluster.bootstrap_servers, f"R.{topic_name}"
    for servers, count in ((source.direct_servers, 10), (source_cluster.bootstrap_servers, 4)):
        mp.create_topic(servers, topic_name, 1)
        mp.produce(servers, topic_name, 1, count)

    def written(servers: str) -> Path:
        text = mp.write_properties(tmp_path / "x", servers, target, topic_name, takes_source=False).read_text()
        file = tmp_path / "mm2.properties"
        file.write_text(text.replace("A.", "R.").replace("A->", "R->").replace("= A,", "= R,"))
        return file

    file = written(source.bootstrap_servers)
    code, words = verb("clusters", file)
    assert (code, words.strip().endswith("the flow has not begun")) == (0, True), words
    assert verb("run", file, "--once")[0] == 0
    assert ends(target, copy) == {copy: 10}
    code, words = verb("clusters", file, "-o", "json")
    (row,) = json.loads(words)
    assert (code, row["source_cluster_id"], row["copied_topics"]) == (0, source.cluster_id, 1)
    assert verb("clusters", file, "--accept-source", "--flow", "R->B")[0] == 2, "it is the flow's already"
    file = written(source_cluster.bootstrap_servers)
    assert verb("run", file, "--once")[0] == 2
    code, words = verb("clusters", file)
    assert code == 1
    assert f"as R answers cluster {source_cluster.cluster_id}, and the flow copies from" in words
    code, words = verb("clusters", file, "--accept-source", "--flow", "R->B")
    assert (code, "each one that the new cluster has is copied from its beginning" in words) == (0, True), words
    assert verb("run", file, "--once")[0] == 0
    assert ends(target, copy) == {copy: 14}
    assert "recreated" in verb("losses", file)[1]
    assert verb("clusters", file)[0] == 0
    assert verb("run", written(source.bootstrap_servers), "--once")[0] == 2, "the one before is another one now"
