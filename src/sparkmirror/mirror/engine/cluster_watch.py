"""Watch one of a flow's clusters: does any broker answer the driver?

Duties and pumps wait for answers for half a minute and more, and earlier figures look new until then.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from kafka.protocol.metadata import MetadataRequest

from sparkmirror.clock import utc
from sparkmirror.config import ClusterConfig
from sparkmirror.errors import SparkMirrorError
from sparkmirror.events import Event
from sparkmirror.kafka.cluster.broker_versions import release
from sparkmirror.kafka.cluster.client import addresses, dial
from sparkmirror.kafka.cluster.expected_clusters import EXPECTED, AnotherClustersBroker
from sparkmirror.kafka.wire.rpc import RpcConnection

ASK_S = 2.0
"""Seconds between two questions."""

ANSWER_S = 2.5
"""Longest wait in seconds for a broker's answer.

A stopped broker takes a connection and then does not answer.
"""

AWAY_S = 6.0
"""Seconds without an answer that make a cluster away.

Some of its brokers may still be tried then.
"""

TURN_S = 10.0
"""Longest turn in seconds; the next turn continues with the remaining brokers."""

FORGET_S = 86_400.0
"""Seconds after which a broker that is in no answer counts as removed."""

log = logging.getLogger(__name__)


class KnownBrokers(NamedTuple):
    """A cluster's brokers, by its own answers."""

    up: int
    """Number of brokers in the newest answer; 0 while the cluster is away."""
    known: int
    """Number of brokers in any answer within the last day."""
    release: str
    """The broker's Apache Kafka release, or an older release that knows as much."""


class Away(NamedTuple):
    """A cluster's silence."""

    since_s: float
    """Time of the first unanswered question, in seconds since 1970."""
    words: str


class ClusterWatch:
    """Watch one cluster, over its own connection; `watch` runs in a thread.

    Any broker's answer will do. The question is Metadata without topics: no right is needed.
    """

    def __init__(self, config: ClusterConfig, role: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._config = config
        self._client_id = config.client_id or role
        self._clock = clock
        self._connection: RpcConnection | None = None
        self._brokers: list[tuple[str, int]] = []
        self._next = 0
        """The next broker to try: its index in `_brokers`."""
        self._silence: tuple[float, float] | None = None
        """The first question without an answer: by `clock`, and since 1970."""
        self._reason = ""
        """Reason why every broker failed; empty while brokers are left to be tried."""
        self._told = False
        self._seen: dict[int, float] = {}
        """Each broker's last answer time, by node id."""
        self._release = ""

    @property
    def brokers(self) -> KnownBrokers | None:
        """The cluster's brokers; None before its first answer."""
        seen = dict(self._seen)
        if not seen:
            return None
        return KnownBrokers(0 if self.away is not None else len(self._brokers), len(seen), self._release)

    @property
    def away(self) -> Away | None:
        """The cluster's silence; None while it answers, and before the first question."""
        silence, reason = self._silence, self._reason
        if silence is None or not (reason or self._clock() - silence[0] > AWAY_S):
            return None
        words = f"cluster {self._config.alias} has not answered since {utc(silence[1])}"
        return Away(silence[1], f"{words}: {reason}" if reason else words)

    def watch(self, closing: threading.Event) -> None:
        """Ask at intervals, until `closing` is set."""
        while not closing.wait(ASK_S):
            self.ask()
        self._hang_up()

    def ask(self) -> None:
        """Ask the broker that answered last, else each other broker."""
        if self._silence is None:
            self._silence = self._clock(), time.time()
        try:
            reason = self._failure()
        except Exception as error:  # this thread must not end
            log.exception("asking cluster %s", self._config.alias, extra=Event.BACKGROUND_WORK_FAILED.extra)
            reason = _line(error)
        self._reason = reason
        if not reason:
            self._silence = None
        self._tell()

    def _failure(self) -> str:
        """Return why no broker answers; empty if one does."""
        deadline = self._clock() + TURN_S
        reason = ""
        if self._connection is not None:
            reason = self._tried(self._connection, "")
            if not reason:
                return ""
        servers = list(dict.fromkeys([*self._brokers, *addresses(self._config)]))
        for _ in servers:
            host, port = servers[self._next % len(servers)]
            try:
                self._connection = dial(self._config, (host, port), self._client_id, ANSWER_S)
            except (ConnectionError, SparkMirrorError) as error:
                reason = _line(error)
            else:
                reason = self._tried(self._connection, f"{host}:{port}")
                if not reason:
                    return ""
            self._next += 1
            if self._clock() > deadline:
                break
        return reason

    def _tried(self, connection: RpcConnection, dialled: str) -> str:
        """Return why a broker does not answer over a connection; empty if it does.

        A broker that was just `dialled` must belong to the flow's cluster.
        """
        try:
            answer = connection.call(MetadataRequest(topics=[], allow_auto_topic_creation=False))
            if dialled:
                EXPECTED.see(self._config, dialled, answer.cluster_id or "")
        except AnotherClustersBroker as error:
            self._hang_up()
            return _line(error)
        except (ConnectionError, SparkMirrorError) as error:
            self._hang_up()
            return f"{dialled}: {_line(error)}" if dialled else _line(error)
        now = self._clock()
        self._brokers = [(broker.host, broker.port) for broker in answer.brokers]
        self._seen = {node: at for node, at in self._seen.items() if now - at < FORGET_S}
        self._seen |= {broker.node_id: now for broker in answer.brokers}
        self._release = release(connection)
        return ""

    def _hang_up(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _tell(self) -> None:
        """Log that the cluster is away, or is back, once each."""
        away = self.away
        if away is not None and not self._told:
            log.warning("%s", away.words, extra=Event.CLUSTER_AWAY.extra)
        elif away is None and self._told:
            log.info("cluster %s answers again", self._config.alias, extra=Event.CLUSTER_BACK.extra)
        self._told = away is not None


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
