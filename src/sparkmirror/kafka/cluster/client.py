"""One cluster's blocking client: metadata, and a connection to each broker asked.

Blocking by design: a pump asks from a single thread next to its loop. Only `dial` is safe in other threads.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kafka.protocol.metadata import MetadataRequest

from sparkmirror.config import ClusterConfig
from sparkmirror.errors import AnotherCluster, ClusterUnreachable
from sparkmirror.kafka.cluster.expected_clusters import EXPECTED, AnotherClustersBroker
from sparkmirror.kafka.cluster.only_asked import only_asked
from sparkmirror.kafka.cluster.sign_in import sign_in
from sparkmirror.kafka.cluster.sign_in_pause import sign_in_pause
from sparkmirror.kafka.cluster.tls_contexts import ssl_context
from sparkmirror.kafka.wire.rpc import BrokerUnreachable, RpcConnection, UnsupportedBroker
from sparkmirror.kafka.wire.topic_ids import NO_ID

TOPICS_PER_REQUEST = 300
PATIENCE_S = 60.0
"""Time after which only `bootstrap.servers` are tried.

Metadata may name any number of dead hosts.
"""
_RELIABLE_EPOCHS = 9
"""First Metadata version whose leader epochs can be relied on.

Brokers before Kafka 2.4 may tell an outdated one while partitions are reassigned (KAFKA-9212).
"""


@dataclass(frozen=True, slots=True)
class PartitionLeader:
    """A partition's leader, -1 without a leader, and leader epoch, -1 if unknown."""

    leader: int
    epoch: int


@dataclass(frozen=True, slots=True)
class TopicLeaders:
    """One topic in the cluster's metadata; `error` is Kafka's code, 0 for none."""

    name: str
    topic_id: bytes
    error: int
    partitions: dict[int, PartitionLeader]


class ClusterClient:
    """One cluster's client, with one connection for each broker; never retries."""

    def __init__(self, config: ClusterConfig, role: str) -> None:
        self.config = config
        self.client_id = config.client_id or role
        self._timeout_s = min(config.request_timeout_ms / 1000, 10.0)
        self._addresses: dict[int, tuple[str, int]] = {}
        self._connections: dict[int, RpcConnection] = {}
        self.cluster_id = ""
        self.controller = -1
        """Broker to ask for new topics, from the last metadata read; -1: none now."""

    def metadata(self, topics: Iterable[str]) -> dict[str, TopicLeaders]:
        """Read these topics' metadata again; a missing topic carries its error."""
        names = list(dict.fromkeys(topics))
        described: dict[str, TopicLeaders] = {}
        for start in range(0, max(len(names), 1), TOPICS_PER_REQUEST):
            chunk = names[start : start + TOPICS_PER_REQUEST]
            answer = self.ask_any(functools.partial(_metadata_request, chunk))
            self.cluster_id = answer.cluster_id or ""
            self.controller = answer.controller_id
            self._addresses = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
            reliable = answer.version >= _RELIABLE_EPOCHS
            for name, topic in only_asked({topic.name: topic for topic in answer.topics}, chunk, "Metadata").items():
                described[name] = TopicLeaders(
                    name,
                    topic.topic_id.bytes if topic.topic_id else NO_ID,
                    topic.error_code,
                    {
                        p.partition_index: PartitionLeader(p.leader_id, p.leader_epoch if reliable else -1)
                        for p in topic.partitions
                    },
                )
        return described

    @property
    def brokers(self) -> tuple[int, ...]:
        """Node ids of the cluster's brokers, from the last metadata read."""
        return tuple(self._addresses)

    @property
    def connections(self) -> int:
        """Number of connections kept open for later calls."""
        return len(self._connections)

    def broker(self, node_id: int) -> RpcConnection:
        """Return the connection to this broker, kept open for later calls."""
        connection = self._connections.get(node_id)
        if connection is None:
            connection = self._connections[node_id] = self.dial(node_id)
        return connection

    def dial(self, node_id: int, *, send_buffer: int = -1, receive_buffer: int = -1) -> RpcConnection:
        """Open a new connection to this broker, owned by the caller; thread-safe."""
        address = self._addresses.get(node_id)
        if node_id < 0:  # metadata's leader of a partition without a leader
            raise BrokerUnreachable(
                f"cluster {self.config.alias}: a partition has no leader now: see which of its brokers are away"
            )
        if address is None:
            raise BrokerUnreachable(f"cluster {self.config.alias} has no broker {node_id} now")
        return self._dial(*address, send_buffer=send_buffer, receive_buffer=receive_buffer)

    def _dial(self, host: str, port: int, *, send_buffer: int = -1, receive_buffer: int = -1) -> RpcConnection:
        connection = dial(
            self.config,
            (host, port),
            self.client_id,
            self._timeout_s,
            send_buffer=send_buffer,
            receive_buffer=receive_buffer,
        )
        if EXPECTED.is_known(self.config):
            try:
                cluster_id = connection.call(_metadata_request([])).cluster_id or ""
                EXPECTED.see(self.config, f"{host}:{port}", cluster_id)
            except BaseException:
                connection.close()
                raise
        return connection

    def ask(self, node_id: int, request: Any, *, newest: int | None = None) -> Any:
        """Ask one broker, in version `newest` of the request at most.

        A connection is closed after an error, and never used again (R11).
        """
        try:
            return self.broker(node_id).call(request, newest=newest)
        except ConnectionError:
            self.hang_up(node_id)
            raise

    def hang_up(self, node_id: int | None = None) -> None:
        """Close the connection to one broker, or all; the next call opens a new one."""
        for node in [node_id] if node_id is not None else list(self._connections):
            connection = self._connections.pop(node, None)
            if connection is not None:
                connection.close()

    def close(self) -> None:
        self.hang_up()

    def ask_any(self, request: Callable[[], Any]) -> Any:
        """Ask the first broker that answers; `request` makes a request for each try.

        Raises `ClusterUnreachable`, as `AnotherCluster` if a broker has answered as another cluster's.
        """
        reasons: list[str] = []
        elsewhere: AnotherClustersBroker | None = None
        for node in list(self._connections):
            try:
                return self.ask(node, request())
            except ConnectionError as error:
                reasons.append(str(error))
        deadline = time.monotonic() + PATIENCE_S
        configured = addresses(self.config)
        for host, port in dict.fromkeys([*self._addresses.values(), *configured]):
            if time.monotonic() > deadline and (host, port) not in configured:
                continue
            try:
                connection = self._dial(host, port)
            except AnotherClustersBroker as error:
                elsewhere = error
                continue
            except ConnectionError as error:
                reasons.append(str(error))
                continue
            try:
                return connection.call(request())
            except UnsupportedBroker:
                raise
            except ConnectionError as error:
                why = str(error)
                reasons.append(why if why.startswith(f"{host}:") else f"{host}:{port}: {error}")
            finally:
                connection.close()
        if elsewhere is not None:
            raise AnotherCluster(str(elsewhere)) from elsewhere
        raise ClusterUnreachable(
            f"cluster {self.config.alias}: no broker of {','.join(self.config.bootstrap_servers)} answers"
            f" ({reasons[-1] if reasons else 'none is known'}); check bootstrap.servers and"
            " security.protocol, and that the brokers run"
        )


def _metadata_request(topics: Sequence[str]) -> Any:
    return MetadataRequest(
        topics=[MetadataRequest.MetadataRequestTopic(name=topic) for topic in topics],
        allow_auto_topic_creation=False,
    )


def dial(
    config: ClusterConfig,
    address: tuple[str, int],
    client_id: str,
    timeout_s: float,
    *,
    send_buffer: int = -1,
    receive_buffer: int = -1,
) -> RpcConnection:
    """Open a connection to a broker, and sign in; thread-safe.

    After a refused sign-in the process's next tries pause.
    """
    host, port = address
    with sign_in_pause(config, host, port).passage():
        return RpcConnection.dial(
            host,
            port,
            client_id=client_id,
            timeout_s=timeout_s,
            tls=ssl_context(config),
            sign_in=sign_in(config),
            send_buffer=send_buffer,
            receive_buffer=receive_buffer,
        )


def addresses(config: ClusterConfig) -> list[tuple[str, int]]:
    """Return hosts and ports in `bootstrap.servers`; IPv6 addresses lose the brackets."""
    parted = (server.rpartition(":") for server in config.bootstrap_servers)
    return [(host.strip("[]"), int(port)) for host, _, port in parted]
