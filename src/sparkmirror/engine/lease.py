"""The lease: of the processes started on one file, one works and the others stand by.

It is membership in a consumer group on the target, `<source>-mm2`, the group that MirrorMaker 2's own
nodes form there (`mm2.md` 3.10): so a MirrorMaker 2 and we exclude each other. The holder is the member
that has partition 0 of an internal topic.

Two rules keep it to one holder at a time:

- *Proof.* `held()` is true only for one session timeout after the start of the last call by which the
  coordinator confirmed our membership, by our own clock. The coordinator gives the partition to nobody
  else before the session timeout has passed since it last heard from us, which was not earlier.
  The call is an offset commit: it carries member and generation, and it counts as a heartbeat.
- *Claims.* A member tells the group's leader whether it holds the lease, and `HolderStays` never takes
  it from a member that does. kafka-python's sticky assignors do: when a member that fell out of the
  group comes back and still claims what it had, they take it from the living holder.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Event, Lock, Thread
from typing import Any

from kafka import KafkaConsumer, OffsetAndMetadata, TopicPartition
from kafka.coordinator.assignors.abstract import RebalanceProtocol
from kafka.errors import (
    GroupAuthorizationFailedError,
    InconsistentGroupProtocolError,
    InvalidSessionTimeoutError,
    KafkaError,
    KafkaTimeoutError,
    TopicAuthorizationFailedError,
)
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kafka.structs import MemberState

from sparkmirror.clock import now_s
from sparkmirror.cluster.admin import build_client, check_access, client_settings
from sparkmirror.config.model import ClusterConfig
from sparkmirror.events import Event as LogEvent

logger = logging.getLogger(__name__)

BEATS_PER_SESSION = 6
"""How often the coordinator hears from us in a session timeout, by heartbeats and by proofs each."""
REBALANCE_SESSIONS = 3
"""How many session timeouts a member has to rejoin: longer than any proof lasts."""
POLL_MS = 100
RETRY_S = 1.0


@dataclass(frozen=True, slots=True)
class LeaseClaim:
    """What one member says when it joins."""

    member: str
    generation: int | None
    """In which it was given the lease; None: it does not hold it."""


def choose_holder(claims: Iterable[LeaseClaim]) -> str:
    """The holder stays; of several that claim it, the one that got it last; without one, the first by id."""
    members = list(claims)
    holding = [(claim.generation, claim.member) for claim in members if claim.generation is not None]
    return max(holding)[1] if holding else min(claim.member for claim in members)


class HolderStays:
    """kafka-python's assignor interface: partition 0 of the topic stays with its living holder."""

    name = "sparkmirror-lease"
    version = 1

    def __init__(self, topic: str, still_held: Callable[[], bool]) -> None:
        self._topic = topic
        self._still_held = still_held
        self._generation = -1

    def supported_protocols(self) -> list[Any]:
        return [RebalanceProtocol.COOPERATIVE]

    def metadata(self, topics: Iterable[str]) -> Any:
        """Our claim, sent with each JoinGroup request."""
        claim = str(self._generation).encode() if self._still_held() else b""
        return ConsumerProtocolSubscription(
            version=self.version, topics=sorted(topics), user_data=claim, owned_partitions=[]
        )

    def assign(self, cluster: Any, members: Iterable[Any]) -> dict[str, Any]:
        """Decide for the group; only its leader is asked."""
        claims = [_claim(member) for member in members]
        holder = choose_holder(claims)
        return {
            claim.member: ConsumerProtocolAssignment(
                self.version, [(self._topic, [0])] if claim.member == holder else [], b""
            )
            for claim in claims
        }

    def on_assignment(self, assignment: Any, generation: int) -> None:
        self._generation = generation


def _keep_joining(consumer: Any) -> None:
    """See to it that the next poll takes up a join that the last one left unfinished.

    The group's leader rejoins when the topic's metadata is not what it was at the last assignment; a member
    that joins before it knows a new topic always does. kafka-python 3.0 forgets this reason as it makes the
    new assignment. A poll that runs out of time then, before the group has confirmed it, is the last to care:
    the member stays between two generations, sends no heartbeats, and raises nothing. (In Java's client a
    pending join is a reason by itself.)
    """
    if consumer.group_metadata().state == MemberState.REBALANCING:
        consumer._coordinator.request_rejoin()  # noqa: SLF001 - nothing public does it


def _claim(member: Any) -> LeaseClaim:
    data = member.metadata.user_data
    return LeaseClaim(member.member_id, int(data) if data else None)


class Lease:
    """One process' part in the lease; it stands by from `start()` to `release()`.

    `topic` has one partition and exists; nothing is written to it. What the lease does runs in a daemon
    thread; the methods here may be called from any thread.
    """

    def __init__(self, config: ClusterConfig, group: str, topic: str, session_timeout_ms: int = 10_000) -> None:
        self._config = config
        self._group = group
        self._partition = TopicPartition(topic, 0)
        self._session_ms = session_timeout_ms
        self._released = Event()
        self._lock = Lock()
        self._held_until = 0.0
        self._term = 0
        self._proven_generation = -1
        self._prove_at = 0.0
        self._refused: str | None = None
        self._elsewhere = False
        self._thread = Thread(target=self._run, name=f"lease-{group}", daemon=True)

    def start(self) -> None:
        """Join the group in the background, and try again for as long as it takes; call it once."""
        self._thread.start()

    def held(self) -> bool:
        """Whether this process is the one that works, at this moment and by its own clock."""
        return now_s() < self._held_until

    @property
    def term(self) -> int:
        """How often this process got the lease; another number: it was lost in between."""
        return self._term

    @property
    def refused(self) -> str | None:
        """Why the group doesn't let us in, in one line; None when it does or nothing is known yet."""
        return self._refused

    @property
    def elsewhere(self) -> bool:
        """Whether the group, when we last heard of it, had given the lease to another process."""
        return self._elsewhere

    def release(self, timeout_s: float = 5.0) -> None:
        """Give it up and leave the group, so that the next takes over at once.

        Call it when nothing is sent any more. Returns after `timeout_s` at the latest; then the others
        wait for the session timeout.
        """
        self._released.set()
        self._drop()
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._released.is_set():
            try:
                self._take_part()
            except Exception as error:
                why = self._explain(error)
                if why != self._refused:
                    logger.warning("lease not held: %s", why, extra=LogEvent.LEASE_NOT_HELD.extra)
                self._refused = why
            self._released.wait(RETRY_S)

    def _take_part(self) -> None:
        """Be a member until released, or until something fails that a new membership may mend."""
        assignor = HolderStays(self._partition.topic, lambda: self.held() and bool(consumer.assignment()))
        beat_ms = self._session_ms // BEATS_PER_SESSION
        check_access(self._config, self._session_ms / 2000)
        settings = client_settings(self._config, "lease")
        settings["request_timeout_ms"] = min(self._config.request_timeout_ms, self._session_ms // 2)
        consumer = build_client(
            KafkaConsumer,
            **settings,
            bootstrap_timeout_ms=self._session_ms,
            group_id=self._group,
            session_timeout_ms=self._session_ms,
            heartbeat_interval_ms=beat_ms,
            max_poll_interval_ms=self._session_ms * REBALANCE_SESSIONS,
            partition_assignment_strategy=[lambda: assignor],
            enable_auto_commit=False,
            allow_auto_create_topics=False,
        )
        try:
            consumer.subscribe([self._partition.topic])
            while not self._released.is_set():
                try:
                    consumer.poll(timeout_ms=POLL_MS)
                    _keep_joining(consumer)
                    self._confirm(consumer, beat_ms / 1000)
                except KafkaError as error:
                    if not self.held():
                        raise
                    logger.warning(
                        "lease not confirmed: %s", self._explain(error), extra=LogEvent.LEASE_NOT_CONFIRMED.extra
                    )
        finally:
            self._drop()
            consumer.close(autocommit=False, timeout_ms=beat_ms)

    def _confirm(self, consumer: Any, beat_s: float) -> None:
        """Take notice of what the group decided, and prove the membership if it is due."""
        group = consumer.group_metadata()
        joined = group.state == MemberState.STABLE
        ours = self._partition in consumer.assignment()
        if joined:
            self._refused, self._elsewhere = None, not ours
        if not ours:
            self._drop()
            return
        started = now_s()
        due = started >= self._prove_at or group.generation_id != self._proven_generation
        # In a rebalance a commit waits for the poll that ends it, and this thread is the one that polls.
        if not joined or not due:
            return
        consumer.pause(self._partition)
        consumer.commit({self._partition: OffsetAndMetadata(0, "", -1)}, timeout_ms=int(beat_s * 1000))
        self._proven_generation = group.generation_id
        self._prove_at = started + beat_s
        self._hold_until(started + self._session_ms / 1000)

    def _hold_until(self, end: float) -> None:
        with self._lock:
            if self._released.is_set():
                return
            if not self.held():
                self._term += 1
                logger.info(
                    "lease held: group %s on cluster %s",
                    self._group,
                    self._config.alias,
                    extra=LogEvent.LEASE_HELD.extra,
                )
            self._held_until = end

    def _drop(self) -> None:
        with self._lock:
            if self.held():
                logger.info(
                    "lease given up: group %s on cluster %s",
                    self._group,
                    self._config.alias,
                    extra=LogEvent.LEASE_GIVEN_UP.extra,
                )
            self._held_until = 0.0

    def _explain(self, error: Exception) -> str:
        where = f"group {self._group} on cluster {self._config.alias}"
        match error:
            case InconsistentGroupProtocolError():
                return f"a MirrorMaker 2 (or another Connect worker) still runs in {where}; stop it first"
            case GroupAuthorizationFailedError():
                return f"we may not join {where}; grant our principal READ on the group"
            case TopicAuthorizationFailedError():
                return f"we may not read topic {self._partition.topic}, which {where} needs; grant READ on it"
            case KafkaTimeoutError():
                return f"{where}: no answer from {', '.join(self._config.bootstrap_servers)}"
            case InvalidSessionTimeoutError():
                return (
                    f"{where} refuses a session timeout of {self._session_ms} ms; keep it between the "
                    f"brokers' group.min.session.timeout.ms and group.max.session.timeout.ms"
                )
        return f"{where}: {' '.join(str(error).split()) or type(error).__name__}"
