"""The driver's orders to pumps, and the pumps' receipts and reports.

All are plain values that travel as JSON. Orders travel inside the Spark job. Reports travel through the receipts topic
while a round runs, and one `FlowEnd` for each flow goes back through Spark at the task's end.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from sparkmirror.config import FlowConfig
from sparkmirror.config.model import REVEAL
from sparkmirror.exact.durable.identity import Identity, Producer
from sparkmirror.exact.durable.losses import LossKind
from sparkmirror.exact.durable.noted_progress import ReportedProgress
from sparkmirror.exact.position.cause import Cause
from sparkmirror.exact.position.route import PartitionPair
from sparkmirror.pump.messages.figures import LineFigures, PartitionFigures, Totals


class _OrderValue(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class RouteOrder(_OrderValue):
    """Order to copy one partition."""

    model_config = ConfigDict(extra="ignore")  # an order of another release in the control topic may have more fields

    source_topic: str
    target_topic: str
    partition: int
    until: int | None = None
    """Upstream offset at which the copy is complete; None: copy without end."""
    done_at: int | None = None
    """Partition's end at the source if writers have moved to the copy, else None."""
    target_topic_id: str = ""
    """Topic id at the target that `appended` is about, as hexadecimal digits."""
    appended: int = -1
    """Target's offset after the last acknowledged record, as last known; -1: unknown.

    A target with a lower end has lost records. The number comes from an earlier round's receipt, or from the progress
    that an earlier process has noted.
    """
    passed: tuple[int, int] = (-1, -1)
    """Next offsets, upstream and downstream, as last known; -1: unknown.

    When the copy ended at the downstream offset, no record below the upstream offset was left to copy.
    """
    refused: str = ""
    """Reason to park the partition instead of pumping; empty: pump."""
    opposite: int | None = None
    """Producer id whose records at the source are copies from the target.

    They belong to a migration's opposite flow and never go back (M1); None: there is no such flow.
    """
    untransformed: bool = False
    """True for heartbeats, which no transform sees."""
    move: int = 0
    """Number of the move that gives the task the partition; 0: none did in this round."""

    @property
    def route(self) -> PartitionPair:
        return PartitionPair(self.source_topic, self.target_topic, self.partition)

    @property
    def reported(self) -> ReportedProgress:
        """Progress as last known: `passed` and `appended`."""
        return ReportedProgress(*self.passed, self.appended, self.target_topic_id)


class FlowOrder(_OrderValue):
    """One flow's order to one task."""

    flow: FlowConfig
    cluster_id: str
    """The target's cluster id."""
    source_cluster_id: str = ""
    """The source's cluster id; empty: the source has none."""
    producer_id: int
    producer_epoch: int
    routes: tuple[RouteOrder, ...]
    share: float = 1.0
    """The task's share of the flow's bandwidth cap."""
    leader_rank: int = -1
    """Offset of the driver's leader record in the control topic.

    -1 means that the driver holds no lease: no later leader fences the pump.
    """
    state_lifetime_ms: int = 86_400_000
    """The target's `producer.id.expiration.ms` (R4)."""
    unclean: bool = False
    """True if the predecessor did not report an end, so may still be alive (R5)."""
    former: tuple[Producer, ...] = ()
    """The flow's earlier producers (`durable.identity`)."""
    homes: int = 0
    """Number of partitions among which claims are dealt; 0: not known."""

    @property
    def identity(self) -> Identity:
        return Identity(self.cluster_id, self.producer_id, self.producer_epoch, self.former)

    def again(self) -> FlowOrder:
        """Return the order for a second attempt; the first attempt may still be alive."""
        return self.model_copy(update={"unclean": True})


class AddedRoutes(_OrderValue):
    """All routes added to a flow's orders since a round began.

    Each addition repeats the round's earlier additions. The record travels through the control topic, so has no
    settings and no secrets.
    """

    incarnation: str
    """The driver's random id."""
    epoch: int
    """The round's number."""
    routes: dict[int, tuple[RouteOrder, ...]]
    """Added routes by task."""
    shares: dict[int, float]
    """Share of the flow's bandwidth cap by task, from now on.

    Tasks without added routes have a share, too.
    """

    def is_older_than(self, other: AddedRoutes | None) -> bool:
        """True if words of the same driver have come that say more."""
        return other is not None and (self.epoch, self.count) < (other.epoch, other.count)

    @property
    def count(self) -> int:
        """Number of the round's added routes so far."""
        return sum(map(len, self.routes.values()))


class PumpOrder(_OrderValue):
    """Order to one Spark task for one round."""

    epoch: int
    """The round's number."""
    task: int
    incarnation: str
    """The driver's random id; a pump has another random id for claims."""
    seconds: float
    """The round's longest duration; then the round ends by itself."""
    attempt: int = 0
    """Spark's number for the task's attempt."""
    flows: tuple[FlowOrder, ...]

    def again(self, attempt: int) -> PumpOrder:
        """Return the order for a further attempt; earlier ones may still be alive."""
        return self.model_copy(update={"attempt": attempt, "flows": tuple(flow.again() for flow in self.flows)})

    def to_json(self) -> str:
        """Return the order as JSON with secrets in clear, to be kept secret by the caller.

        See `engine.session`.
        """
        return self.model_dump_json(context=REVEAL)


PartitionState = Literal["running", "done", "parked", "waiting"]


class Receipt(_OrderValue):
    """One partition's result in one round, so far.

    Unless noted, an offset is the next offset, and -1 means unknown.
    """

    flow: str
    source_topic: str
    target_topic: str
    partition: int
    state: PartitionState
    reason: str = ""
    records: int = 0
    """Records that the pump has copied since it began.

    Those from an earlier stay count, too, if the partition was at another task for a while.
    """
    bytes: int = 0
    upstream: int = -1
    downstream: int = -1
    source_end: int = -1
    in_doubt: bool = False
    """True if records may be appended later (R5): batches are in flight."""
    halted: LossKind | None = None
    """Loss that halts the parked partition, if any."""
    timestamp_ms: int = -1
    """Own timestamp of the last record known to be copied; -1: unknown."""
    target_topic_id: str = ""
    """Topic id at the target that `appended` is about, as hexadecimal digits."""
    appended: int = -1
    """Target's offset after the last acknowledged record; -1: none."""
    last_upstream: int = -1
    """The last acknowledged record's upstream offset.

    The next offset may be further on, behind a gap or a marker.
    """
    last_downstream: int = -1
    """The same record's downstream offset."""
    cause: Cause = Cause.NONE
    """Cause behind `reason`, out of the closed list."""
    released: bool = False
    """True if another task has the partition since; its receipts are newer."""
    move: int = 0
    """Number of the move that gave the task the partition; 0: its order did."""

    @property
    def progress(self) -> ReportedProgress:
        return ReportedProgress(self.upstream, self.downstream, self.appended, self.target_topic_id)

    def reaching(self, former: Receipt) -> Receipt:
        """Return the receipt with a former task's progress, if it has none.

        The progress is about the same target topic.
        """
        if self.upstream >= 0 or former.upstream < 0 or self.target_topic_id not in ("", former.target_topic_id):
            return self
        return self.model_copy(
            update={
                "upstream": former.upstream,
                "downstream": former.downstream,
                "target_topic_id": former.target_topic_id,
                "appended": max(self.appended, former.appended),
            }
        )


class FlowEnd(_OrderValue):
    """End of a flow's work in one task."""

    flow: str
    pump: str = ""
    receipts: tuple[Receipt, ...] = ()
    in_doubt: bool = False
    """True if records may be appended later, whatever the receipts say (R5)."""
    has_rival: bool = False
    """True if another pump may be at work on the flow.

    Also if this one never had a partition.
    """

    @property
    def in_order(self) -> bool:
        """True if nothing can be appended later."""
        return not (self.in_doubt or any(receipt.in_doubt for receipt in self.receipts))

    @property
    def tells_all(self) -> bool:
        """True if a done partition has all its records in the target, once each.

        Earlier pumps' requests may still arrive then: what they bring is there already, or the leader refuses it.
        """
        return not (self.has_rival or any(receipt.in_doubt for receipt in self.receipts))


class FlowReport(_OrderValue):
    """One flow's live figures in one pump; counts begin with the pump."""

    epoch: int
    """The round's number."""
    task: int
    pump: str
    incarnation: str
    at_ms: int
    records: int = 0
    bytes: int = 0
    partitions: int = 0
    lag: int = 0
    """Upstream offsets without acknowledgement, in all partitions together."""
    latency_ms: tuple[float, float] | None = None
    """p50 and p99 from record timestamp to acknowledgement, since the last report."""
    memory_bytes: int = 0
    waiting: str = ""
    """Reason why a partition is not copied now, if any."""
    host: str = ""
    pid: int = 0
    """Process id there; 0: a pump of an earlier release."""
    cpu_s: float = 0.0
    """The pump's processor time for all flows together."""
    in_flight: int = 0
    """Number of records fetched and not yet acknowledged."""
    fetch_ms: float | None = None
    """Mean time from a fetch request to its answer, since the last report."""
    connections: tuple[int, int] = (0, 0)
    """Open connections for records, to the source and to the target."""
    lines: tuple[LineFigures, ...] = ()
    """Lines to brokers whose round trip is measured."""
    totals: Totals = Totals()
    receipts: tuple[Receipt, ...] = ()
    """Receipts that have changed since the last report."""
    figures: tuple[PartitionFigures, ...] = ()
    """Figures for the partitions in `receipts`."""
    ended: bool = False
    ended_because: str = ""
    """Reason why the pump ended this flow without the driver's request.

    The task's other flows may continue.
    """
