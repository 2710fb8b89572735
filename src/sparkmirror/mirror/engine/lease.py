"""The lease: among all processes started on one file, a single process works.

The rest stand by. The lease is membership in a consumer group on the target, `<source>-mm2`. MirrorMaker 2's own nodes
form the same group there (`mm2.md` 3.10), so MirrorMaker 2 and sparkmirror exclude each other. The holder is the member
that has an internal topic's partition 0.

Two rules ensure a single holder at a time:

- *Proof.* The holder proves its membership by an offset commit, which carries member and generation, and which the
  coordinator takes as a heartbeat. `held()` is true for one session timeout after the last confirmed commit was sent,
  by this process' clock. The coordinator got the commit later than that, and waits for a whole session timeout before
  it gives the partition to another member. So no other member has the partition while `held()` is true.
- *Claims.* A member tells the group's leader whether it holds the lease, and `HolderStays` never takes the lease from
  a member that claims it. kafka-python's sticky assignors would: when a member that fell out of the group comes back
  and still claims its old partition, these assignors take the partition from the living holder.
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
from sparkmirror.config.model import ClusterConfig
from sparkmirror.events import Event as LogEvent
from sparkmirror.kafka.cluster.kafka_python_client import build_client, client_settings
from sparkmirror.kafka.cluster.reachability import check_access

logger = logging.getLogger(__name__)

BEATS_PER_SESSION = 6
"""Heartbeats per session timeout to the coordinator, and as many proofs."""
REBALANCE_SESSIONS = 3
"""Session timeouts that a member has to rejoin: longer than any proof lasts."""
JOIN_SESSIONS = REBALANCE_SESSIONS + 1
"""Session timeouts after which a client that has not joined is replaced.

A rebalance takes less. After a damaged answer kafka-python may wait for an answer without end, such as after a throttle
that takes weeks.
"""
POLL_MS = 100
CALM_S = 1.0
"""Longest pause between the holder's polls, in seconds.

Each poll wakes kafka-python's threads several times: ten polls a second took more than a percent of a core. The holder
needs polls only to join again when another process comes or goes, and that process waits for it. A process that stands
by polls on, to take over at once.
"""
RETRY_S = 1.0


@dataclass(frozen=True, slots=True)
class LeaseClaim:
    """A joining member's claim."""

    member: str
    generation: int | None
    """Generation in which the member got the lease; None: not the holder."""


def choose_holder(claims: Iterable[LeaseClaim]) -> str:
    """Return the member that gets the lease.

    The holder stays. Among several claims, the newest generation wins; without a claim, the first member id.
    """
    members = list(claims)
    holding = [(claim.generation, claim.member) for claim in members if claim.generation is not None]
    return max(holding)[1] if holding else min(claim.member for claim in members)


class HolderStays:
    """Assignor in kafka-python's interface: partition 0 stays with its living holder."""

    name = "sparkmirror-lease"
    version = 1

    def __init__(self, topic: str, still_held: Callable[[], bool]) -> None:
        self._topic = topic
        self._still_held = still_held
        self._generation = -1

    def supported_protocols(self) -> list[Any]:
        return [RebalanceProtocol.COOPERATIVE]

    def metadata(self, topics: Iterable[str]) -> Any:
        """Return this member's claim, which each JoinGroup request carries."""
        claim = str(self._generation).encode() if self._still_held() else b""
        return ConsumerProtocolSubscription(
            version=self.version, topics=sorted(topics), user_data=claim, owned_partitions=[]
        )

    def assign(self, cluster: Any, members: Iterable[Any]) -> dict[str, Any]:
        """Decide for the group; only the group's leader is asked."""
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
    """Have the next poll take up a join that the last poll left unfinished.

    The group's leader rejoins when the topic's metadata differs from the metadata at the last assignment; a member that
    joins before it knows a new topic always does. kafka-python 3.0 forgets this reason while it makes the new
    assignment. If a poll runs out of time then, before the group has confirmed the assignment, no later poll cares: the
    member stays between two generations, sends no heartbeats, and raises nothing. (In Java's client a pending join is a
    reason by itself.)
    """
    if consumer.group_metadata().state == MemberState.REBALANCING:
        consumer._coordinator.request_rejoin()  # noqa: SLF001 - no public call does this


def _claim(member: Any) -> LeaseClaim:
    data = member.metadata.user_data
    return LeaseClaim(member.member_id, int(data) if data else None)


class Lease:
    """One process's part in the lease; stands by from `start()` to `release()`.

    `topic` has one partition and exists; the lease writes no record to it. The work runs in a daemon thread; the
    methods here may be called from any thread.
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
        """Join the group in the background, trying for as long as needed; call once."""
        self._thread.start()

    @property
    def topic(self) -> str:
        """Topic of the partition that stands for the lease."""
        return str(self._partition.topic)

    def held(self) -> bool:
        """True if this process holds the lease at this moment, by its own clock."""
        return now_s() < self._held_until

    @property
    def term(self) -> int:
        """Number of times the process got the lease; a change means a loss in between."""
        return self._term

    @property
    def refused(self) -> str | None:
        """Reason in a single line why the group refuses this process.

        None if the group accepts the process, or if no answer is known yet.
        """
        return self._refused

    @property
    def elsewhere(self) -> bool:
        """True if another process had the lease at the group's last answer."""
        return self._elsewhere

    def release(self, timeout_s: float = 5.0) -> None:
        """Give the lease up and leave the group, so that the next process takes over.

        Call this when nothing is sent any more. Returns after `timeout_s` at the latest; if the group was not left by
        then, the other processes wait for the session timeout.
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
        """Be a member until released, or until a failure that a new membership may mend."""
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
        member_at = now_s()
        try:
            consumer.subscribe([self._partition.topic])
            while not self._released.is_set():
                try:
                    consumer.poll(timeout_ms=POLL_MS)
                    _keep_joining(consumer)
                    self._confirm(consumer, beat_ms / 1000)
                    self._rest(consumer)
                    if consumer.group_metadata().state == MemberState.STABLE:
                        member_at = now_s()
                    elif now_s() - member_at > JOIN_SESSIONS * self._session_ms / 1000:
                        raise KafkaTimeoutError
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
        """Notice the group's decision, and prove the membership if due."""
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
        # In a rebalance a commit waits for the poll that ends the rebalance, and this thread does the polls.
        if not joined or not due:
            return
        consumer.pause(self._partition)
        consumer.commit({self._partition: OffsetAndMetadata(0, "", -1)}, timeout_ms=int(beat_s * 1000))
        self._proven_generation = group.generation_id
        self._prove_at = started + beat_s
        self._hold_until(started + self._session_ms / 1000)

    def _rest(self, consumer: Any) -> None:
        """Pause while nothing is due: until the next proof, `CALM_S` at most."""
        if self.held() and consumer.group_metadata().state == MemberState.STABLE:
            self._released.wait(min(max(self._prove_at - now_s(), 0.0), CALM_S))

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
        group = f"group {self._group} on cluster {self._config.alias}"
        match error:
            case InconsistentGroupProtocolError():
                return f"a MirrorMaker 2 (or another Connect worker) still runs in {group}; stop it first"
            case GroupAuthorizationFailedError():
                return f"sparkmirror may not join {group}; grant sparkmirror's principal READ on the group"
            case TopicAuthorizationFailedError():
                return f"sparkmirror may not read topic {self._partition.topic}, which {group} needs; grant READ on it"
            case KafkaTimeoutError():
                return f"{group}: no answer from {', '.join(self._config.bootstrap_servers)}"
            case InvalidSessionTimeoutError():
                return (
                    f"{group} refuses a session timeout of {self._session_ms} ms; keep it between the "
                    f"brokers' group.min.session.timeout.ms and group.max.session.timeout.ms"
                )
        return f"{group}: {' '.join(str(error).split()) or type(error).__name__}"
