"""`import sparkmirror as sm` on real clusters: start, wait, ask, verify, translate."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from lab import KafkaCluster
from pyspark.sql import SparkSession
from test_observer import commit
from tests.support import mirror_process as mp

import sparkmirror as sm
from sparkmirror.errors import ClusterUnreachable, ConfigError

pytestmark = [pytest.mark.broker, pytest.mark.spark]

COUNT = 500
PAGE = Path(__file__).parents[2] / "docs" / "python.md"


def mirror_of(source: KafkaCluster, target: KafkaCluster, topic: str, spark: SparkSession, **more: object) -> sm.Mirror:
    properties = {
        **mp.ONE_REPLICA,
        "refresh.topics.interval.seconds": 1,
        "refresh.groups.interval.seconds": 1,
        "emit.checkpoints.interval.seconds": 1,
        "sync.group.offsets.interval.seconds": 1,
        "sync.group.offsets.enabled": True,
    }
    return sm.Mirror(
        source=source.bootstrap_servers,
        target=target.bootstrap_servers,
        topics=topic,
        groups=topic,
        properties=properties,
        spark=spark,
    )


def test_the_lines_of_a_notebook(
    spark: SparkSession, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str
) -> None:
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 2)
    mp.produce(source_cluster.bootstrap_servers, topic_name, 2, COUNT)
    commit(source_cluster, topic_name, topic_name, 100)
    mirror = mirror_of(source_cluster, target_cluster, topic_name, spark)
    assert repr(mirror) == "<sparkmirror.Mirror source->target (not running)>"
    with mirror:
        mirror.await_caught_up(timeout=120)
        copied = sum(mp.end_offsets(target_cluster.bootstrap_servers, f"source.{topic_name}", 2))
        assert copied == COUNT, "it returns when all is there"
        assert repr(mirror) == "<sparkmirror.Mirror source->target (running)>"
        mp.wait_for(lambda: mirror.status()["source->target"].flow.lag == 0, 60, "heartbeats are copied, too")
        assert "source-&gt;target" in mirror._repr_html_()
        mp.produce(source_cluster.bootstrap_servers, topic_name, 2, 10)
        mirror.await_caught_up(timeout=60)
        copied = sum(mp.end_offsets(target_cluster.bootstrap_servers, f"source.{topic_name}", 2))
        assert copied == COUNT + 10
        mp.wait_for(lambda: mirror.groups().where("target_offset is not null").count() > 0, 60, "a group is set")
        (group,) = mirror.groups().where("partition = 0").collect()
        assert (group.group, group.topic, group.source_offset) == (topic_name, topic_name, 100)

        verified = mirror.verify(topics=(topic_name,))
        assert verified
        assert (verified.records, verified.differences.count()) == (COUNT + 10, 0)
        assert verified.partitions.groupBy().sum("records").first() == (COUNT + 10,)
        assert mirror.losses().where(f"topic = '{topic_name}'").count() == 0, "other tests' losses stay in the ledger"
        (runs,) = mirror.offset_map().where(f"topic = '{topic_name}'").groupBy("flow").sum("records").collect()
        assert tuple(runs) == ("source->target", COUNT + 10)
        assert mirror.receipts().where("records > 0").count() > 0
        assert mirror.translate(topic_name, 0, 7) == (f"source.{topic_name}", 0, 7, "")
    assert repr(mirror) == "<sparkmirror.Mirror source->target (not running)>"
    mirror.stop()
    assert mirror.status()["source->target"].flow.records >= COUNT, "as it was published last"
    with pytest.raises(RuntimeError, match="make another one"):
        mirror.start()


def test_columns_of_a_frame_are_translated(
    spark: SparkSession, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str
) -> None:
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 2)
    mp.produce(source_cluster.bootstrap_servers, topic_name, 2, 100)
    with mirror_of(source_cluster, target_cluster, topic_name, spark) as mirror:
        mirror.await_caught_up(timeout=120)
    servers = source_cluster.bootstrap_servers, target_cluster.bootstrap_servers
    frame = spark.createDataFrame(
        [("a", topic_name, 0, 3), ("b", topic_name, 1, 50), ("c", topic_name, 1, 99), ("d", None, 0, 1)],
        "app string, topic string, partition int, offset long",
    )
    route = {
        "clusters": "source, target",
        "source.bootstrap.servers": servers[0],
        "target.bootstrap.servers": servers[1],
        "source->target.enabled": "true",
    }
    with sm.Translator(route) as translator:
        rows = {row.app: row for row in translator.translate_frame(frame).collect()}
        for app in "abc":
            alone = translator.translate(topic_name, rows[app].partition, rows[app].offset)
            assert (rows[app].translated_topic, rows[app].translated_offset, rows[app].reason) == (
                alone.topic,
                alone.offset,
                alone.reason,
            )
        assert rows["a"].translated_offset == 3
        assert "not copied yet" in rows["c"].reason
        assert (rows["d"].translated_offset, rows["d"].reason) == (None, "topic, partition or offset is null")
        with pytest.raises(ConfigError, match="place: the DataFrame has the columns app, topic, partition, offset"):
            translator.translate_frame(frame, topic="place")


def test_an_error_of_the_mirror_reaches_who_asks_next(
    spark: SparkSession, source_cluster: KafkaCluster, topic_name: str
) -> None:
    """Source and target are one cluster: the mirror ends itself."""
    mirror = mirror_of(source_cluster, source_cluster, topic_name, spark).start()
    with pytest.raises((ConfigError, ClusterUnreachable), match="same cluster"):
        mirror.await_caught_up(timeout=60)
    mirror.stop()


def test_time_runs_out_with_the_partitions_that_are_left(
    spark: SparkSession, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str
) -> None:
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 1)
    mp.produce(source_cluster.bootstrap_servers, topic_name, 1, 10)
    mirror = mirror_of(source_cluster, target_cluster, topic_name, spark)
    with pytest.raises(RuntimeError, match="not started"):
        mirror.await_caught_up()
    with mirror, pytest.raises(TimeoutError, match=f"not caught up after 0 s: .*{topic_name}-0: its pos"):
        mirror.await_caught_up(timeout=0)


def test_the_pages_first_lines_run_as_written(
    spark: SparkSession,
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    topic = f"orders-{topic_name}"
    mp.create_topic(source_cluster.bootstrap_servers, topic, 1)
    mp.produce(source_cluster.bootstrap_servers, topic, 1, 20)
    servers = source_cluster.bootstrap_servers, target_cluster.bootstrap_servers
    mp.write_properties(tmp_path / "mm2.properties", *servers, f"orders, {topic}")
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"## A mirror in a notebook\n\n```python\n(.+?)```", PAGE.read_text(), re.DOTALL)
    exec(block, {"spark": spark})  # noqa: S102 - the page's own code
    printed = capsys.readouterr().out
    assert "A->B: " in printed
    assert "equal: 20 records are equal" in printed
    assert "Translation(topic='A.orders', partition=0, offset=None" in printed
