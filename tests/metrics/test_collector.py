"""A scrape of snapshots made up."""

from __future__ import annotations

import math
import time
from collections import Counter

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from snapshot_samples import flow, group, partition, snapshot, topic

from sparkmirror.engine.snapshot import ClusterFigures, FlowState, LossCount, PartitionState, Role, Snapshot
from sparkmirror.metrics.collector import MirrorCollector
from sparkmirror.metrics.profiles import Profile
from sparkmirror.offsets.cause import Cause


def scraped(of: Snapshot, *profiles: Profile) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    text = MirrorCollector(lambda: of, profiles).text().decode()
    samples: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = tuple(sorted(sample.labels.items()))
            assert key not in samples.setdefault(sample.name, {}), f"twice: {sample}"
            samples[sample.name][key] = sample.value
    return samples


def sized(count: int) -> Snapshot:
    parts = [partition(n, lag=n) for n in range(100)]
    return snapshot(flow(topics=tuple(topic(f"topic-{n}", *parts) for n in range(count // 100))))


def test_each_series_is_there_once_in_all_profiles_together() -> None:
    other = flow(flow="C->B", source=ClusterFigures("C"))
    scraped(snapshot(flow(), other), *Profile)


def test_parked_partitions_have_their_cause_and_never_its_text() -> None:
    parked = partition(1, state=PartitionState.PARKED, cause=Cause.TOO_LARGE, reason="private words")
    of = snapshot(flow(topics=(topic("orders", partition(), parked),)))
    series = scraped(of)["sparkmirror_partitions"]
    assert series[(("cause", "too-large"), ("flow", "A->B"), ("state", "parked"))] == 1
    assert b"private words" not in MirrorCollector(lambda: of, tuple(Profile)).text()


def test_one_state_is_1_and_a_standby_tells_no_figures() -> None:
    samples = scraped(snapshot(flow(role=Role.STANDBY, state=FlowState.STANDING_BY)))
    assert sum(samples["sparkmirror_flow_state"].values()) == 1
    assert "sparkmirror_records_total" not in samples


def test_what_is_not_known_is_absent() -> None:
    assert "sparkmirror_lag_records" not in scraped(snapshot(flow(lag=None)))


def test_what_is_no_loss_is_not_counted_as_lost() -> None:
    losses = (LossCount("expired", 1, 7, 0, "w"), LossCount("compacted", 1, 5, 0, "w", is_loss=False))
    assert list(scraped(snapshot(flow(losses=losses)))["sparkmirror_lost_records_total"].values()) == [7]


def test_names_with_quotes_and_backslashes() -> None:
    samples = scraped(snapshot(flow(groups=(group('a"b\\c\nd'),))))
    assert ("group", 'a"b\\c\nd') in next(iter(samples["sparkmirror_group_reread_records"]))


def test_mirror_maker_2_without_a_record() -> None:
    of = snapshot(flow(topics=(topic("orders", partition(latency_ms=None)),)))
    samples = scraped(of, Profile.AWS)
    prefix = "kafka_connect_mirror_source_connector_replication_latency_ms"
    assert list(samples[prefix].values()) == [0.0]
    assert math.isnan(next(iter(samples[prefix + "_avg"].values())))


def test_strimzi_filters_match_beside_aws_ones() -> None:
    ((labels, _),) = scraped(snapshot(), *Profile)["kafka_consumer_fetch_manager_records_lag"].items()
    assert dict(labels)["clientid"].endswith('replication-consumer"')
    assert dict(labels)["clientId"] == "consumer-mm2-msc-cons-0"


def test_a_registry_collects_the_same() -> None:
    registry = CollectorRegistry()
    registry.register(MirrorCollector(snapshot))
    assert b"sparkmirror_lag_records{" in generate_latest(registry)


def test_above_10_000_partitions_the_50_worst_stay() -> None:
    samples = scraped(sized(10_100))
    assert len(samples["sparkmirror_partition_lag_records"]) == 50
    assert min(samples["sparkmirror_partition_lag_records"].values()) == 99
    assert len(samples["sparkmirror_topic_lag_records"]) == 101


@pytest.mark.parametrize("profiles", [(), *((one,) for one in Profile), tuple(Profile)])
def test_a_scrape_of_10_000_partitions(profiles: tuple[Profile, ...]) -> None:
    of = sized(10_000)
    collector = MirrorCollector(lambda: of, profiles)
    started = time.perf_counter()
    text = collector.text()
    took = time.perf_counter() - started
    counts = Counter(line.partition("{")[0] for line in text.decode().splitlines())
    assert counts["sparkmirror_partition_lag_records"] == 10_000
    print(f"{profiles}: {took * 1000:.0f} ms, {len(text) / 1e6:.2f} MB")
    assert took < 0.3
    assert len(text) < 5_000_000


def test_rows_of_whole_topics_have_the_same_sums() -> None:
    parts = [partition(n, lag=n, records=n, records_per_s=n / 2) for n in range(701)]
    samples = scraped(snapshot(flow(topics=(topic("orders", *parts),))), Profile.STRIMZI)
    assert list(samples["kafka_consumer_fetch_manager_records_lag"].values()) == [sum(range(701))]
    assert list(samples["kafka_connect_mirror_mirrorsourceconnector_record_rate"].values()) == [sum(range(701)) / 2]


def test_rows_of_whole_flows_have_the_same_sums() -> None:
    topics = tuple(topic(f"t{n}", partition(lag=n)) for n in range(701))
    samples = scraped(snapshot(flow(topics=topics)), *Profile)
    assert list(samples["kafka_consumer_fetch_manager_records_lag"].values()) == [sum(range(701))]
