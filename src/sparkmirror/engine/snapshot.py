"""What is going on, as one frozen value: all that metrics, page, terminal, doctor and status files tell comes from it.

Plain values without a handle on anything. They travel as JSON (`to_json`, `from_json`): through the status topic to
terminals elsewhere, and to the page. Times are milliseconds since 1970, durations seconds; `None` is "not known".
Counts are since `Process.started_ms`, and never go back while that process lives, whatever becomes of its pumps.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache

from pydantic import TypeAdapter

from sparkmirror.messages.figures import LATENCY_BOUNDS_S as LATENCY_BOUNDS_S
from sparkmirror.position.cause import Cause as Cause
from sparkmirror.sync.group_standing import GroupState

ELSEWHERE = "another process works on it"
"""The reason of a process that stands by as it should."""


class FlowState(StrEnum):
    """What a flow is at. The first that is true, in this order."""

    STANDING_BY = "standing by"
    """Another process works on it."""
    JOINING = "joining"
    """This process waits for the flow's lease, or for a cluster."""
    ENDING = "ending"
    DONE = "done"
    """With `--once`: all was copied."""
    INCOMPLETE = "incomplete"
    """With `--once`: something was not copied."""
    TRANSLATING = "translating"
    """Nothing is copied, groups are translated."""
    STARTING = "starting"
    """Pumps have not reported yet."""
    FINDING_OUT = "finding out"
    """A partition's position, or its end, is not known."""
    COPYING = "copying"
    HELD_UP = "held up"
    """All but what is parked has caught up."""
    CAUGHT_UP = "caught up"


class Role(StrEnum):
    """What this process is to a flow."""

    LEADER = "leader"
    """It holds the lease, or there is none."""
    STANDBY = "standby"
    JOINING = "joining"


class PartitionState(StrEnum):
    """What a partition is at."""

    UNKNOWN = "unknown"
    """No pump has reported it."""
    WAITING = "waiting"
    """Its position is being read, or something must pass first."""
    RUNNING = "running"
    PAUSED = "paused"
    """An operator has paused its topic."""
    PARKED = "parked"
    """It can't be copied now; `cause` and `reason` say why, and it is looked at again."""
    DONE = "done"
    """All that was asked for is copied."""


@dataclass(frozen=True, slots=True)
class Spread:
    """A figure over the last minute, as MirrorMaker 2's sensors have it (two samples of 30 s)."""

    last: float
    least: float
    most: float
    mean: float


@dataclass(frozen=True, slots=True)
class Histogram:
    """Observations by `LATENCY_BOUNDS_S`: how many in each bucket, one more for what took longer; and their sum."""

    counts: tuple[int, ...] = (0,) * (len(LATENCY_BOUNDS_S) + 1)
    sum_s: float = 0.0

    @property
    def total(self) -> int:
        """All observations."""
        return sum(self.counts)

    def quantile(self, share: float) -> float | None:
        """The upper bound of the bucket that holds this quantile; infinity beyond the last; None without any."""
        wanted, seen = share * self.total, 0
        for bound, count in zip((*LATENCY_BOUNDS_S, float("inf")), self.counts, strict=True):
            seen += count
            if count and seen >= wanted:
                return bound
        return None


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition of a source topic."""

    partition: int
    state: PartitionState
    cause: Cause = Cause.NONE
    reason: str = ""
    """One line, for people."""
    position: int | None = None
    """At the source: the offset that is copied next."""
    end: int | None = None
    """At the source: behind the last offset that may be read."""
    start: int | None = None
    """At the source: where its log began when that was last looked at, which is when it lags; None: not known."""
    lag: int | None = None
    """Offsets at the source that are there and not copied: never negative, nothing below the log's start counted."""
    lag_s: float | None = None
    """The age of the oldest record that is not copied; 0 without lag."""
    downstream: int | None = None
    """At the target: where the next record lands."""
    records: int = 0
    bytes: int = 0
    records_per_s: float = 0.0
    bytes_per_s: float = 0.0
    eta_s: float | None = None
    """Until it has caught up, at the present rate."""
    latency_ms: Spread | None = None
    """From a record's timestamp to its acknowledgement at the target (MirrorMaker 2's replication-latency-ms)."""
    age_ms: Spread | None = None
    """From a record's timestamp to when it was fetched (MirrorMaker 2's record-age-ms)."""
    copied_ms: int | None = None
    """Timestamp of the last record that was copied."""
    task: int | None = None
    """Which Spark task copies it."""
    leader: int | None = None
    """Broker at the source."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A source topic that is copied, or is to be."""

    topic: str
    target_topic: str
    partitions: tuple[Partition, ...] = ()
    released: bool = False
    """Its writers have moved to the copy (`sparkmirror topics done`)."""
    gone: bool = False
    """It was deleted at the source; its copy stays."""
    refused: str = ""
    """Why it can't be copied, or, where it has partitions here, why its newest ones can't."""
    late_in: dict[int, int] = field(default_factory=dict)
    """By partition the offsets that came to the source since its writers were said to have moved."""

    @property
    def late(self) -> int:
        """The same of all partitions."""
        return sum(self.late_in.values())


@dataclass(frozen=True, slots=True)
class GroupPartition:
    """Where a group stands in one partition, on both sides. Offsets are the next ones to be read."""

    topic: str
    """At the source."""
    partition: int
    target_topic: str
    source_offset: int | None = None
    source_lag: int | None = None
    target_offset: int | None = None
    """Committed at the target; None: nothing is."""
    target_lag: int | None = None
    reread: int | None = None
    """Records that the group would read again, had it to go on at the target now; None: not known."""


@dataclass(frozen=True, slots=True)
class Group:
    """A consumer group of the source that the filter wants."""

    group: str
    state: GroupState
    reason: str = ""
    synced_ms: int | None = None
    """When all its offsets were last seen to be at the target."""
    checkpoint_ms: float | None = None
    """How long a checkpoint of it took, from reading the offset to the record's acknowledgement."""
    partitions: tuple[GroupPartition, ...] = ()
    looked_at: bool = True
    """Whether its partitions are known: those of a group with checkpoints are looked up some seconds after these."""

    @property
    def reread(self) -> int | None:
        """As `GroupPartition.reread`, of all partitions."""
        if not self.looked_at:
            return None
        known = [one.reread for one in self.partitions]
        return None if None in known else sum(count for count in known if count is not None)


@dataclass(frozen=True, slots=True)
class Duty:
    """Something that is done at intervals beside the copying."""

    duty: str
    interval_s: float
    succeeded_ms: int | None = None
    """When its last good turn ended."""
    took_s: float | None = None
    """How long that took."""
    failing: str = ""
    """Why its last turn failed, if it did."""
    failures: int = 0


@dataclass(frozen=True, slots=True)
class LossCount:
    """Entries of one kind in the loss ledger."""

    kind: str
    entries: int
    offsets: int
    newest_ms: int
    words: str
    """Of the newest."""
    is_loss: bool = True
    """Or to be expected."""


@dataclass(frozen=True, slots=True)
class Pump:
    """One Spark task at work on a flow."""

    task: int
    host: str
    partitions: int
    records: int
    bytes: int
    memory_bytes: int
    cpu_s: float = 0.0
    in_flight: int = 0
    """Records that were fetched, and are not acknowledged."""
    fetch_ms: float | None = None
    """Mean time from a fetch request to its answer, over the last report."""
    connections: tuple[int, int] = (0, 0)
    """Open ones to source and target over which records go."""
    at_ms: int = 0
    """When it reported last."""


@dataclass(frozen=True, slots=True)
class ClusterFigures:
    """What one side of a flow did to its pumps."""

    alias: str
    bytes: int = 0
    """Fetched from the source, or written to the target: of answers and requests, without headers."""
    requests: int = 0
    throttle_s: float = 0.0
    """How long its brokers made the pumps wait (quotas)."""
    errors: int = 0
    """Answers and connections that failed."""
    admin_connections: int = 0
    """Open connections of the driver's duties."""
    certificate_ends_ms: int | None = None
    """When the first certificate that this side's settings name ends."""


@dataclass(frozen=True, slots=True)
class Flow:
    """One flow. A standby knows state, role and leader, and little else."""

    flow: str
    """As `A->B`."""
    source: ClusterFigures
    target: ClusterFigures
    state: FlowState
    role: Role
    at_ms: int
    """When these figures were put together."""
    state_since_ms: int = 0
    reason: str = ""
    """Why it is in this state, where that is not plain; one line."""
    waiting: str = ""
    """What pumps wait for, if they do."""
    leader: str = ""
    """host:pid of the process that works on it."""
    processes: int | None = None
    """Members of the lease's group: those that work or stand by."""
    epoch: int = 0
    """Of the Spark jobs that ran for this flow, the newest."""
    epochs: dict[str, int] = field(default_factory=dict)
    """How many ended, by why: `planned` (it was done, or a day old), `stopped`, `flows` (others can be worked on now),
    `settings`, `pump` (one ended by itself), `slots`, `topics`, `load`, `failed`."""
    records: int = 0
    bytes: int = 0
    records_per_s: float = 0.0
    bytes_per_s: float = 0.0
    lag: int | None = None
    """Of all partitions; None: not known of every one."""
    lag_s: float | None = None
    """The largest of any partition."""
    eta_s: float | None = None
    unknown: int = 0
    """Partitions whose lag is not known."""
    latency: Histogram = Histogram()
    """From a record's timestamp to its acknowledgement, all data."""
    heartbeat_latency: Histogram = Histogram()
    """The same of the source's heartbeats alone."""
    recent_latency_ms: tuple[float, float] | None = None
    """p50 and p99 of the last reports."""
    topics: tuple[Topic, ...] = ()
    groups: tuple[Group, ...] = ()
    duties: tuple[Duty, ...] = ()
    losses: tuple[LossCount, ...] = ()
    """What was found since this process took charge."""
    ledger: tuple[LossCount, ...] = ()
    """The whole of the loss ledger, the same whichever process reads it."""
    pumps: tuple[Pump, ...] = ()
    retention_s: float | None = None
    """Until the source deletes what is not copied, if that is near."""
    retention_of: str = ""
    """The partition that this befalls first, as topic-number."""
    paused: tuple[str, ...] = ()
    """Regexes of topics that an operator has paused."""
    bytes_per_s_cap: float | None = None
    backfill_per_s_cap: float | None = None
    objective_s: float | None = None
    """`sparkmirror.objective.seconds`: the lag that people were promised."""
    tasks_max: int = 1
    settings: dict[str, str] = field(default_factory=dict)
    """What `doctor` and the page tell of its configuration: policy, isolation, codec, exactness' settings."""

    weaker: tuple[str, ...] = ()
    """What can't be noticed with brokers as old as these, one line each (`weaker_guarantees`)."""

    @property
    def parked(self) -> tuple[tuple[Topic, Partition], ...]:
        """Those that can't be copied now."""
        return tuple(
            (topic, one) for topic in self.topics for one in topic.partitions if one.state is PartitionState.PARKED
        )


@dataclass(frozen=True, slots=True)
class Process:
    """The process that tells."""

    host: str
    pid: int
    version: str
    started_ms: int
    spark_version: str = ""
    kafka_python_version: str = ""
    python_version: str = ""
    mode: str = "run"
    """`run`, `serve` or `legacy`."""
    slots: int = 0
    """Tasks that Spark can run at once."""
    tasks: int = 0
    """Tasks that run."""
    cpu_s: float = 0.0
    memory_bytes: int = 0
    jvm_memory_bytes: int = 0
    jvm_threads: int = 0
    jvm_gc_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The whole of what one process knows at one moment."""

    process: Process
    at_ms: int
    flows: tuple[Flow, ...] = ()

    def to_json(self) -> bytes:
        """As it travels: what has its default value is left out."""
        return _adapter().dump_json(self, exclude_defaults=True)

    @staticmethod
    def from_json(text: bytes | str) -> Snapshot:
        """Raises `ValueError` for what is none."""
        return _adapter().validate_json(text)


@cache
def _adapter() -> TypeAdapter[Snapshot]:
    return TypeAdapter(Snapshot)
