"""A query survives an outage of any length, and tells of what it could not copy."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.config.model import TransformQuery
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.kafka.cluster.topic_descriptions import PartitionDescription, TopicDescription
from sparkmirror.mirror.engine.completion import Completion
from sparkmirror.mirror.engine.flow_view import FlowView
from sparkmirror.mirror.engine.queried_topics import QueriedTopics
from sparkmirror.mirror.sync.topics import MirroredTopic, TopicSync
from sparkmirror.queries import query_worker
from sparkmirror.queries.query_worker import QueryWorker


class Pauses(threading.Event):
    """It notes the pauses and lets none last."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.seconds.append(timeout)
        return False


def test_pauses_between_failures_double_up_to_half_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """2 to the number of failures is more than a float holds after 1,024 of them: a night without the target."""
    worker = QueryWorker.__new__(QueryWorker)
    pauses = worker.stopping = Pauses()
    worker.driver = SimpleNamespace(topics=SimpleNamespace(ends=None))  # type: ignore[assignment]

    def fail() -> bool:
        raise ClusterUnreachable("the target is down")

    monkeypatch.setattr(worker, "_copy", fail)
    monkeypatch.setattr(worker, "_told", lambda error: None)
    monkeypatch.setattr(worker, "_goes_on", lambda: len(pauses.seconds) < 1_100)
    worker.run()
    assert pauses.seconds[:6] == [1, 2, 4, 8, 16, 30]
    assert set(pauses.seconds[5:]) == {30}
    assert len(pauses.seconds) == 1_100


def test_once_ends_with_the_reason_if_a_query_fails_before_it_looks_at_its_logs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its driver and Spark's session are stand-ins."""
    part = PartitionDescription(partition=0, leader=1, leader_epoch=0, replicas=(1,), in_sync=(1,))
    mirrored = MirroredTopic(*(TopicDescription(name, b"1" * 16, (part,)) for name in ("t", "A.t")))
    query = TransformQuery(name="q", topics=("t",), sql="SELECT * FROM records")
    side = ClusterConfig(alias="A", bootstrap_servers=("a:1",))
    driver: Any = SimpleNamespace(
        name="A->B",
        flow=FlowConfig(source=side, target=side.model_copy(update={"alias": "B"})),
        topics=SimpleNamespace(
            ends={("t", 0): 50},
            owed={},
            newest=TopicSync(mirrored=(mirrored,), created=(), grown=(), refused={}),
            queried=QueriedTopics([query], lambda _: False),
        ),
        view=FlowView(),
        reports=SimpleNamespace(loss_watch=SimpleNamespace(added=())),
        held=lambda: True,
    )
    spark: Any = None
    monkeypatch.setattr(query_worker, "SparkSession", lambda _: SimpleNamespace(newSession=lambda: None))
    worker = QueryWorker(driver, "q", lambda records: records, spark)
    worker.stopping = Pauses()

    def fail() -> bool:
        raise ClusterUnreachable("its topic of plans can't be created")

    monkeypatch.setattr(worker, "_copy", fail)
    worker.run()
    assert worker.is_done
    assert Completion().missing(driver) == ["A->B: t-0 is not copied: its topic of plans can't be created"]
