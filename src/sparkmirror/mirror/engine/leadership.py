"""A flow's leadership: the lease, and the active driver's agreements."""

from __future__ import annotations

from contextlib import suppress

from sparkmirror.config import FlowConfig
from sparkmirror.errors import SparkMirrorError
from sparkmirror.exact.durable.identity import Identity
from sparkmirror.kafka.cluster.broker_versions import producer_state_ms
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.mirror.engine.driver_control import DriverControl
from sparkmirror.mirror.engine.identity import agree_identity
from sparkmirror.mirror.engine.lease import Lease
from sparkmirror.pump.messages.control import ControlState, control_topic
from sparkmirror.snapshot.flow_state import ELSEWHERE, FlowState, SaidState

STATE_LIFETIME_DEFAULT_MS = 86_400_000
"""Lifetime of an idle producer's state if the target's brokers don't tell.

Kafka's default since 3.4; the default was longer before.
"""


class Leadership:
    """One process's right to work on a flow.

    A process stands by until it is `held`. Then the driver becomes active: `announce`, and `agree`. That is due again
    with each new `term`.
    """

    def __init__(self, flow: FlowConfig, control: DriverControl, *, use_lease: bool) -> None:
        self.lease: Lease | None = None
        self.rank: int | None = None
        """The driver's rank among the flow's leaders; None without a lease."""
        self.state_lifetime_ms = STATE_LIFETIME_DEFAULT_MS
        """Lifetime of an idle producer's state at the target (R4)."""
        self.active_term: int | None = None
        """Newest term in which the driver became active; None: not yet."""
        self.announces_again = False
        """True if the driver has to become active again in the same term."""
        self.homes = 0
        """Number of partitions among which claims are dealt, once agreed on."""
        self.source_id = ""
        """The source's cluster id, once agreed on; empty: a source without an id."""
        self._flow = flow
        self._control = control
        self._use_lease = use_lease
        self._started = False
        self._identity: Identity | None = None

    def start(self, before: Leadership | None = None) -> None:
        """Ask for the lease; the lease of `before`, an ended driver's, continues."""
        self.lease = before.lease if before is not None else None
        if self._use_lease and self.lease is None:
            self.lease = lease_of(self._flow)
            self.lease.start()
        self._started = True

    def held(self) -> bool:
        """True if this process works on the flow now."""
        return self._started and (self.lease is None or self.lease.held())

    def is_active(self) -> bool:
        """True if this process holds the lease, and became active in this term.

        Receipts from a former term may be old: another process may have copied since.
        """
        return self.held() and self.active_term == self.term

    @property
    def elsewhere(self) -> bool:
        """True if another process works on the flow."""
        return self.lease is not None and self.lease.elsewhere

    @property
    def standing(self) -> SaidState:
        """The flow's state while this process does not work on it."""
        if self.lease is not None and self.lease.refused:
            return SaidState(FlowState.STANDING_BY, self.lease.refused)
        return SaidState(FlowState.STANDING_BY, ELSEWHERE) if self.elsewhere else SaidState(FlowState.JOINING)

    @property
    def standing_by(self) -> str:
        """Reason in a few words why this process does not work on the flow."""
        return self.standing.words

    @property
    def term(self) -> int:
        """Number of times the process got the lease; 0 without a lease."""
        return self.lease.term if self.lease else 0

    def announce(self) -> ControlState:
        """Announce this process as the flow's leader; return the control topic before."""
        state, rank = self._control.begin(announce=self._use_lease)
        if rank is not None:
            self.rank = rank
        return state

    def announce_again(self) -> None:
        """Have the driver become active again, with another announcement.

        Another driver's late announcement may stand behind the present one.
        """
        self.announces_again = True

    def agree(self, target: ClusterClient, source_id: str) -> None:
        """Agree on the flow's identity, and ask the target for the state's lifetime.

        `source_id` is the source's cluster id.
        """
        self._identity, self.homes = agree_identity(self._flow, source_id)
        self.source_id = source_id
        self.ask_state_lifetime(target)

    def ask_state_lifetime(self, target: ClusterClient) -> None:
        """Ask the target for the state's lifetime.

        An operator may change it at any time. Without an answer the known value stays.
        """
        with suppress(ConnectionError, SparkMirrorError):
            self.state_lifetime_ms = producer_state_ms(target) or self.state_lifetime_ms

    @property
    def identity(self) -> Identity:
        """The flow's identity at its target, once the driver is active."""
        assert self._identity is not None  # noqa: S101 - the driver became active before
        return self._identity

    def release(self) -> None:
        if self.lease is not None:
            self.lease.release()


def lease_of(flow: FlowConfig) -> Lease:
    """Return another part in a flow's lease, not started yet."""
    alias = flow.source.alias
    return Lease(flow.target, f"{alias}-mm2", control_topic(alias), flow.group_session_timeout_ms)
