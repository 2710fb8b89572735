"""What public dashboards, alerts and guides for MirrorMaker 2 ask for, by the exporter that they are made for.

Topics, clusters and tasks are those of `rich_snapshot.py`. Each name is there, or `ABSENT` says why not.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from sparkmirror.look.metrics.profile import Profile

_SHORT = [
    "kafka_connect_worker_connector_count < 4",
    "kafka_connect_worker_task_count",
    "sum(kafka_connect_worker_connector_running_task_count) / sum(kafka_connect_worker_connector_total_task_count)",
    "kafka_connect_worker_connector_failed_task_count",
    "kafka_connect_worker_connector_paused_task_count",
    "kafka_connect_worker_connector_unassigned_task_count",
    "kafka_connect_worker_connector_destroyed_task_count",
    "kafka_connect_worker_connector_restarting_task_count",
    "increase(kafka_connect_worker_task_startup_failure_total[5m])",
    "kafka_connect_worker_rebalance_completed_rebalances_total",
    "kafka_connect_worker_rebalance_rebalancing",
    "kafka_connect_worker_rebalance_rebalance_avg_time_ms",
    "kafka_connect_worker_rebalance_rebalance_max_time_ms",
    "kafka_connect_coordinator_assigned_connectors",
    "kafka_connect_coordinator_assigned_tasks",
    "kafka_connect_coordinator_last_heartbeat_seconds_ago",
    "sum by (connector) (rate(kafka_connect_source_task_source_record_write_total[1m]))",
    "sum by (connector, task) (kafka_connect_source_task_source_record_write_rate)",
    "sum(rate(kafka_connect_source_task_source_record_poll_total[1m]))",
    "kafka_connect_source_task_source_record_poll_rate",
    "kafka_connect_source_task_source_record_active_count",
    "kafka_connect_source_task_source_record_active_count_max",
    "kafka_connect_source_task_poll_batch_avg_time_ms",
    "kafka_connect_task_error_total_record_errors",
    "kafka_connect_task_error_total_record_failures",
    "kafka_connect_task_error_total_records_skipped",
    "kafka_connect_task_error_total_errors_logged",
    "kafka_connect_task_error_total_retries",
    "kafka_connect_task_error_deadletterqueue_produce_requests",
    "kafka_connect_connector_task_offset_commit_avg_time_ms",
    "kafka_connect_connector_task_offset_commit_max_time_ms",
    "kafka_connect_connector_task_offset_commit_success_percentage",
    "kafka_connect_connector_task_running_ratio",
    "kafka_connect_connector_task_batch_size_avg",
    'sum(rate(kafka_consumer_fetch_manager_records_consumed_total{topic="orders"}[5m]))',
    "sum by (topic) (rate(kafka_consumer_fetch_manager_bytes_consumed_total[5m]))",
    "kafka_consumer_fetch_manager_records_consumed_rate",
    "kafka_consumer_fetch_manager_bytes_consumed_rate",
    'kafka_consumer_fetch_manager_records_lag{topic="orders"}',
    "kafka_consumer_fetch_manager_records_lag_max",
    "kafka_consumer_fetch_manager_fetch_latency_avg",
    "kafka_consumer_fetch_manager_fetch_throttle_time_avg",
    "rate(kafka_consumer_incoming_byte_total[5m])",
    "kafka_consumer_connection_count",
    'kafka_producer_topic_record_send_total{topic="A.orders"}',
    "kafka_producer_record_send_rate",
    "rate(kafka_producer_record_send_total[5m])",
    "kafka_producer_record_error_rate",
    "rate(kafka_producer_record_retry_total[5m])",
    "kafka_producer_request_latency_avg",
    "kafka_producer_compression_rate_avg",
    "rate(kafka_producer_outgoing_byte_total[5m])",
    "kafka_producer_connection_count",
    "kafka_producer_buffer_available_bytes",
    "kafka_admin_client_connection_count",
    "sum without (area) (jvm_memory_bytes_used)",
    "jvm_memory_used_bytes",
    "jvm_memory_max_bytes",
    "jvm_threads_current",
    "sum(rate(jvm_gc_collection_seconds_sum[5m]))",
    "rate(process_cpu_seconds_total[5m])",
]
"""Under both sets of rules that shorten names."""

_FULL_TASKS = [
    "sum(kafka_connect_source_task_metrics_source_record_active_count)",
    "kafka_connect_source_task_metrics_source_record_active_count_avg",
    "sum(kafka_connect_source_task_metrics_source_record_poll_rate)",
    "sum(kafka_connect_source_task_metrics_source_record_write_rate)",
    "kafka_connect_task_error_metrics_total_record_errors",
    "kafka_connect_task_error_metrics_total_record_failures",
    "kafka_connect_task_error_metrics_total_records_skipped",
    "sum by (connector) (rate(kafka_connect_task_error_metrics_total_errors_logged[5m]))",
    "sum(rate(kafka_connect_task_error_metrics_total_retries[5m]))",
    "kafka_connect_task_error_metrics_deadletterqueue_produce_failures",
    "max by (connector) (kafka_connect_task_error_metrics_last_error_timestamp != 0)",
    "kafka_connect_connector_task_metrics_offset_commit_avg_time_ms",
    "min by (connector) (kafka_connect_connector_task_metrics_offset_commit_success_percentage)",
    "kafka_connect_connector_task_metrics_offset_commit_failure_percentage",
    "kafka_connect_connector_task_metrics_running_ratio",
    "kafka_connect_connector_task_metrics_pause_ratio",
]
_FULL = [
    *_FULL_TASKS,
    "kafka_connect_connect_worker_metrics_connector_count",
    "kafka_connect_connect_worker_metrics_task_count",
    "kafka_connect_connect_worker_metrics_connector_running_task_count",
    "kafka_connect_connect_worker_rebalance_metrics_rebalancing",
    "kafka_connect_connect_coordinator_metrics_assigned_connectors",
    "kafka_connect_connect_coordinator_metrics_assigned_tasks",
    "kafka_connect_connect_coordinator_metrics_last_heartbeat_seconds_ago",
    'kafka_consumer_consumer_fetch_manager_metrics_records_lag{client_id=~".*replication-consumer"}',
    "kafka_consumer_consumer_fetch_manager_metrics_records_lag_max",
    "kafka_consumer_consumer_fetch_manager_metrics_records_consumed_rate",
    "kafka_consumer_consumer_metrics_connection_count",
    "sum by (client_id) (kafka_producer_producer_metrics_buffer_available_bytes)",
    "kafka_producer_producer_metrics_connection_count",
    "kafka_producer_producer_topic_metrics_record_error_rate",
    "kafka_admin_client_admin_client_metrics_connection_count",
    *(
        f"kafka_connect_mirror_mirrorsourceconnector_{name}"
        for name in ("record_count", "record_rate", "byte_count", "byte_rate", "record_age_ms_max")
    ),
]

BOARDS: dict[str, tuple[tuple[Profile, ...], list[str]]] = {
    "rules of the AWS kit": (
        (Profile.AWS,),
        [
            *_SHORT,
            "kafka_connect_mirror_source_connector_replication_latency_ms > 0",
            "max_over_time(max(kafka_connect_mirror_source_connector_replication_latency_ms_max)[60s:15s])",
            "kafka_connect_mirror_source_connector_replication_latency_ms_avg",
            'kafka_connect_mirror_source_connector_record_age_ms{source="A", topic="A.orders"}',
            "avg(kafka_connect_mirror_source_connector_record_age_ms_avg)",
            "sum by (topic) (kafka_connect_mirror_source_connector_record_rate)",
            "sum(kafka_connect_mirror_source_connector_byte_rate)",
            'rate(kafka_connect_mirror_source_connector_record_count{topic=~"A.*"}[5m])',
            "kafka_connect_mirror_checkpoint_connector_checkpoint_latency_ms",
            "max by (source, group) (kafka_connect_mirror_checkpoint_connector_checkpoint_latency_ms_max)",
            "kafka_connect_mirror_heartbeat_connector_last_heartbeat_timestamp",
            'sum(kafka_connect_connector_status{status="failed"}) by (namespace, pod) > 0',
        ],
    ),
    "rules of the AWS kit, with Connect's names as by Debezium's examples": (
        (Profile.AWS, Profile.JMX_EXPORTER),
        [
            *_FULL_TASKS,
            "count(kafka_connect_worker_metrics_task_count)",
            "kafka_connect_worker_metrics_connector_count",
            "sum(kafka_connect_worker_metrics_connector_failed_task_count)",
            'sum(kafka_connect_worker_metrics_connector_running_task_count{connector=~".*MirrorSourceConnector"})',
            "rate(kafka_connect_worker_metrics_connector_startup_failure_total[5m])",
            "rate(kafka_connect_worker_rebalance_metrics_completed_rebalances_total[5m])",
            "kafka_connect_worker_rebalance_metrics_time_since_last_rebalance_ms",
            "kafka_connect_coordinator_metrics_assigned_tasks",
            *(
                f'sum(rate(kafka_connect_source_task_metrics_source_record_write_total{{connector=~".*{kind}"}}[1m]))'
                for kind in ("MirrorSourceConnector", "MirrorCheckpointConnector", "MirrorHeartbeatConnector")
            ),
            "sum(rate(kafka_connect_source_task_metrics_source_record_poll_total[1m]))",
            "max(kafka_connect_mirror_source_connector_replication_latency_ms_max >= 0)",
            "max(kafka_connect_mirror_source_connector_record_age_ms_max >= 0)"
            " / -deriv(max(kafka_connect_mirror_source_connector_record_age_ms_max >= 0)[10m:])",
            "sum by (topic) (kafka_consumer_fetch_manager_records_consumed_rate"
            '{client_id=~".*replication-consumer", topic="orders"})',
            'sum(kafka_producer_record_send_rate{client_id=~"connector-producer-.*"})',
            'min(kafka_producer_buffer_available_bytes{client_id=~"connector-producer-.*"})',
            'max(kafka_producer_request_latency_max{client_id=~"connector-producer-.*"})',
        ],
    ),
    "rules of Strimzi's examples": (
        (Profile.STRIMZI,),
        [
            *_SHORT,
            "max(sum(kafka_consumer_fetch_manager_records_lag"
            '{clientid!~"consumer-mirrormaker2-.*"}) by (topic, partition))',
            'sum(kafka_consumer_fetch_manager_records_lag{clientid=~".*replication-consumer\\""})'
            " by (topic, partition)",
            "sum(delta(kafka_consumer_fetch_manager_records_lag[5m])) by (topic, partition)",
            "max(sum(kafka_connect_mirror_mirrorsourceconnector_replication_latency_ms) by (partition, topic))",
            "max(sum(kafka_connect_mirror_mirrorsourceconnector_record_age_ms) by (partition, topic))",
            'kafka_connect_mirror_mirrorsourceconnector_byte_count{topic="A.orders"}',
            "kafka_connect_mirror_mirrorcheckpointconnector_checkpoint_latency_ms_avg",
            'sum(kafka_connect_source_task_source_record_active_count{connector=~"\\".*MirrorSourceConnector\\""})',
            "sum(kafka_connect_connector_status * on (connector) group_left (connector_class)"
            " kafka_connect_connector_connector_class) by (connector, status, connector_class)",
            "kafka_connect_connector_connector_type",
            "kafka_connect_connector_connector_version",
            "sum(kafka_connect_task_error_total_record_failures * on (connector, task) group_left (status)"
            " kafka_connect_connector_task_status) by (connector, status, task)",
            'kafka_connect_connector_task_status{status="running"}',
            'kafka_connect_connector_task_status{status="failed"}',
            "sum(kafka_connect_worker_connector_failed_task_count) by (namespace, pod) > 0",
            'sum(rate(container_cpu_usage_seconds_total{container=~".+-mirrormaker2"}[5m])) by (pod)',
            'strimzi_kafka_mm2_resource_info{ready!="True"}',
        ],
    ),
    "Strimzi's metrics reporter": (
        (Profile.STRIMZI_REPORTER,),
        [
            *_FULL,
            "sum(rate(kafka_consumer_consumer_metrics_incoming_byte[5m]))",
            "sum(rate(kafka_producer_producer_metrics_outgoing_byte[5m]))",
            "sum(rate(kafka_producer_producer_node_metrics_incoming_byte[5m]))",
            'kafka_consumer_consumer_fetch_manager_metrics_records_consumed{topic="orders"}',
            "rate(kafka_connect_source_task_metrics_source_record_write[5m])",
            "kafka_connect_connect_worker_rebalance_metrics_completed_rebalances",
            "kafka_connect_connector_metrics_status_info * on (connector) group_left (connector_class)"
            " kafka_connect_connector_metrics_connector_class_info",
            "kafka_connect_connector_metrics_connector_version_info",
            "kafka_connect_connector_metrics_connector_type_info",
            "sum(kafka_connect_task_error_metrics_total_record_failures * on (connector, task) group_left (status)"
            " kafka_connect_connector_task_metrics_status_info) by (connector, status, task)",
            "sum(kafka_connect_connector_task_metrics_offset_commit_avg_time_ms"
            '{connector=~".*SourceConnector", task=~"[0-9]+"})',
        ],
    ),
    "the JMX exporter without rules": (
        (Profile.JMX_EXPORTER,),
        [
            *_FULL,
            'kafka_consumer_consumer_fetch_manager_metrics_records_consumed_total{topic="orders"}',
            "kafka_consumer_consumer_fetch_manager_metrics_bytes_consumed_total",
            "rate(kafka_consumer_consumer_metrics_incoming_byte_total[5m])",
            "kafka_producer_producer_topic_metrics_record_send_total",
            "rate(kafka_producer_producer_metrics_record_send_total[5m])",
            "kafka_connect_source_task_metrics_source_record_write_total",
            "kafka_connect_source_task_metrics_source_record_poll_total",
            "kafka_connect_connect_worker_rebalance_metrics_completed_rebalances_total",
            "kafka_connect_mirror_mirrorcheckpointconnector_checkpoint_latency_ms_max",
        ],
    ),
    "other tools and rules": (
        tuple(Profile),
        [
            "connect_mirror_mirrorsourceconnector_record_age_ms",
            'kafka_connect_connector_state{connector=~".*MirrorSource.*"} != 1',
            'kafka_connect_task_state{state="failed"}',
            "sum by (consumergroup) (kafka_consumergroup_lag)",
        ],
    ),
}
"""Kind of exporter -> profiles that have its names, and expressions."""

IN_TROUBLE = {
    expression for _, expressions in BOARDS.values() for expression in expressions if '"failed"' in expression
} | {"sum(kafka_connect_worker_connector_failed_task_count) by (namespace, pod) > 0"}
"""Expressions that have no data, in the original, either, while nothing has failed."""

ABSENT = {
    "*_total_retries": "Tries again are not counted by task: `sparkmirror_request_errors_total` counts the "
    "failed requests of the pumps.",
    "*_total_errors_logged, *_last_error_timestamp": "Errors are states, not lines of a log: `…total_record_failures`, "
    "and the page and `sparkmirror status` have the reason of each parked partition.",
    "*_active_count_avg, *_active_count_max": "Only the present number is known: `…source_record_active_count`.",
    "*_poll_batch_*": "No task polls: `…fetch_latency_avg` is the time from a fetch to its answer.",
    "*_batch_size_*, *_compression_rate*": "Batches pass through whole: their sizes and codecs are the source's.",
    "*_startup_*": "A connector is not started by itself: one that can't begin is `failed` in "
    "`…connector_failed_task_count`.",
    "*_rebalance_avg_time_ms, *_rebalance_max_time_ms, *_time_since_last_rebalance_ms": "The time between two rounds "
    "is not measured.",
    "*_last_heartbeat_seconds_ago": "There is no group of Connect's workers: `sparkmirror_flow_role` tells whether "
    "this process holds the flow's lease.",
    "*_record_error_*, *_record_retry_*": "No record is given up: what the target refuses parks its partition, and "
    '`sparkmirror_partitions{state="parked"}` counts it.',
    "*_request_latency_*": "Not measured by request: `lines` of `sparkmirror top -o json` has the round trip to "
    "each broker.",
    "*_throttle_time_*": "`sparkmirror_throttle_seconds_total` has the time that quotas took.",
    "*_node_metrics_*": "Traffic is not counted by broker: `…incoming_byte`, `…outgoing_byte`.",
    "kafka_connect_mirror_heartbeat_*": "MirrorMaker 2 has no such metric: `…source_record_write_total` of "
    "MirrorHeartbeatConnector counts heartbeats, `sparkmirror_heartbeat_latency_seconds` has their latencies.",
    "connect_mirror_*": "Of one's own rules: MirrorMaker 2's names begin with `kafka_connect_mirror_`.",
    "kafka_connect_connector_state, kafka_connect_task_state": "Of exporters that ask Connect's REST interface: let "
    "them ask `sparkmirror serve`.",
    "kafka_consumergroup_*": "Of kafka_exporter: `sparkmirror_group_lag_records` has the lags on both sides.",
    "jvm_memory_max_bytes": "Of a Connect worker's heap: records pass through Python "
    "processes, whose memory the page shows.",
    "container_*": "Of cAdvisor.",
    "strimzi_kafka_mm2_resource_info": "Of kube-state-metrics, from the resource's status.",
}
"""Names, with `*` for any letters -> why they are not there, and what to ask for."""


def is_absent(name: str) -> bool:
    """Whether the page says why a name is not there."""
    return any(fnmatchcase(name, pattern) for patterns in ABSENT for pattern in patterns.split(", "))
