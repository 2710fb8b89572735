"""What the driver tells a pump to do, and what the pump reports.

Both are plain values that travel as JSON: an order inside the Spark job, reports through the
receipts topic while the epoch runs, and a receipt a partition when it ends.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from sparkmirror.config import FlowConfig
from sparkmirror.config.model import REVEAL
from sparkmirror.durable.identity import Identity, Producer
from sparkmirror.durable.losses import LossKind
from sparkmirror.messages.figures import PartitionFigures, Totals
from sparkmirror.position.cause import Cause
from sparkmirror.position.route import PartitionPair


class _OrderValue(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class RouteOrder(_OrderValue):
    """One partition to pump."""

    model_config = ConfigDict(extra="ignore")  # another release's, in the control topic, may say more

    source_topic: str
    target_topic: str
    partition: int
    until: int | None = None
    """Stop when everything below this upstream offset is copied; None: go on."""
    done_at: int | None = None
    """The topic's writers have moved to its copy: the partition's end at the source. None: go on."""
    target_topic_id: str = ""
    appended: int = -1
    """What an earlier epoch's receipt said: if the target has less now, it has lost records."""
    passed: tuple[int, int] = (-1, -1)
    """What was said last: when the copy ended at this downstream offset, nothing was left below this upstream one."""
    refused: str = ""
    """Why it must not be pumped now, if so: it is parked, with this reason."""

    @property
    def route(self) -> PartitionPair:
        return PartitionPair(self.source_topic, self.target_topic, self.partition)


class FlowOrder(_OrderValue):
    """One flow's part of a task."""

    flow: FlowConfig
    cluster_id: str
    """Of the target."""
    producer_id: int
    producer_epoch: int
    routes: tuple[RouteOrder, ...]
    share: float = 1.0
    """This task's part of the flow's bandwidth cap."""
    leader_rank: int = -1
    """Offset of our driver's leader record in the control topic; -1: no lease, nobody is fenced."""
    state_lifetime_ms: int = 86_400_000
    """`producer.id.expiration.ms` of the target (R4)."""
    unclean: bool = False
    """The predecessor did not report its end: it may still be alive (R5)."""
    former: tuple[Producer, ...] = ()
    """Producers of the flow before this one (`durable.identity`)."""

    @property
    def identity(self) -> Identity:
        return Identity(self.cluster_id, self.producer_id, self.producer_epoch, self.former)

    def again(self) -> FlowOrder:
        """The same for a second attempt, which may meet the first one, still alive."""
        return self.model_copy(update={"unclean": True})


class AddedRoutes(_OrderValue):
    """What was added to a flow's orders since an epoch began: all of it, each time something is added.

    It travels through the control topic, so it holds no settings, and no secrets.
    """

    incarnation: str
    """The driver's."""
    epoch: int
    routes: dict[int, tuple[RouteOrder, ...]]
    """By task."""
    shares: dict[int, float]
    """Each task's part of the flow's bandwidth cap, from now on; those of tasks that got nothing, too."""


class PumpOrder(_OrderValue):
    """All that one Spark task does in one epoch."""

    epoch: int
    task: int
    incarnation: str
    """The driver's; a pump has a random one of its own for its claims."""
    seconds: float
    """After which the epoch ends by itself."""
    flows: tuple[FlowOrder, ...]

    def to_json(self) -> str:
        """The order as it travels, secrets in clear: to be kept from others' eyes (`engine.session`)."""
        return self.model_dump_json(context=REVEAL)


PartitionState = Literal["running", "done", "parked", "waiting"]


class Receipt(_OrderValue):
    """What became of one partition in one epoch. Offsets are the next ones, -1 where unknown."""

    flow: str
    source_topic: str
    target_topic: str
    partition: int
    state: PartitionState
    reason: str = ""
    records: int = 0
    bytes: int = 0
    upstream: int = -1
    downstream: int = -1
    source_end: int = -1
    in_doubt: bool = False
    """Something may be appended later (R5): it was in flight when it ended, or somebody else works on this flow."""
    halted: LossKind | None = None
    """The loss that halts it, while it is parked."""
    timestamp_ms: int = -1
    """Of the last record that is known to be copied, by its own clock; -1: not known."""
    target_topic_id: str = ""
    """Of `appended`; as hexadecimal digits."""
    appended: int = -1
    """The target's offset after the last record that it has acknowledged; -1: none."""
    last_upstream: int = -1
    """Of the last record that was acknowledged; the next offset may be further on, behind a gap or a marker."""
    last_downstream: int = -1
    """Of the same record."""
    cause: Cause = Cause.NONE
    """What `reason` comes to."""


class FlowReport(_OrderValue):
    """One pump's live figures of one flow. Counts are since the pump started."""

    epoch: int
    task: int
    pump: str
    incarnation: str
    at_ms: int
    records: int = 0
    bytes: int = 0
    partitions: int = 0
    lag: int = 0
    """Upstream offsets not acknowledged yet, all partitions."""
    latency_ms: tuple[float, float] | None = None
    """p50 and p99 of record timestamp to acknowledgement, over the last report's time."""
    memory_bytes: int = 0
    waiting: str = ""
    """Why the pump waits, if it does."""
    host: str = ""
    cpu_s: float = 0.0
    """Processor time of the pump, all its flows together."""
    in_flight: int = 0
    """Records that were fetched and are not acknowledged."""
    fetch_ms: float | None = None
    """Mean time from a fetch request to its answer, since the last report."""
    connections: tuple[int, int] = (0, 0)
    """Open ones to source and target over which records go."""
    totals: Totals = Totals()
    receipts: tuple[Receipt, ...] = ()
    """Partitions that changed since the last report."""
    figures: tuple[PartitionFigures, ...] = ()
    """What was measured of them."""
    ended: bool = False
    ended_because: str = ""
    """Why it ended though nobody asked it to; the other flows of its task may go on."""
