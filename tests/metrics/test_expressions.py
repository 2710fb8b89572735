"""Each selector in each expression of rules and dashboards has a series in a scrape."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.metrics.deployed import DASHBOARDS, PROMETHEUS, TARGET_LABELS, Selector, panels, queries, rules, selectors
from tests.metrics.rich_snapshot import RICH

from sparkmirror.metrics.collector import MirrorCollector
from sparkmirror.metrics.profile import Profile

STRIMZI_ALERTS = {
    "ConnectFailedConnector": 'sum(kafka_connect_connector_status{status="failed"}) by (namespace, pod) > 0',
    "ConnectFailedTask": "sum(kafka_connect_worker_connector_failed_task_count) by (namespace, pod) > 0",
}
REPORTER = [f"kafka_connect_connect_worker_metrics_{name}" for name in ("connector_count", "task_count")] + [
    "kafka_connect_connect_worker_rebalance_metrics_rebalancing",
    "kafka_connect_connect_coordinator_metrics_assigned_connectors",
    "kafka_connect_connect_coordinator_metrics_assigned_tasks",
    "kafka_connect_connector_task_metrics_offset_commit_avg_time_ms",
    'kafka_consumer_consumer_fetch_manager_metrics_records_lag{client_id=~".*replication-consumer"}',
    "kafka_consumer_consumer_metrics_incoming_byte",
    "kafka_consumer_consumer_metrics_connection_count",
    "kafka_producer_producer_metrics_connection_count",
    "kafka_admin_client_admin_client_metrics_connection_count",
    "kafka_producer_producer_metrics_outgoing_byte",
    "kafka_producer_producer_metrics_buffer_available_bytes",
    "jvm_memory_used_bytes",
    "process_cpu_seconds_total",
]
"""What the dashboard of Strimzi's metrics reporter asks for."""
NAMES = [
    "kafka_connect_mirror_source_connector_replication_latency_ms",
    "kafka_connect_mirror_source_connector_replication_latency_ms_max",
    "kafka_connect_mirror_source_connector_record_age_ms_max",
    "kafka_connect_mirror_source_connector_record_rate",
    "kafka_connect_mirror_source_connector_byte_rate",
    "kafka_connect_mirror_source_connector_record_count",
    "kafka_connect_mirror_checkpoint_connector_checkpoint_latency_ms_max",
    "kafka_connect_mirror_mirrorsourceconnector_record_count",
    "kafka_connect_mirror_mirrorcheckpointconnector_checkpoint_latency_ms_avg",
    "kafka_consumer_fetch_manager_records_consumed_total",
    "kafka_connect_mirror_mirrorsourceconnector_byte_count",
    "kafka_connect_worker_connector_running_task_count",
    "kafka_connect_worker_connector_paused_task_count",
    "kafka_connect_worker_connector_unassigned_task_count",
    "kafka_connect_worker_connector_destroyed_task_count",
    "kafka_connect_connector_connector_class",
    "kafka_connect_connector_connector_type",
    "kafka_connect_connector_connector_version",
    "kafka_connect_connector_task_status",
    "kafka_connect_task_error_total_record_failures",
    "jvm_memory_bytes_used",
    "jvm_gc_collection_seconds_sum",
    "jvm_threads_current",
]
"""What else guides, boards and Strimzi's dashboard of Connect ask for."""


@functools.cache
def scrape() -> list[tuple[str, dict[str, str]]]:
    text = MirrorCollector(lambda: RICH, tuple(Profile)).text().decode()
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    recorded = [(rule["record"], {"flow": "A->B"}) for rule in rules("recording.yml")]
    return [(sample.name, {**TARGET_LABELS, **sample.labels}) for sample in samples] + recorded


def unfilled(expression: str) -> list[Selector]:
    """The selectors that select nothing."""
    wanted = list(selectors(expression))
    assert wanted, expression
    return [one for one in wanted if not any(one.selects(*sample) for sample in scrape())]


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_dashboards(path: Path) -> None:
    assert [(title, empty) for title, expression in panels(path) if (empty := unfilled(expression))] == []
    assert [empty for query in queries(path) if "(" in query and (empty := unfilled(query))] == []


@pytest.mark.parametrize("name", ["alerts.yml", "recording.yml"])
def test_rules(name: str) -> None:
    assert [empty for rule in rules(name) if (empty := unfilled(rule["expr"]))] == []


@pytest.mark.parametrize("expression", [*STRIMZI_ALERTS.values(), *REPORTER, *NAMES])
def test_what_others_ask_for(expression: str) -> None:
    assert unfilled(expression) == []


def test_labels_that_are_grouped_by_are_there() -> None:
    known = {label for _, labels in scrape() for label in labels}
    expressions = [expression for path in DASHBOARDS for _, expression in panels(path)]
    expressions += [rule["expr"] for name in ("alerts.yml", "recording.yml") for rule in rules(name)]
    for expression in expressions:
        for grouped in re.findall(r"\b(?:by|on)\s*\(([^)]*)\)", expression):
            assert {label.strip() for label in grouped.split(",")} <= known | {""}, expression


def test_the_evaluator_finds_what_is_not_there() -> None:
    assert unfilled('sum(sparkmirror_partitions{state="parkd"}) / sparkmirror_lag_records') == [
        Selector("sparkmirror_partitions", (("state", "=", "parkd"),))
    ]
    assert unfilled('kafka_producer_buffer_available_bytes{clientid=~"connector.*"}')
    assert not unfilled('sparkmirror_partitions{state!~"park.*"}')


def test_each_alert_has_its_page() -> None:
    text = (PROMETHEUS.parents[1] / "docs" / "runbook.md").read_text()
    for rule in rules("alerts.yml"):
        assert f"\n## {rule['alert']}\n" in text
        assert rule["annotations"]["runbook_url"] == f"docs/runbook.md#{rule['alert'].lower()}"
