"""Figures of Connect's tasks and of Kafka's clients, in the profiles' names."""

from __future__ import annotations

import math
from typing import Any

import pytest
from tests.metrics.scrapes import scraped
from tests.support.snapshot_samples import flow, partition, snapshot, topic

from sparkmirror.look.metrics.profile import Profile
from sparkmirror.snapshot.snapshot import ClusterFigures, Duty, FlowState, PartitionState, Pump, Role, Snapshot


def tasks_of(of: Snapshot, name: str, *profiles: Profile) -> dict[tuple[str, str], float]:
    """By kind of connector, and task: the value."""
    series = scraped(of, *profiles).get(name, {})
    told = [(dict(key), value) for key, value in series.items()]
    return {(labels["connector"].rpartition(".")[2], labels["task"]): value for labels, value in told}


def two_tasks(**changes: Any) -> Snapshot:
    """Two tasks: the first moves 3 records/s in two partitions and has 7 on the way, the second none."""
    pumps = tuple(
        Pump(task=task, host="host-1", partitions=2, records=records, bytes=0, memory_bytes=0, in_flight=active)
        for task, records, active in ((0, 500, 7), (1, 40, 0))
    )
    moving = [partition(n, records_per_s=rate, task=task) for n, rate, task in ((0, 1.0, 0), (1, 2.0, 0), (2, 0.0, 1))]
    return snapshot(flow(topics=(topic("orders", *moving),), pumps=pumps, **changes))


def test_what_each_task_has_written_and_writes() -> None:
    duties = (
        Duty(duty="checkpoints", interval_s=60.0, written=12),
        Duty(duty="heartbeats", interval_s=1.0, written=60),
    )
    of, prefix = two_tasks(duties=duties), "kafka_connect_source_task_source_record"
    source = [("MirrorSourceConnector", "0"), ("MirrorSourceConnector", "1")]
    written = dict(zip(source, (500, 40), strict=True)) | {
        ("MirrorCheckpointConnector", "0"): 12,
        ("MirrorHeartbeatConnector", "0"): 60,
    }
    assert tasks_of(of, f"{prefix}_write_total", Profile.AWS) == written
    assert tasks_of(of, f"{prefix}_poll_total", Profile.AWS) == written
    assert tasks_of(of, f"{prefix}_write_rate", Profile.AWS) == dict(zip(source, (3, 0), strict=True))
    assert tasks_of(of, f"{prefix}_active_count", Profile.AWS) == dict(zip(source, (7, 0), strict=True))


def test_what_a_duty_has_not_written_yet_is_absent() -> None:
    written = tasks_of(snapshot(), "kafka_connect_source_task_source_record_write_total", Profile.AWS)
    assert list(written) == [("MirrorSourceConnector", "0")]


@pytest.mark.parametrize(
    ("changes", "shares"),
    [
        ({"took_s": 0.1}, (1, 0)),
        ({"took_s": 0.1, "failing": "not authorized"}, (0, 1)),
        ({"failing": "not authorized"}, (0, 1)),
        ({}, None),
    ],
)
def test_the_last_write_of_connects_offsets(changes: dict[str, Any], shares: tuple[int, int] | None) -> None:
    of = snapshot(flow(duties=(Duty(duty="Connect's offsets", interval_s=60.0, **changes),)))
    names = [f"kafka_connect_connector_task_offset_commit_{word}_percentage" for word in ("success", "failure")]
    told = [value for name in names for value in tasks_of(of, name, Profile.AWS).values()]
    assert len(told) == 2
    assert all(map(math.isnan, told)) if shares is None else tuple(told) == shares


def test_a_paused_connector_has_paused_tasks() -> None:
    of = snapshot(flow(topics=(topic("orders", partition(state=PartitionState.PAUSED)),)))
    key = ("MirrorSourceConnector", "0")
    assert tasks_of(of, "kafka_connect_connector_task_running_ratio", Profile.AWS)[key] == 0
    assert tasks_of(of, "kafka_connect_connector_task_pause_ratio", Profile.AWS)[key] == 1


def test_rebalances_are_ended_rounds_also_where_none_is_known() -> None:
    name = "kafka_connect_worker_rebalance_completed_rebalances_total"
    ended = snapshot(
        flow(epochs={"load": 2, "topics": 1}),
        flow(flow="C->B", source=ClusterFigures(alias="C"), epochs={"settings": 4}),
    )
    standby = snapshot(flow(role=Role.STANDBY, state=FlowState.STANDING_BY))
    assert [list(scraped(of, Profile.AWS)[name].values()) for of in (ended, standby)] == [[7], [0]]


def test_clients_by_topic_have_the_sums_of_all() -> None:
    topics = (topic("orders", partition(records=3, bytes=30)), topic("stock", partition(records=4, bytes=50)))
    samples = scraped(snapshot(flow(topics=topics, records=7)), Profile.STRIMZI)
    told = {
        dict(key)["topic"]: value
        for key, value in samples["kafka_consumer_fetch_manager_records_consumed_total"].items()
    }
    assert told == {"orders": 3, "stock": 4}
    assert sum(samples["kafka_consumer_fetch_manager_bytes_consumed_total"].values()) == 80
    sent = {dict(key)["topic"]: value for key, value in samples["kafka_producer_topic_record_send_total"].items()}
    assert sent == {"A.orders": 3, "A.stock": 4}
    assert list(samples["kafka_producer_record_send_total"].values()) == [7]


def test_above_100_topics_clients_have_one_row_for_each_flow() -> None:
    topics = tuple(topic(f"t{n}", partition(records=n)) for n in range(101))
    gone = 7
    samples = scraped(snapshot(flow(topics=topics, records=sum(range(101)) + gone)), *Profile)
    for name in ("kafka_consumer_fetch_manager_records_consumed_total", "kafka_producer_topic_record_send_total"):
        assert {dict(key)["topic"]: value for key, value in samples[name].items()} == {"all": sum(range(101)) + gone}, (
            "also what was copied of a topic that is gone"
        )


def test_above_500_topics_the_flows_row_counts_topics_that_are_gone() -> None:
    topics = tuple(topic(f"t{n}", partition(records=1, bytes=2)) for n in range(501))
    samples = scraped(snapshot(flow(topics=topics, records=508, bytes=1_009)), Profile.AWS)
    for name, value in (("record_count", 508), ("byte_count", 1_009)):
        assert list(samples[f"kafka_connect_mirror_source_connector_{name}"].values()) == [value]


def test_only_names_of_strimzis_rules_have_jmx_quotes() -> None:
    samples = scraped(snapshot(), *Profile)
    quoted = {
        name for name, series in samples.items() for key in series if dict(key).get("connector", "").startswith('"')
    }
    assert "kafka_connect_worker_connector_failed_task_count" in quoted
    assert not [name for name in quoted if "_metrics_" in name]
