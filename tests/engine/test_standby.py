"""A process that stands by is ready to work: on one machine its Spark runs before it gets the lease."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from lab import KafkaCluster
from pyspark import SparkContext
from tests.support import mirror_process as mp

from sparkmirror.config import ClusterConfig, FlowConfig, MirrorConfig, load_mm2_properties
from sparkmirror.errors import CopyIncomplete
from sparkmirror.mirror.engine import mirror as module
from sparkmirror.mirror.engine import spark_start
from sparkmirror.mirror.engine.lease import Lease
from sparkmirror.mirror.engine.mirror import STAND_BY_SESSIONS, Mirror


@pytest.mark.broker
@pytest.mark.parametrize(
    ("settings", "started"),
    [
        ({}, True),
        ({"spark.master": "spark://127.0.0.1:1"}, False),
        ({"spark.master": "spark://127.0.0.1:1", "spark.sparkmirror.standby.warm": "true"}, True),
    ],
    ids=["local", "cluster", "warm"],
)
def test_spark_of_a_standby(
    source_cluster: KafkaCluster,
    target_cluster: KafkaCluster,
    topic_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    settings: Mapping[str, str],
    started: bool,
) -> None:
    alias = f"A{topic_name[-3:].strip('-')}{len(settings)}"
    asked = threading.Event()

    def no_spark(*_: object) -> SparkContext:
        asked.set()
        raise OSError("this test needs none")

    monkeypatch.setattr(spark_start, "start_spark", no_spark)
    topic = f"lease-{topic_name}"
    mp.create_topic(target_cluster.bootstrap_servers, topic, 1)
    other = Lease(
        ClusterConfig(alias="B", bootstrap_servers=(target_cluster.bootstrap_servers,)), f"{alias}-mm2", topic, 6000
    )
    other.start()
    mp.wait_for(other.held, 180, "the other's lease")
    path = mp.write_properties(
        tmp_path / "mm2.properties",
        source_cluster.bootstrap_servers,
        target_cluster.bootstrap_servers,
        topic_name,
        settings,
    )
    text = path.read_text()
    path.write_text(text.replace("A.", f"{alias}.").replace("A->", f"{alias}->").replace("= A,", f"= {alias},"))
    mirror = Mirror(load_mm2_properties(str(path)))
    thread = threading.Thread(target=mirror.run, daemon=True)
    thread.start()
    try:
        mp.wait_for(lambda: "standing by" in mirror.drivers[0].leadership.standing_by, 180, "the mirror to stand by")
        if started:
            assert asked.wait(20)
        else:
            assert not asked.wait(1)
        assert not mirror.drivers[0].held()
    finally:
        mirror.stop()
        thread.join(20)
        other.release()
    assert not thread.is_alive()


def test_with_once_the_wait_for_the_lease_begins_with_its_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the process has worked before."""
    now, waited = 0.0, 0
    source, target = (ClusterConfig(alias=alias, bootstrap_servers=(f"{alias}:1",)) for alias in "ab")
    flow = FlowConfig(source=source, target=target, group_session_timeout_ms=10_000)
    driver = SimpleNamespace(name=flow.name, flow=flow, leadership=SimpleNamespace(standing_by="joining"))
    mirror = Mirror(MirrorConfig(path="test", flows=(flow,)), once=True, use_lease=False)
    nothing: Any = SimpleNamespace(
        open=lambda: None, start=lambda: None, close=lambda *_: None, follow=list, begin=lambda _: None, is_begun=True
    )
    registry: Any = SimpleNamespace(**vars(nothing), drivers=[driver], exchange_beats=lambda: None, is_due=False)
    mirror.registry = registry
    for part in ("_surroundings", "_publishing", "_spark"):
        monkeypatch.setattr(mirror, part, nothing)
    held = iter([True, False, False, True])

    def work(_: object) -> None:
        nonlocal now, waited
        now, waited = now + 3600, 0

    def turn() -> bool:
        nonlocal now, waited
        now, waited = now + 10, waited + 1
        return False

    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(mirror, "_held", lambda: [driver] if next(held, False) else [])
    monkeypatch.setattr(mirror, "_work", work)
    monkeypatch.setattr(mirror, "_turn", turn)
    with pytest.raises(CopyIncomplete, match="a->b: joining"):
        mirror.run()
    assert now == 2 * 3600 + 2 * 10 + waited * 10
    assert waited == STAND_BY_SESSIONS + 1
