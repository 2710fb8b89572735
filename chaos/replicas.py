"""What is asked of a cluster about its replicas and logs while it is broken: again and again, until it answers."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from kafka import TopicPartition
from kafka.admin import AlterConfigOp, ConfigResource, ConfigResourceType, KafkaAdminClient, OffsetSpec
from kafka.errors import KafkaError
from kafka.protocol.consumer import ListOffsetsRequest, ListOffsetsResponse
from lab import Broker, KafkaCluster

from sparkmirror.errors import SetupError

_T = TypeVar("_T")
_POLL_S = 0.1
_TIMEOUT_S = 60.0
_ANSWER_S = 3.0
_VERSION = 7
_CONSUMER, _DEBUGGER = -1, -2
"""Who asks for a log's end: one is told the high watermark, the other the leader's own end."""
_CLIENT = {"request_timeout_ms": 5000, "bootstrap_timeout_ms": 5000}


class Replicas(NamedTuple):
    """Where a partition lies; the replica that is to lead comes first."""

    leader: int
    brokers: tuple[int, ...]
    in_sync: frozenset[int]


def ask(cluster: KafkaCluster, action: Callable[[Any], _T], timeout_s: float = _TIMEOUT_S) -> _T:
    """Return what `action` says, given an admin client. Raises SetupError if it only errs for so long."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            admin: Any = KafkaAdminClient(bootstrap_servers=cluster.direct_servers, **_CLIENT)
            try:
                return action(admin)
            finally:
                admin.close()
        except (KafkaError, OSError) as error:
            if time.monotonic() > deadline:
                raise SetupError(f"the cluster does not answer after {timeout_s:.0f} s: {error}") from error
            time.sleep(_POLL_S)


def wait_for(what: str, condition: Callable[[], bool], timeout_s: float = _TIMEOUT_S) -> None:
    """Raises SetupError if it does not come true."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise SetupError(f"{what}: not after {timeout_s:.0f} s")
        time.sleep(_POLL_S)


def replicas(cluster: KafkaCluster, topics: Sequence[str] | None = None) -> dict[TopicPartition, Replicas]:
    """Return where the topics' partitions lie; of all topics by default. One that isn't there is left out."""
    return {
        TopicPartition(topic["name"], part["partition_index"]): Replicas(
            part["leader_id"], tuple(part["replica_nodes"]), frozenset(part["isr_nodes"])
        )
        for topic in ask(cluster, lambda admin: admin.describe_topics(topics))
        if not topic["error_code"]
        for part in topic["partitions"]
    }


def log_ends(cluster: KafkaCluster, parts: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """Return where what is acknowledged ends. Raises SetupError if one can't be told."""
    asked = dict.fromkeys(parts, OffsetSpec.LATEST)
    listed = ask(cluster, lambda admin: admin.list_partition_offsets(asked))
    return {part: int(one.offset) for part, one in listed.items()}


def log_end(cluster: KafkaCluster, part: TopicPartition) -> int:
    """Return where what is acknowledged ends in one partition. Raises SetupError if it can't be told."""
    return log_ends(cluster, [part])[part]


def leaders_log_end(broker: Broker, part: TopicPartition, *, acknowledged: bool = False) -> int:
    """Return where the log ends at its leader, or what is `acknowledged` there; -1 if it does not tell.

    The broker is asked at its own port, past every proxy.
    """
    wanted = ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition(
        partition_index=part.partition, current_leader_epoch=-1, timestamp=-1
    )
    request = ListOffsetsRequest(
        version=_VERSION,
        replica_id=_CONSUMER if acknowledged else _DEBUGGER,
        isolation_level=0,
        topics=[ListOffsetsRequest.ListOffsetsTopic(name=part.topic, partitions=[wanted])],
    )
    request.with_header(correlation_id=1, client_id="chaos-replicas")
    try:
        with socket.create_connection(("127.0.0.1", broker.port), _ANSWER_S) as connection:
            connection.sendall(request.encode(framed=True, header=True))
            answers = connection.makefile("rb")
            frame = answers.read(int.from_bytes(answers.read(4), "big"))
    except OSError:
        return -1
    (found,) = ListOffsetsResponse.decode(memoryview(frame), version=_VERSION, header=True).topics[0].partitions
    return -1 if found.error_code else int(found.offset)


def place(cluster: KafkaCluster, where: Mapping[TopicPartition, Sequence[int]]) -> None:
    """Say which brokers are to keep partitions, the one that is to lead first; does not wait for it."""

    def alter(admin: Any) -> None:
        refused = admin.alter_partition_reassignments({part: list(brokers) for part, brokers in where.items()})
        for error in refused.values():
            if error is not None:
                raise error

    ask(cluster, alter)


def configure(cluster: KafkaCluster, topic: str, settings: Mapping[str, str | None]) -> None:
    """Set a topic's properties; None takes one away."""
    changes = {
        key: (AlterConfigOp.DELETE, None) if value is None else (AlterConfigOp.SET, value)
        for key, value in settings.items()
    }
    ask(cluster, lambda admin: admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, changes)]))
