"""The names that MirrorMaker 2's dashboards ask for, in the three ways that exporters write them.

`aws`: the JMX exporter rules of aws-samples/mirrormaker2-msk-migration. `strimzi`: those of Strimzi's examples.
`strimzi-reporter`: Strimzi's metrics reporter. Where two profiles share a name and not its labels, one series has the
labels of both, so that no sum counts twice.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from sparkmirror.engine.snapshot import Flow, Partition, PartitionState, Process, Role, Snapshot, Spread, Topic
from sparkmirror.metrics.series import Families, labels

NAN = float("nan")

MOST_PARTITIONS = 700
"""Of one process: above, each topic has one row for all its partitions; above as many topics, each flow has one.

With three profiles a partition takes 3.3 kB of the 5 MB that a scrape may have.
"""


class Profile(StrEnum):
    """A way to write MirrorMaker 2's metrics."""

    AWS = "aws"
    STRIMZI = "strimzi"
    STRIMZI_REPORTER = "strimzi-reporter"


_SPREADS = (("", "last"), ("_min", "least"), ("_max", "most"), ("_avg", "mean"))
_NO_COUNTERPART = "NaN: nothing here is counterpart to it."


def add_profiles(families: Families, snapshot: Snapshot, profiles: Collection[Profile]) -> None:
    """Add what the profiles name to the families of the same scrape."""
    if not profiles:
        return
    flows = [flow for flow in snapshot.flows if flow.role is Role.LEADER]
    _partitions(families, flows, profiles)
    for flow in flows:
        _checkpoints(families, flow, profiles)
        _tasks(families, flow, profiles)
    _worker(families, snapshot, flows, profiles)
    _process(families, snapshot.process)


def _partitions(families: Families, flows: list[Flow], profiles: Collection[Profile]) -> None:
    for flow, topic, one, number in _rows(flows):
        values = _mirror_values(one)
        if Profile.AWS in profiles:
            of = labels(
                source=flow.source.alias,  # Two sources may have a topic of one name, and it is one at the target
                destination=flow.target.alias,
                topic=topic.target_topic,
                partition=number,
            )
            _mirror(families, "kafka_connect_mirror_source_connector", of, values)
        if Profile.STRIMZI in profiles or Profile.STRIMZI_REPORTER in profiles:
            of = labels(
                source=flow.source.alias,
                target=flow.target.alias,
                topic=topic.target_topic,
                partition=number,
            )
            _mirror(families, "kafka_connect_mirror_mirrorsourceconnector", of, values)
        for name, client in _clients(flow, profiles, "consumer", "fetch_manager"):
            of = f"{client},{labels(topic=topic.topic, partition=number)}"
            _add(families, f"{name}_records_lag", of, one.lag, "Lag of a partition, in records.")


def _rows(flows: list[Flow]) -> list[tuple[Flow, Topic, Partition, str]]:
    """What has series, with its partition's label. Sums over all rows are the same with rows of whole topics."""
    topics = [(flow, topic) for flow in flows for topic in flow.topics if topic.partitions]
    if len(topics) > MOST_PARTITIONS:
        every = [(flow, tuple(one for topic in flow.topics for one in topic.partitions)) for flow in flows]
        return [(flow, Topic("all", "all"), _together(ones), "all") for flow, ones in every if ones]
    if sum(len(topic.partitions) for _, topic in topics) > MOST_PARTITIONS:
        return [(flow, topic, _together(topic.partitions), "all") for flow, topic in topics]
    return [(flow, topic, one, str(one.partition)) for flow, topic in topics for one in topic.partitions]


def _together(partitions: tuple[Partition, ...]) -> Partition:
    lags = [one.lag for one in partitions if one.lag is not None]
    return Partition(
        partition=-1,
        state=PartitionState.UNKNOWN,
        lag=sum(lags) if len(lags) == len(partitions) else None,
        records=sum(one.records for one in partitions),
        bytes=sum(one.bytes for one in partitions),
        records_per_s=sum(one.records_per_s for one in partitions),
        bytes_per_s=sum(one.bytes_per_s for one in partitions),
        latency_ms=_worst([one.latency_ms for one in partitions if one.latency_ms]),
        age_ms=_worst([one.age_ms for one in partitions if one.age_ms]),
    )


def _worst(spreads: list[Spread]) -> Spread | None:
    if not spreads:
        return None
    return Spread(
        max(one.last for one in spreads),
        min(one.least for one in spreads),
        max(one.most for one in spreads),
        max(one.mean for one in spreads),
    )


def _mirror_values(one: Partition) -> list[tuple[str, float]]:
    values: list[tuple[str, float]] = [
        ("record_count", one.records),
        ("record_rate", one.records_per_s),
        ("byte_count", one.bytes),
        ("byte_rate", one.bytes_per_s),
    ]
    return values + _spread("record_age_ms", one.age_ms) + _spread("replication_latency_ms", one.latency_ms)


def _spread(name: str, spread: Spread | None) -> list[tuple[str, float]]:
    """As MirrorMaker 2 without a record: 0 for the last value, NaN for the rest."""
    if spread is None:
        return [(name + suffix, NAN if suffix else 0.0) for suffix, _ in _SPREADS]
    return [(name + suffix, getattr(spread, attribute)) for suffix, attribute in _SPREADS]


def _mirror(families: Families, prefix: str, of: str, values: list[tuple[str, float]]) -> None:
    for name, value in values:
        _add(families, f"{prefix}_{name}", of, value, f"MirrorMaker 2's {name.replace('_', '-')}.")


def _add(
    families: Families, name: str, of: str, value: float | None, text: str = "As MirrorMaker 2's.", kind: str = "gauge"
) -> None:
    families.declare(name, kind, text).add(of, value)


def _clients(flow: Flow, profiles: Collection[Profile], client: str, group: str) -> list[tuple[str, str]]:
    """Metric prefix and client's label: one for both JMX profiles, one for the reporter's."""
    kafka_id = f"{flow.flow}|{flow.flow}.MirrorSourceConnector-0|replication-consumer"
    aws_id = "consumer-mm2-msc-cons-0"
    if client == "producer":
        kafka_id, aws_id = f"connector-producer-{flow.flow}.MirrorSourceConnector-0", "producer-mm2-msc-0"
    of = {}
    if Profile.AWS in profiles:
        of["clientId"] = aws_id
    if Profile.STRIMZI in profiles:
        of["clientid"] = f'"{kafka_id}"'
    clients = [(f"kafka_{client}_{group}" if group else f"kafka_{client}", labels(flow=flow.flow, **of))] if of else []
    if Profile.STRIMZI_REPORTER in profiles:
        middle = f"{client}_{group}_metrics" if group else f"{client}_metrics"
        clients.append((f"kafka_{client}_{middle}", labels(flow=flow.flow, client_id=kafka_id)))
    return clients


def _checkpoints(families: Families, flow: Flow, profiles: Collection[Profile]) -> None:
    for group in flow.groups:
        if group.checkpoint_ms is None:
            continue
        for at in group.partitions:
            of = labels(
                source=flow.source.alias,
                target=flow.target.alias,
                group=group.group,
                topic=at.target_topic,
                partition=at.partition,
            )
            for suffix, _ in _SPREADS:
                name = f"checkpoint_latency_ms{suffix}"
                text = "How long the group's last checkpoint took."
                if Profile.AWS in profiles:
                    _add(families, f"kafka_connect_mirror_checkpoint_connector_{name}", of, group.checkpoint_ms, text)
                if Profile.STRIMZI in profiles or Profile.STRIMZI_REPORTER in profiles:
                    _add(
                        families,
                        f"kafka_connect_mirror_mirrorcheckpointconnector_{name}",
                        of,
                        group.checkpoint_ms,
                        text,
                    )


def _connector(flow: Flow, connector: str, profiles: Collection[Profile]) -> str:
    """The label's value; Strimzi's exporter keeps the quotes of JMX around a name with `->`."""
    name = f"{flow.flow}.{connector}"
    return f'"{name}"' if Profile.STRIMZI in profiles else name


def _tasks(families: Families, flow: Flow, profiles: Collection[Profile]) -> None:
    source = _connector(flow, "MirrorSourceConnector", profiles)
    jmx = Profile.AWS in profiles or Profile.STRIMZI in profiles
    for pump in flow.pumps:
        of = labels(connector=source, task=pump.task)
        # The reporter's dashboard asks for this one under its JMX name, too
        _add(
            families,
            "kafka_connect_source_task_source_record_active_count",
            of,
            pump.in_flight,
            "Records that were fetched and are not acknowledged.",
        )
        if jmx:
            _add(families, "kafka_connect_connector_task_offset_commit_avg_time_ms", of, NAN, _NO_COUNTERPART)
        if Profile.STRIMZI_REPORTER in profiles:
            _add(families, "kafka_connect_connector_task_metrics_offset_commit_avg_time_ms", of, NAN, _NO_COUNTERPART)
        status = "paused" if _all_paused(flow) else "running"
        _add(
            families,
            "kafka_connect_connector_status",
            f"{of},{labels(status=status)}",
            1,
            "1; the label tells the status of a task.",
        )
    latencies = [pump.fetch_ms for pump in flow.pumps if pump.fetch_ms is not None]
    fetch = sum(latencies) / len(latencies) if latencies else NAN
    for name, of in _clients(flow, profiles, "consumer", "fetch_manager"):
        _add(families, f"{name}_fetch_latency_avg", of, fetch, "Mean time from a fetch to its answer, in ms.")
        suffix = "" if "metrics" in name else "_total"
        _add(families, f"{name}_records_consumed{suffix}", of, flow.records, "Records copied.", "counter")
    for name, of in _clients(flow, profiles, "consumer", ""):
        suffix = "" if "metrics" in name else "_total"
        _add(families, f"{name}_incoming_byte{suffix}", of, flow.source.bytes, "Bytes fetched.", "counter")
    for name, of in _clients(flow, profiles, "producer", ""):
        suffix = "" if "metrics" in name else "_total"
        _add(families, f"{name}_outgoing_byte{suffix}", of, flow.target.bytes, "Bytes written.", "counter")
        _add(families, f"{name}_buffer_available_bytes", of, NAN, _NO_COUNTERPART)


def _all_paused(flow: Flow) -> bool:
    states = {one.state for topic in flow.topics for one in topic.partitions}
    return states == {PartitionState.PAUSED}


def _worker(families: Families, snapshot: Snapshot, flows: list[Flow], profiles: Collection[Profile]) -> None:
    joining = int(any(flow.role is Role.JOINING for flow in snapshot.flows))
    connectors, tasks = 3 * len(flows), sum(len(flow.pumps) + 2 for flow in flows)
    prefixes = []
    if Profile.AWS in profiles or Profile.STRIMZI in profiles:
        prefixes.append(("kafka_connect_worker", "kafka_connect_worker_rebalance", "kafka_connect_coordinator"))
    if Profile.STRIMZI_REPORTER in profiles:
        metrics = ("worker_metrics", "worker_rebalance_metrics", "connect_coordinator_metrics")
        worker, rebalance, coordinator = metrics
        prefixes.append(
            (f"kafka_connect_connect_{worker}", f"kafka_connect_connect_{rebalance}", f"kafka_connect_{coordinator}")
        )
    for worker, rebalance, coordinator in prefixes:
        _add(families, f"{worker}_connector_count", "", connectors, "Three a flow, as MirrorMaker 2 runs them.")
        _add(families, f"{worker}_task_count", "", tasks, "Pumps, and two a flow for checkpoints and heartbeats.")
        _add(families, f"{rebalance}_rebalancing", "", joining, "1 while a flow's lease is waited for.")
        _add(families, f"{coordinator}_assigned_connectors", "", connectors, "Connectors of this process.")
        _add(families, f"{coordinator}_assigned_tasks", "", tasks, "Tasks of this process.")
        for flow in flows:
            of = labels(connector=_connector(flow, "MirrorSourceConnector", profiles))
            paused = len(flow.pumps) if _all_paused(flow) else 0
            for state, count in (
                ("total", len(flow.pumps)),
                ("running", len(flow.pumps) - paused),
                ("paused", paused),
                ("failed", 0),
                ("unassigned", 0),
                ("destroyed", 0),
            ):
                _add(families, f"{worker}_connector_{state}_task_count", of, count, "Tasks of a connector, by state.")


def _process(families: Families, process: Process) -> None:
    for name in ("jvm_memory_used_bytes", "jvm_memory_bytes_used"):
        _add(families, name, "", process.jvm_memory_bytes, "Memory that Spark's JVM uses.")
    _add(families, "jvm_threads_current", "", process.jvm_threads, "Threads of Spark's JVM.")
    _add(families, "jvm_gc_collection_seconds_sum", "", process.jvm_gc_s, "Time of garbage collection.", "counter")
    _add(families, "process_cpu_seconds_total", "", process.cpu_s, "CPU time of the driver process.", "counter")
