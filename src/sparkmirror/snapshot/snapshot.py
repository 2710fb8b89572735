"""A mirror's state at one moment, as one frozen value.

Metrics, page, terminal, doctor and status files are all made from it.

The values are plain, without a handle on any resource. They travel as JSON (`to_json`, `from_json`): through the status
topic to terminals elsewhere, and to the page. Times are milliseconds since 1970, durations seconds; `None` is "not
known". Counts are since `Process.started_ms`, and never go back while that process lives, whatever becomes of its
pumps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache

from pydantic import TypeAdapter

from sparkmirror.exact.position.cause import Cause as Cause
from sparkmirror.pump.messages.figures import LATENCY_BOUNDS_S as LATENCY_BOUNDS_S
from sparkmirror.snapshot.flow_state import ELSEWHERE as ELSEWHERE
from sparkmirror.snapshot.flow_state import FlowState as FlowState
from sparkmirror.snapshot.group_standing import GroupState
from sparkmirror.snapshot.late_offsets import late_words
from sparkmirror.snapshot.loss_counts import LossCount as LossCount
from sparkmirror.snapshot.loss_counts import LossRow as LossRow
from sparkmirror.snapshot.unmatched_pattern import UnmatchedPattern as UnmatchedPattern


class Role(StrEnum):
    """The process's part in a flow."""

    LEADER = "leader"
    """Holder of the lease, or sole process of a flow without lease."""
    STANDBY = "standby"
    JOINING = "joining"


class PartitionState(StrEnum):
    """A partition's state."""

    UNKNOWN = "unknown"
    """No pump has reported the partition."""
    WAITING = "waiting"
    """The position is being read, or the pump waits for an event."""
    RUNNING = "running"
    PAUSED = "paused"
    """An operator has paused the topic."""
    PARKED = "parked"
    """The partition can't be copied now.

    `cause` and `reason` say why, and the pump tries again.
    """
    DONE = "done"
    """Complete: all records that were asked for are copied."""


@dataclass(frozen=True, slots=True)
class Spread:
    """A figure over the last minute.

    MirrorMaker 2's sensors measure alike (two 30 s samples).
    """

    last: float
    least: float
    most: float
    mean: float


@dataclass(frozen=True, slots=True)
class Histogram:
    """Observations by bucket in `LATENCY_BOUNDS_S`, and their sum.

    A last bucket counts longer observations.
    """

    counts: tuple[int, ...] = (0,) * (len(LATENCY_BOUNDS_S) + 1)
    sum_s: float = 0.0

    @property
    def total(self) -> int:
        return sum(self.counts)

    def quantile(self, share: float) -> float | None:
        """Return the upper bound for the bucket that holds a quantile.

        Infinity beyond the last bound; None without observations.
        """
        wanted, seen = share * self.total, 0
        for bound, count in zip((*LATENCY_BOUNDS_S, float("inf")), self.counts, strict=True):
            seen += count
            if count and seen >= wanted:
                return bound
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """One partition of a source topic."""

    partition: int
    state: PartitionState
    cause: Cause = Cause.NONE
    reason: str = ""
    """Reason in a single line, for people."""
    position: int | None = None
    """Next source offset to copy."""
    remedy: str = ""
    """Complete command that ends the wait, if there is one."""
    end: int | None = None
    """Source offset after the last record: the high watermark."""
    start: int | None = None
    """The source's log start, as last read; None: not known.

    The driver reads it while the partition lags.
    """
    lag: int | None = None
    """Offsets that the source has and the target lacks.

    Never negative; offsets below the log's start don't count.
    """
    held_back: int = 0
    """Offsets in the lag from an open transaction's begin on.

    Not readable yet at read_committed.
    """
    lag_s: float | None = None
    """The oldest uncopied record's age; 0 without lag."""
    downstream: int | None = None
    """The next record's target offset."""
    records: int = 0
    bytes: int = 0
    records_per_s: float = 0.0
    bytes_per_s: float = 0.0
    eta_s: float | None = None
    """Seconds until the partition catches up, at the present rate."""
    latency_ms: Spread | None = None
    """Latency from a record's timestamp to its acknowledgement at the target.

    MirrorMaker 2's replication-latency-ms.
    """
    age_ms: Spread | None = None
    """A record's age when it was fetched, by its timestamp.

    MirrorMaker 2's record-age-ms.
    """
    copied_ms: int | None = None
    """The last copied record's timestamp."""
    task: int | None = None
    """Spark task that copies the partition."""
    leader: int | None = None
    """The leading broker's node id at the source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A source topic that is copied, or is to be."""

    topic: str
    target_topic: str
    partitions: tuple[Partition, ...] = ()
    released: bool = False
    """True if the writers have moved to the copy (`sparkmirror topics done`)."""
    waits: bool = False
    """True if it is the opposite flow's turn (`sparkmirror.turn`)."""
    gone: bool = False
    """True if the topic was deleted at the source; its copy stays."""
    refused: str = ""
    """Reason why the topic can't be copied.

    For a topic with partitions here: why its newest partitions can't be copied.
    """
    late_in: dict[int, int] = field(default_factory=dict)
    """Partition to the number of uncopied late source offsets.

    Late offsets came after the operator said that the writers had moved.
    """
    late_copied_in: dict[int, int] = field(default_factory=dict)
    """Partition to the number of copied late source offsets.

    The pump had not heard of the move by then.
    """
    recreated: bool = False
    """True if another topic has the name at the source since the writers had moved."""
    ended_records: int = 0
    """Number of copied records in partitions whose copy has ended."""
    ended_bytes: int = 0

    @property
    def records(self) -> int:
        return self.ended_records + sum(partition.records for partition in self.partitions)

    @property
    def bytes(self) -> int:
        return self.ended_bytes + sum(partition.bytes for partition in self.partitions)

    @property
    def late(self) -> int:
        """Number of uncopied late source offsets in all partitions."""
        return sum(self.late_in.values())

    @property
    def late_copied(self) -> int:
        """Number of copied late source offsets in all partitions."""
        return sum(self.late_copied_in.values())

    @property
    def late_words(self) -> str:
        """Words on the late source offsets; empty without any."""
        if not (self.recreated or self.late or self.late_copied):
            return ""
        return late_words(self.late_copied, self.late, recreated=self.recreated)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPartition:
    """A group's place in a partition, on both sides.

    Offsets are the next offsets to read.
    """

    topic: str
    """The topic's name at the source."""
    partition: int
    target_topic: str
    source_offset: int | None = None
    source_lag: int | None = None
    target_offset: int | None = None
    """Offset committed at the target; None: no commit."""
    target_lag: int | None = None
    skipped: int | None = None
    """Records that the group would skip if it moved to the target now.

    None: not known. `sync.move_cost` says what is counted.
    """
    reread: int | None = None
    """Records that the group would read again, if it moved to the target now.

    None: not known.
    """
    beyond_end: bool = False
    """True if `source_offset` is past the source's log end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A source consumer group that the filter wants."""

    group: str
    state: GroupState
    reason: str = ""
    synced_ms: int | None = None
    """Time when the group's offsets were last seen at the target.

    The oldest of all its partitions (`sync.group_moments`).
    """
    checkpoint_ms: float | None = None
    """Milliseconds that a checkpoint of the group took.

    The time counts from reading the offset to the record's acknowledgement.
    """
    partitions: tuple[GroupPartition, ...] = ()
    looked_at: bool = True
    """True if the group's partitions are known.

    The partitions of a group with checkpoints are looked up some seconds after the checkpoints.
    """

    @property
    def skipped(self) -> int | None:
        """Sum of `GroupPartition.skipped` over the known partitions.

        None: not known, and no known partition skips records.
        """
        known = sum(partition.skipped or 0 for partition in self.partitions)
        unknown = not self.looked_at or any(partition.skipped is None for partition in self.partitions)
        return None if unknown and not known else known

    @property
    def reread(self) -> int | None:
        """Sum of `GroupPartition.reread` over all partitions; None: not known."""
        if not self.looked_at:
            return None
        known = [partition.reread for partition in self.partitions]
        return None if None in known else sum(count for count in known if count is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Duty:
    """A flow's duty, done at intervals next to the copying."""

    duty: str
    interval_s: float
    succeeded_ms: int | None = None
    """The last good turn's end."""
    took_s: float | None = None
    """The last good turn's duration."""
    failing: str = ""
    """Reason why the last turn failed; empty if it succeeded."""
    failures: int = 0
    written: int | None = None
    """Number of checkpoints and heartbeats written, or of groups' offsets set.

    None for other duties, and before the first good turn.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerLine:
    """Line between a pump and one broker, whose length decides how much is in flight.

    The fields are those in `messages.figures.LineFigures`.
    """

    side: str
    broker: int
    backfill: bool = False
    round_trip_ms: float
    bytes_per_s: int
    window_bytes: int
    connections: int
    batch_bytes: int = 0
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pump:
    """One Spark task at work on a flow."""

    task: int
    host: str
    pid: int = 0
    """Id of the task's Python process at the host; 0: not known."""
    partitions: int
    records: int
    bytes: int
    memory_bytes: int
    cpu_s: float = 0.0
    in_flight: int = 0
    """Records that were fetched and are not acknowledged."""
    fetch_ms: float | None = None
    """Mean time from a fetch request to its answer, over the last report."""
    connections: tuple[int, int] = (0, 0)
    """Open connections to source and target that carry records."""
    lines: tuple[BrokerLine, ...] = ()
    """Lines to brokers, with what was measured and chosen."""
    at_ms: int = 0
    """Time of reading the last report, by the clock of the leading process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFigures:
    """Figures for one side of a flow, as the pumps saw that cluster."""

    alias: str
    tools: str = ""
    """Options of Kafka's tools that lead to the cluster: `--bootstrap-server …`."""
    bytes: int = 0
    """Bytes fetched from the source, or written to the target.

    Answers and requests count without headers.
    """
    requests: int = 0
    throttle_s: float = 0.0
    """Seconds for which the brokers made the pumps wait (quotas)."""
    errors: int = 0
    """Failed answers and connections."""
    admin_connections: int = 0
    """Open connections that the driver's duties use."""
    certificate_ends_ms: int | None = None
    """Expiry for the first certificate to end, among those in this side's settings."""
    away: str = ""
    """The cluster's silence: reason and begin; empty if a broker answers."""
    away_since_ms: int | None = None
    servers: str = ""
    """Bootstrap servers, as the file has them."""
    release: str = ""
    """The brokers' Apache Kafka release, or an older release that knows as much."""
    brokers_up: int | None = None
    """Number of brokers in the cluster's newest answer."""
    brokers_known: int | None = None
    """Number of brokers in any answer within the last day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """A flow's state and figures.

    A standby knows state, role and leader, and little else.
    """

    flow: str
    """The pair's name, `A->B`."""
    source: ClusterFigures
    target: ClusterFigures
    state: FlowState
    role: Role
    at_ms: int
    """Time when these figures were put together."""
    state_since_ms: int = 0
    reason: str = ""
    """Reason for the state in a single line, if the state needs one."""
    waiting: str = ""
    """Reason why pumps wait, or why the source's ends are unknown; else empty."""
    leader: str = ""
    """Working process, as `host:pid`: the last one that announced itself."""
    leader_silent_ms: int | None = None
    """Time of the working process's last status, if too old for a process at work.

    None: the process publishes, or a standby has not looked yet.
    """
    page: str = ""
    """The working process's live page address; empty: no page, or not known."""
    processes: int | None = None
    """Members of the lease's group: processes that work or stand by."""
    epoch: int = 0
    """Number of the newest round (Spark job) that ran for this flow; 0: none."""
    epochs: dict[str, int] = field(default_factory=dict)
    """Number of ended rounds, by reason.

    The reasons are `planned` (the work was done, or the round was a day old), `stopped`, `flows` (other flows can be
    worked on now), `settings`, `pump` (a pump ended by itself), `slots`, `topics`, `load`, `failed`.
    """
    records: int = 0
    bytes: int = 0
    records_per_s: float = 0.0
    bytes_per_s: float = 0.0
    lag: int | None = None
    """Lag in all partitions where it is known; None: not known.

    A lag of 0 is known only if every partition is. Refused topics don't count. `unknown` says how many partitions are
    left out.
    """
    lag_s: float | None = None
    """Largest of these partitions."""
    eta_s: float | None = None
    """Seconds until the copy has caught up, at the present rate.

    Partitions that are parked, paused or held back by an open transaction don't count. None: not known, or the flow is
    caught up or held up.
    """
    unknown: int = 0
    """Number of partitions whose lag is not known."""
    latency: Histogram = Histogram()
    """Latencies for all data, from a record's timestamp to its acknowledgement."""
    heartbeat_latency: Histogram = Histogram()
    """The source's heartbeat latencies alone."""
    recent_latency_ms: tuple[float, float] | None = None
    """The last reports' median and 99th percentile."""
    topics: tuple[Topic, ...] = ()
    groups: tuple[Group, ...] = ()
    excluded_sinks: tuple[str, ...] = ()
    """Sink connectors' groups that `groups.exclude` has; a few of them."""
    duties: tuple[Duty, ...] = ()
    losses: tuple[LossCount, ...] = ()
    """The loss ledger, summed up: the same in every process that works on the flow."""
    loss_entries: tuple[LossRow, ...] = ()
    """The loss ledger's newest entries, the newest first; not in the status topic."""
    pumps: tuple[Pump, ...] = ()
    retention_s: float | None = None
    """Seconds until the source deletes uncopied records, if that is near."""
    retention_of: str = ""
    """First partition to lose records to retention, as topic-number."""
    paused: tuple[str, ...] = ()
    """Regexes for topics that an operator has paused."""
    bytes_per_s_cap: float | None = None
    backfill_per_s_cap: float | None = None
    objective_s: float | None = None
    """Lag that people were promised: `sparkmirror.objective.seconds`."""
    tasks_max: int = 1
    settings: dict[str, str] = field(default_factory=dict)
    """The flow's settings, as `config.flow_settings` has them."""
    differs: tuple[str, ...] = ()
    """The reader's settings that differ from the working process's settings.

    Each line has both values. The reader is a standby process, or a verb with a file.
    """
    unmatched: tuple[UnmatchedPattern, ...] = ()
    """Topic, exclusion and group patterns without a match at the source."""
    no_group: str = ""
    """Reason why no consumer group is translated; empty without a reason."""
    weaker: tuple[str, ...] = ()
    """Guarantees missing with brokers as old as these (`weaker_guarantees`).

    Each line names events that can't be noticed.
    """
    unsynced: tuple[str, ...] = ()
    """Properties behind refused batches that the mirror leaves alone on copies."""
    keeping_less: dict[str, str] = field(default_factory=dict)
    """Source topic to the properties by which its copy keeps less; a few of them."""
    unsafe_topics: tuple[str, ...] = ()
    """Own topics at the target whose settings let them lose records.

    Each line has the command that changes the settings.
    """

    @property
    def parked(self) -> tuple[tuple[Topic, Partition], ...]:
        """Partitions that can't be copied now, with their topics."""
        return self._of(lambda partition: partition.state is PartitionState.PARKED)

    @property
    def open_transactions(self) -> tuple[tuple[Topic, Partition], ...]:
        """Partitions that an open transaction has held back for long, with their topics."""
        return self._of(lambda partition: partition.cause is Cause.OPEN_TRANSACTION)

    @property
    def why_unknown(self) -> str:
        """First known reason why a partition's lag is not known; empty without one."""
        unknown = self._of(lambda partition: partition.lag is None and bool(partition.reason))
        return next((f"{topic.topic}-{partition.partition}: {partition.reason}" for topic, partition in unknown), "")

    def _of(self, chosen: Callable[[Partition], bool]) -> tuple[tuple[Topic, Partition], ...]:
        return tuple((topic, partition) for topic in self.topics for partition in topic.partitions if chosen(partition))


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """The process that made the snapshot."""

    host: str
    pid: int
    version: str
    started_ms: int
    spark_version: str = ""
    kafka_python_version: str = ""
    python_version: str = ""
    mode: str = "run"
    """The process's mode: `run`, `serve` or `legacy`."""
    slots: int = 0
    """Number of tasks that Spark can run at once."""
    tasks: int = 0
    """Number of running tasks."""
    cpu_s: float = 0.0
    memory_bytes: int = 0
    jvm_memory_bytes: int = 0
    jvm_threads: int = 0
    jvm_gc_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All knowledge of a process at one moment."""

    process: Process
    at_ms: int
    flows: tuple[Flow, ...] = ()

    def to_json(self) -> bytes:
        """Return the snapshot as JSON, without default values."""
        return _adapter().dump_json(self, exclude_defaults=True)

    @staticmethod
    def from_json(text: bytes | str) -> Snapshot:
        """Return the snapshot from a JSON text; raises `ValueError` for any other text."""
        return _adapter().validate_json(text)


@cache
def _adapter() -> TypeAdapter[Snapshot]:
    return TypeAdapter(Snapshot)
