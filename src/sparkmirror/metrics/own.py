"""Metrics under our own names: base units, counters that end in `_total`, states as one 0/1 series a state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from heapq import nlargest
from itertools import accumulate

from sparkmirror.engine.snapshot import (
    LATENCY_BOUNDS_S,
    ClusterFigures,
    Flow,
    FlowState,
    Group,
    Histogram,
    Partition,
    Process,
    Role,
    Snapshot,
    Topic,
)
from sparkmirror.metrics.series import Families, labels
from sparkmirror.sync.group_standing import GroupState

MOST_PARTITIONS = 10_000
"""Of one process: above, partitions have no series of their own but for the worst."""
WORST_PARTITIONS = 50
"""Partitions that keep their series above `MOST_PARTITIONS`: those with the largest lag."""

_FLOW = (
    ("records_total", "counter", "Records copied."),
    ("bytes_total", "counter", "Bytes copied."),
    ("lag_records", "gauge", "Offsets at the source that are there and not copied."),
    ("lag_seconds", "gauge", "Age of the oldest record that is not copied, of the partition where it is largest."),
    ("eta_seconds", "gauge", "Until all has caught up, at the present rate."),
    ("objective_seconds", "gauge", "The lag that people were promised (sparkmirror.objective.seconds)."),
    ("retention_race_seconds", "gauge", "Until the source deletes what is not copied, if that is near."),
    ("partitions_unknown", "gauge", "Partitions whose lag is not known."),
    ("processes", "gauge", "Processes that work on the flow or stand by."),
    ("tasks_max", "gauge", "Most Spark tasks that the flow is spread over."),
)


def own_families(snapshot: Snapshot) -> Families:
    """All of them, of one snapshot."""
    families = Families()
    _process(families, snapshot.process, snapshot.at_ms)
    for flow in snapshot.flows:
        _standing(families, flow)
        if flow.role is Role.LEADER:
            _figures(families, flow)
            _sides(families, flow)
            _groups(families, flow)
            _duties(families, flow)
    leading = [flow for flow in snapshot.flows if flow.role is Role.LEADER]
    _topics(families, leading)
    return families


def _process(families: Families, process: Process, at_ms: int) -> None:
    build = labels(
        version=process.version,
        spark=process.spark_version,
        kafka_python=process.kafka_python_version,
        python=process.python_version,
        mode=process.mode,
    )
    families.declare("sparkmirror_build_info", "gauge", "1; the labels tell versions.").add(build, 1)
    for name, kind, text, value in (
        ("snapshot_timestamp_seconds", "gauge", "When these figures were put together.", at_ms / 1000),
        ("start_timestamp_seconds", "gauge", "When the process started.", process.started_ms / 1000),
        ("cpu_seconds_total", "counter", "CPU time of the driver process.", process.cpu_s),
        ("memory_bytes", "gauge", "Resident memory of the driver process.", process.memory_bytes),
        ("spark_slots", "gauge", "Tasks that Spark can run at once.", process.slots),
        ("spark_tasks", "gauge", "Tasks that run.", process.tasks),
        ("jvm_memory_bytes", "gauge", "Memory that Spark's JVM uses.", process.jvm_memory_bytes),
        ("jvm_threads", "gauge", "Threads of Spark's JVM.", process.jvm_threads),
        ("jvm_gc_seconds_total", "counter", "Time that Spark's JVM spent on garbage.", process.jvm_gc_s),
    ):
        families.declare(f"sparkmirror_{name}", kind, text).add("", value)


def _standing(families: Families, flow: Flow) -> None:
    of = labels(flow=flow.flow)
    _states(
        families, "sparkmirror_flow_state", "1 for the state that the flow is in.", of, "state", FlowState, flow.state
    )
    _states(families, "sparkmirror_flow_role", "1 for what this process is to the flow.", of, "role", Role, flow.role)
    families.declare("sparkmirror_processes", "gauge", _help_of("processes")).add(of, flow.processes)


def _states(
    families: Families, name: str, text: str, of: str, label: str, states: type[StrEnum], current: StrEnum
) -> None:
    family = families.declare(name, "gauge", text)
    for state in states:
        family.add(f"{of},{labels(**{label: state.value})}", int(state is current))


def _help_of(name: str) -> str:
    return next(text for known, _, text in _FLOW if known == name)


def _figures(families: Families, flow: Flow) -> None:
    of = labels(flow=flow.flow)
    values = {
        "records_total": flow.records,
        "bytes_total": flow.bytes,
        "lag_records": flow.lag,
        "lag_seconds": flow.lag_s,
        "eta_seconds": flow.eta_s,
        "objective_seconds": flow.objective_s,
        "retention_race_seconds": flow.retention_s,
        "partitions_unknown": flow.unknown,
        "tasks_max": flow.tasks_max,
    }
    for name, kind, text in _FLOW:
        if name in values:
            families.declare(f"sparkmirror_{name}", kind, text).add(of, values[name])
    _histogram(
        families, "sparkmirror_latency_seconds", "From records' timestamps to their acknowledgements.", of, flow.latency
    )
    _histogram(families, "sparkmirror_heartbeat_latency_seconds", "The same of heartbeats.", of, flow.heartbeat_latency)
    epochs = families.declare("sparkmirror_epochs_total", "counter", "Spark jobs of the flow that ended, by why.")
    for reason, count in sorted(flow.epochs.items()):
        epochs.add(f"{of},{labels(reason=reason)}", count)
    lost = families.declare("sparkmirror_lost_records_total", "counter", "Offsets in the loss ledger that are lost.")
    expected = families.declare(
        "sparkmirror_expected_gaps_total", "counter", "Offsets in the loss ledger that are no loss."
    )
    for loss in flow.losses:
        (lost if loss.is_loss else expected).add(f"{of},{labels(kind=loss.kind)}", loss.offsets)
    counts = Counter((one.state, one.cause) for topic in flow.topics for one in topic.partitions)
    partitions = families.declare("sparkmirror_partitions", "gauge", "Partitions, by state and its cause.")
    for (state, cause), count in sorted(counts.items()):
        partitions.add(f"{of},{labels(state=state.value, cause=cause.value)}", count)


def _histogram(families: Families, name: str, text: str, of: str, histogram: Histogram) -> None:
    family = families.declare(name, "histogram", text)
    bounds = (*(repr(bound) for bound in LATENCY_BOUNDS_S), "+Inf")
    for bound, count in zip(bounds, accumulate(histogram.counts), strict=True):
        family.add(f'{of},le="{bound}"', count, "_bucket")
    family.add(of, histogram.sum_s, "_sum")
    family.add(of, histogram.total, "_count")


def _sides(families: Families, flow: Flow) -> None:
    of = labels(flow=flow.flow)
    fetched = families.declare("sparkmirror_fetched_bytes_total", "counter", "Bytes that the source answered.")
    written = families.declare("sparkmirror_written_bytes_total", "counter", "Bytes sent to the target.")
    fetched.add(of, flow.source.bytes)
    written.add(of, flow.target.bytes)
    for side, figures in (("source", flow.source), ("target", flow.target)):
        _side(families, f"{of},{labels(side=side, cluster=figures.alias)}", figures)


def _side(families: Families, of: str, figures: ClusterFigures) -> None:
    ends = figures.certificate_ends_ms
    for name, kind, text, value in (
        ("requests_total", "counter", "Requests of the pumps to a cluster.", figures.requests),
        ("request_errors_total", "counter", "Answers and connections that failed.", figures.errors),
        ("throttle_seconds_total", "counter", "How long brokers' quotas made pumps wait.", figures.throttle_s),
        (
            "certificate_expiry_timestamp_seconds",
            "gauge",
            "When the first certificate of a cluster's settings ends.",
            None if ends is None else ends / 1000,
        ),
    ):
        families.declare(f"sparkmirror_{name}", kind, text).add(of, value)


def _groups(families: Families, flow: Flow) -> None:
    for group in flow.groups:
        of = labels(flow=flow.flow, group=group.group)
        text = "1 for the state of a group's offsets."
        _states(families, "sparkmirror_group_state", text, of, "state", GroupState, group.state)
        reread = families.declare(
            "sparkmirror_group_reread_records", "gauge", "Records that a group would read again at the target now."
        )
        reread.add(of, group.reread)
        synced = families.declare(
            "sparkmirror_group_synced_timestamp_seconds", "gauge", "When a group's offsets were last all at the target."
        )
        synced.add(of, None if group.synced_ms is None else group.synced_ms / 1000)
        lag = families.declare("sparkmirror_group_lag_records", "gauge", "A group's lag, by side.")
        for side, value in _group_lags(group):
            lag.add(f"{of},{labels(side=side)}", value)


def _group_lags(group: Group) -> Iterable[tuple[str, int | None]]:
    for side, lags in (
        ("source", [one.source_lag for one in group.partitions]),
        ("target", [one.target_lag for one in group.partitions]),
    ):
        known = [lag for lag in lags if lag is not None]
        yield side, sum(known) if len(known) == len(lags) else None


def _duties(families: Families, flow: Flow) -> None:
    for duty in flow.duties:
        of = labels(flow=flow.flow, duty=duty.duty)
        succeeded = None if duty.succeeded_ms is None else duty.succeeded_ms / 1000
        for name, kind, text, value in (
            ("duty_interval_seconds", "gauge", "How often a duty is done.", duty.interval_s),
            ("duty_success_timestamp_seconds", "gauge", "When a duty's last good turn ended.", succeeded),
            ("duty_duration_seconds", "gauge", "How long that turn took.", duty.took_s),
            ("duty_failing", "gauge", "Whether a duty's last turn failed.", int(bool(duty.failing))),
            ("duty_failures_total", "counter", "Turns of a duty that failed.", duty.failures),
        ):
            families.declare(f"sparkmirror_{name}", kind, text).add(of, value)


def _topics(families: Families, flows: list[Flow]) -> None:
    lag = families.declare("sparkmirror_topic_lag_records", "gauge", "Lag of a topic whose partitions' lags are known.")
    seconds = families.declare("sparkmirror_topic_lag_seconds", "gauge", "The largest of a topic's partitions.")
    records = families.declare("sparkmirror_topic_records_total", "counter", "Records copied of a topic.")
    sizes = families.declare("sparkmirror_topic_bytes_total", "counter", "Bytes copied of a topic.")
    for flow in flows:
        for topic in flow.topics:
            of = labels(flow=flow.flow, topic=topic.topic)
            lags = [one.lag for one in topic.partitions if one.lag is not None]
            lag.add(of, sum(lags) if len(lags) == len(topic.partitions) else None)
            seconds.add(of, max((one.lag_s for one in topic.partitions if one.lag_s is not None), default=None))
            records.add(of, sum(one.records for one in topic.partitions))
            sizes.add(of, sum(one.bytes for one in topic.partitions))
    _partitions(families, flows)


def shown_partitions(flows: Iterable[Flow]) -> list[tuple[Flow, Topic, Partition]]:
    """Partitions that have series of their own: all, or the `WORST_PARTITIONS` above `MOST_PARTITIONS`."""
    every = [(flow, topic, one) for flow in flows for topic in flow.topics for one in topic.partitions]
    if len(every) <= MOST_PARTITIONS:
        return every
    return nlargest(WORST_PARTITIONS, every, key=lambda entry: entry[2].lag or 0)


def _partitions(families: Families, flows: list[Flow]) -> None:
    lag = families.declare("sparkmirror_partition_lag_records", "gauge", "Lag of a partition.")
    seconds = families.declare("sparkmirror_partition_lag_seconds", "gauge", "Age of its oldest record not copied.")
    records = families.declare("sparkmirror_partition_records_total", "counter", "Records copied of a partition.")
    for flow, topic, one in shown_partitions(flows):
        of = labels(flow=flow.flow, topic=topic.topic, partition=one.partition)
        lag.add(of, one.lag)
        seconds.add(of, one.lag_s)
        records.add(of, one.records)
