"""Metrics under sparkmirror's own names.

The names follow Prometheus: base units, counters that end in `_total`, and a 0/1 series for each state.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Iterable
from enum import StrEnum
from heapq import nlargest
from itertools import accumulate
from typing import NamedTuple

from sparkmirror.snapshot.group_standing import GroupState
from sparkmirror.snapshot.snapshot import (
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
from sparkmirror.web.series import Families, labels

MOST_PARTITIONS = 10_000
"""Most partitions in a process that all have their own series.

Above, only the worst partitions have.
"""
WORST_PARTITIONS = 50
"""Partitions with series above `MOST_PARTITIONS`: the largest lags."""
MOST_TOPICS = 2_000
"""Most topics in a process that all have their own series.

Above, only the worst topics have; the flow's series hold the totals.
"""
WORST_TOPICS = 200
"""Topics with series above `MOST_TOPICS`: the largest lags."""
MOST_GROUPS = 500
"""Most groups in a process that all have their own series.

Above this number, or above `MOST_PARTITIONS` partitions, only groups that would skip or read again have series.
"""
WORST_GROUPS = 200
"""Groups with series above `MOST_GROUPS`: those that skip or read again most."""

_FLOW = (
    ("records_total", "counter", "Records copied."),
    ("bytes_total", "counter", "Bytes copied."),
    (
        "lag_records",
        "gauge",
        "Existing offsets at the source that are not copied, of all partitions but those of "
        "sparkmirror_partitions_unknown.",
    ),
    ("held_back_records", "gauge", "Offsets of the lag that an open transaction holds back (read_committed)."),
    (
        "lag_seconds",
        "gauge",
        "Age of the oldest record that is not copied (not fetched yet: time since it was first seen to wait), of the "
        "partition where it is largest.",
    ),
    ("eta_seconds", "gauge", "Time until all but parked, paused and held-back partitions has caught up, at this rate."),
    ("objective_seconds", "gauge", "Promised lag (sparkmirror.objective.seconds)."),
    ("retention_race_seconds", "gauge", "Time until the source deletes records that are not copied, if that is near."),
    ("partitions_unknown", "gauge", "Partitions whose lag is not known."),
    ("processes", "gauge", "Processes that work on the flow or stand by."),
    ("tasks_max", "gauge", "Most Spark tasks for the flow."),
    ("pumps", "gauge", "Pumps that report."),
)
"""A flow's series: names without `sparkmirror_`, types and meanings."""


class Ledgered(NamedTuple):
    """Size of a part of the loss ledger."""

    entries: int = 0
    offsets: int = 0


class HighWater:
    """Highest values so far of counts that may fall; for any thread.

    The loss ledger's count may fall: the ledger is read again when a flow begins again, and looks empty until then.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._highest: dict[tuple[str, str, str], Ledgered] = {}

    def raised(self, flow: Flow) -> dict[tuple[str, str], Ledgered]:
        """Return the highest sizes of the flow's ledger, with this snapshot included.

        The keys are (kind, outcome); entries that are no loss have an empty outcome.
        """
        now: dict[tuple[str, str], Ledgered] = defaultdict(Ledgered)
        for loss in flow.losses:
            key = loss.kind, loss.outcome.value if loss.outcome.is_loss else ""
            now[key] = Ledgered(now[key].entries + loss.entries, now[key].offsets + loss.offsets)
        with self._lock:
            for (kind, outcome), size in now.items():
                before = self._highest.get((flow.flow, kind, outcome), Ledgered())
                raised = Ledgered(max(size.entries, before.entries), max(size.offsets, before.offsets))
                self._highest[flow.flow, kind, outcome] = raised
            return {key[1:]: size for key, size in sorted(self._highest.items()) if key[0] == flow.flow}


def own_families(snapshot: Snapshot, high_water: HighWater) -> Families:
    families = Families()
    _process(families, snapshot.process, snapshot.at_ms)
    for flow in snapshot.flows:
        _standing(families, flow)
        if flow.role is Role.LEADER:
            _figures(families, flow)
            _losses(families, flow, high_water)
            _sides(families, flow)
            _all_groups(families, flow)
            _duties(families, flow)
    leading = [flow for flow in snapshot.flows if flow.role is Role.LEADER]
    _groups(families, leading)
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
    families.declare("sparkmirror_build_info", "gauge", "Always 1; the labels tell versions.").add(build, 1)
    for name, kind, text, value in (
        ("snapshot_timestamp_seconds", "gauge", "Time at which these figures were gathered.", at_ms / 1000),
        ("start_timestamp_seconds", "gauge", "Start of the process.", process.started_ms / 1000),
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
    _states(
        families, "sparkmirror_flow_role", "1 for the role of this process in the flow.", of, "role", Role, flow.role
    )
    families.declare("sparkmirror_processes", "gauge", _help_of("processes")).add(of, flow.processes)
    up = families.declare(
        "sparkmirror_cluster_up", "gauge", "1 if a broker of the cluster answers this process, else 0."
    )
    for side, figures in (("source", flow.source), ("target", flow.target)):
        up.add(f"{of},{labels(side=side, cluster=figures.alias)}", int(not figures.away))


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
        "held_back_records": sum(partition.held_back for topic in flow.topics for partition in topic.partitions),
        "partitions_unknown": flow.unknown,
        "tasks_max": flow.tasks_max,
        "pumps": len(flow.pumps),
    }
    for name, kind, text in _FLOW:
        if name in values:
            families.declare(f"sparkmirror_{name}", kind, text).add(of, values[name])
    _histogram(
        families,
        "sparkmirror_latency_seconds",
        "Time from records' timestamps to their acknowledgements.",
        of,
        flow.latency,
    )
    _histogram(
        families,
        "sparkmirror_heartbeat_latency_seconds",
        "Time from heartbeats' timestamps to their acknowledgements.",
        of,
        flow.heartbeat_latency,
    )
    epochs = families.declare("sparkmirror_epochs_total", "counter", "Ended rounds of the flow, by reason.")
    for reason, count in sorted(flow.epochs.items()):
        epochs.add(f"{of},{labels(reason=reason)}", count)
    families.declare("sparkmirror_topics", "gauge", "Topics that are copied.").add(
        of, sum(bool(topic.partitions) for topic in flow.topics)
    )
    families.declare("sparkmirror_topics_refused", "gauge", "Topics that can't be copied, or not whole.").add(
        of, sum(bool(topic.refused) for topic in flow.topics)
    )
    families.declare(
        "sparkmirror_late_records",
        "gauge",
        "Offsets that came to the source after their topic's writers had moved, and are not copied.",
    ).add(of, sum(topic.late for topic in flow.topics))
    counts = Counter((partition.state, partition.cause) for topic in flow.topics for partition in topic.partitions)
    partitions = families.declare("sparkmirror_partitions", "gauge", "Partitions, by state and its cause.")
    for (state, cause), count in sorted(counts.items()):
        partitions.add(f"{of},{labels(state=state.value, cause=cause.value)}", count)


def _losses(families: Families, flow: Flow, high_water: HighWater) -> None:
    lost = families.declare(
        "sparkmirror_lost_records_total",
        "counter",
        "Offsets in the loss ledger whose records are lost, were taken back by the source, or may be lost.",
    )
    entries = families.declare(
        "sparkmirror_losses_total",
        "counter",
        "Entries of the loss ledger about such records, of a known number or not.",
    )
    expected = families.declare(
        "sparkmirror_expected_gaps_total", "counter", "Offsets in the loss ledger that are no loss."
    )
    for (kind, outcome), size in high_water.raised(flow).items():
        if outcome:
            of = labels(flow=flow.flow, kind=kind, outcome=outcome)
            lost.add(of, size.offsets)
            entries.add(of, size.entries)
        else:
            expected.add(labels(flow=flow.flow, kind=kind), size.offsets)


def _histogram(families: Families, name: str, text: str, of: str, histogram: Histogram) -> None:
    family = families.declare(name, "histogram", text)
    bounds = (*(repr(bound) for bound in LATENCY_BOUNDS_S), "+Inf")
    for bound, count in zip(bounds, accumulate(histogram.counts), strict=True):
        family.add(f'{of},le="{bound}"', count, "_bucket")
    family.add(of, histogram.sum_s, "_sum")
    family.add(of, histogram.total, "_count")


def _sides(families: Families, flow: Flow) -> None:
    of = labels(flow=flow.flow)
    fetched = families.declare("sparkmirror_fetched_bytes_total", "counter", "Bytes in the source's answers.")
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
        ("throttle_seconds_total", "counter", "Time that pumps waited because of brokers' quotas.", figures.throttle_s),
        (
            "certificate_expiry_timestamp_seconds",
            "gauge",
            "End of the first certificate to expire of a cluster's settings.",
            None if ends is None else ends / 1000,
        ),
    ):
        families.declare(f"sparkmirror_{name}", kind, text).add(of, value)


def _all_groups(families: Families, flow: Flow) -> None:
    """Add up the figures of all a flow's groups, whatever their number."""
    of = labels(flow=flow.flow)
    states = Counter(group.state for group in flow.groups)
    groups = families.declare("sparkmirror_groups", "gauge", "Consumer groups, by the state of their offsets.")
    for state in GroupState:
        groups.add(f"{of},{labels(state=state.value)}", states[state])
    for name, text, counts in (
        ("skipped", "skip", [group.skipped for group in flow.groups]),
        ("reread", "read again", [group.reread for group in flow.groups]),
    ):
        known = [count for count in counts if count is not None]
        families.declare(
            f"sparkmirror_groups_{name}_records",
            "gauge",
            f"Records that all groups would {text} if they moved to the target now.",
        ).add(of, sum(known) if len(known) == len(counts) else None)
    synced = [group.synced_ms for group in flow.groups if group.synced_ms is not None]
    families.declare(
        "sparkmirror_groups_synced_timestamp_seconds",
        "gauge",
        "Oldest value of sparkmirror_group_synced_timestamp_seconds.",
    ).add(of, min(synced) / 1000 if synced else None)


def shown_groups(flows: Iterable[Flow]) -> list[tuple[Flow, Group]]:
    """Return the groups that have their own series.

    Returns all groups, or the worst above `MOST_GROUPS` groups or `MOST_PARTITIONS` partitions.
    """
    flows = list(flows)
    every = [(flow, group) for flow in flows for group in flow.groups]
    partitions = sum(len(topic.partitions) for flow in flows for topic in flow.topics)
    if len(every) <= MOST_GROUPS and partitions <= MOST_PARTITIONS:
        return every
    costly = [(flow, group) for flow, group in every if group.skipped or group.reread]
    return nlargest(WORST_GROUPS, costly, key=lambda entry: (entry[1].skipped or 0, entry[1].reread or 0))


def _groups(families: Families, flows: list[Flow]) -> None:
    states = families.declare("sparkmirror_group_state", "gauge", "1 for the state of a group's offsets.")
    skipped = families.declare(
        "sparkmirror_group_skipped_records", "gauge", "Records that a group would skip if it moved to the target now."
    )
    reread = families.declare(
        "sparkmirror_group_reread_records",
        "gauge",
        "Records that a group would read again if it moved to the target now.",
    )
    synced = families.declare(
        "sparkmirror_group_synced_timestamp_seconds",
        "gauge",
        "Last time at which a group's offsets were at the target, of the partition where that is longest ago.",
    )
    lags = families.declare("sparkmirror_group_lag_records", "gauge", "A group's lag, by side.")
    for flow, group in shown_groups(flows):
        of = labels(flow=flow.flow, group=group.group)
        for state in GroupState:
            states.add(f"{of},{labels(state=state.value)}", int(state is group.state))
        skipped.add(of, group.skipped)
        reread.add(of, group.reread)
        synced.add(of, None if group.synced_ms is None else group.synced_ms / 1000)
        for side, value in _group_lags(group):
            lags.add(f"{of},{labels(side=side)}", value)


def _group_lags(group: Group) -> Iterable[tuple[str, int | None]]:
    for side, lags in (
        ("source", [partition.source_lag for partition in group.partitions]),
        ("target", [partition.target_lag for partition in group.partitions]),
    ):
        known = [lag for lag in lags if lag is not None]
        yield side, sum(known) if group.looked_at and len(known) == len(lags) else None


def _duties(families: Families, flow: Flow) -> None:
    for duty in flow.duties:
        of = labels(flow=flow.flow, duty=duty.duty)
        succeeded = None if duty.succeeded_ms is None else duty.succeeded_ms / 1000
        for name, kind, text, value in (
            ("duty_interval_seconds", "gauge", "Interval of a duty.", duty.interval_s),
            ("duty_success_timestamp_seconds", "gauge", "End of a duty's last good turn.", succeeded),
            ("duty_duration_seconds", "gauge", "Duration of a duty's last good turn.", duty.took_s),
            ("duty_failing", "gauge", "1 if a duty's last turn failed, else 0.", int(bool(duty.failing))),
            ("duty_failures_total", "counter", "Failed turns of a duty.", duty.failures),
        ):
            families.declare(f"sparkmirror_{name}", kind, text).add(of, value)


def _topics(families: Families, flows: list[Flow]) -> None:
    lag = families.declare("sparkmirror_topic_lag_records", "gauge", "Lag of a topic whose partitions' lags are known.")
    seconds = families.declare("sparkmirror_topic_lag_seconds", "gauge", "Largest lag of a topic's partitions.")
    records = families.declare("sparkmirror_topic_records_total", "counter", "Records copied of a topic.")
    sizes = families.declare("sparkmirror_topic_bytes_total", "counter", "Bytes copied of a topic.")
    for flow, topic in shown_topics(flows):
        of = labels(flow=flow.flow, topic=topic.topic)
        lag.add(of, _lag(topic))
        seconds.add(
            of, max((partition.lag_s for partition in topic.partitions if partition.lag_s is not None), default=None)
        )
        records.add(of, topic.records)
        sizes.add(of, topic.bytes)
    _partitions(families, flows)


def _lag(topic: Topic) -> int | None:
    lags = [partition.lag for partition in topic.partitions if partition.lag is not None]
    return sum(lags) if len(lags) == len(topic.partitions) else None


def shown_topics(flows: Iterable[Flow]) -> list[tuple[Flow, Topic]]:
    """Return the topics that have their own series.

    Returns all topics, or the `WORST_TOPICS` above `MOST_TOPICS`.
    """
    every = [(flow, topic) for flow in flows for topic in flow.topics if topic.partitions]
    if len(every) <= MOST_TOPICS:
        return every
    return nlargest(WORST_TOPICS, every, key=lambda entry: _lag(entry[1]) or 0)


def shown_partitions(flows: Iterable[Flow]) -> list[tuple[Flow, Topic, Partition]]:
    """Return the partitions that have their own series.

    Returns all partitions, or the `WORST_PARTITIONS` above `MOST_PARTITIONS`.
    """
    every = [(flow, topic, partition) for flow in flows for topic in flow.topics for partition in topic.partitions]
    if len(every) <= MOST_PARTITIONS:
        return every
    return nlargest(WORST_PARTITIONS, every, key=lambda entry: entry[2].lag or 0)


def _partitions(families: Families, flows: list[Flow]) -> None:
    lag = families.declare("sparkmirror_partition_lag_records", "gauge", "Lag of a partition.")
    seconds = families.declare(
        "sparkmirror_partition_lag_seconds",
        "gauge",
        "Age of a partition's oldest record that is not copied; if it was not fetched yet, the time since it was first "
        "seen to wait.",
    )
    records = families.declare("sparkmirror_partition_records_total", "counter", "Records copied of a partition.")
    names = {
        (flow.flow, topic.topic): labels(flow=flow.flow, topic=topic.topic) for flow in flows for topic in flow.topics
    }
    for flow, topic, partition in shown_partitions(flows):
        of = f'{names[flow.flow, topic.topic]},partition="{partition.partition}"'
        lag.add(of, partition.lag)
        seconds.add(of, partition.lag_s)
        records.add(of, partition.records)
