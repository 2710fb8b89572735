"""Admin requests of the driver to one cluster: topics, configurations, offsets.

Wraps kafka-python's `KafkaAdminClient`: no type, error or dictionary of kafka-python leaves this module.
Every call ends within the admin timeout, even if kafka-python hangs. A call without an answer raises
`ClusterUnreachable` with one line. A failure of a single topic is part of the result.
"""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Thread
from typing import Any, Self, TypeVar
from uuid import UUID

from kafka import KafkaAdminClient, OffsetSpec
from kafka import TopicPartition as _TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import BrokerResponseError, KafkaError, SaslAuthenticationFailedError
from kafka.protocol.consumer import IsolationLevel

from sparkmirror.cluster.client import ClusterClient, addresses
from sparkmirror.cluster.error_codes import error_name
from sparkmirror.cluster.kafka_python_sasl import sasl_settings
from sparkmirror.cluster.open_connections import OpenConnections
from sparkmirror.cluster.sign_in import sign_in
from sparkmirror.cluster.sign_in_pause import sign_in_pause
from sparkmirror.cluster.tls import ssl_context
from sparkmirror.config.model import ClusterConfig
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.wire.error_codes import ErrorCode
from sparkmirror.wire.rpc import AccessRefused, RpcConnection
from sparkmirror.wire.topic_ids import NO_ID
from sparkmirror.wire.topic_partition import TopicPartition

TOPICS_PER_REQUEST = 300
PARTITIONS_PER_REQUEST = 2000
RETRY_PAUSE_S = 0.2
PROBE_SHARE = 0.2
"""Share of the connect timeout kept to find out why no broker answered."""

ASSUMED_TO_EXIST = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.TOPIC_ALREADY_EXISTS,
    }
)
"""Error codes after which an internal topic is assumed to exist.

As in MirrorMaker 2 (`mm2.md` 2.1).
"""
ADVICE: Mapping[int, str] = {
    ErrorCode.INVALID_TOPIC_EXCEPTION: "rename the topic or exclude it",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "grant sparkmirror's principal CREATE and DESCRIBE on it",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "grant sparkmirror's principal CREATE on the cluster",
    ErrorCode.INVALID_REPLICATION_FACTOR: "lower its replication factor or add brokers; -1 takes the broker's default",
    ErrorCode.INVALID_CONFIG: "exclude the property from the copied ones: config.properties.exclude = +NAME",
    ErrorCode.POLICY_VIOLATION: "the cluster's create.topic.policy forbids it",
}

_Answer = TypeVar("_Answer")
_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """One partition, as described by the cluster's metadata."""

    partition: int
    leader: int
    """Node id; -1 while the partition has no leader."""
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """One topic, as described by the cluster's metadata."""

    name: str
    topic_id: bytes
    """Topic id, 16 bytes; all zero if the cluster has no topic ids."""
    partitions: tuple[PartitionDescription, ...]


@dataclass(frozen=True, slots=True)
class NewTopicSpec:
    """A topic to create; -1 stands for the broker's default."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One property of a topic, and the source of its value."""

    name: str
    value: str | None
    source: str
    """Kafka's name of the source, such as `DYNAMIC_TOPIC_CONFIG` or `DEFAULT_CONFIG`."""
    read_only: bool
    sensitive: bool


def client_settings(config: ClusterConfig, role: str) -> dict[str, Any]:
    """Return the settings of every kafka-python client of this cluster.

    `role` goes into the client id. Quietens the `kafka` logger unless the application has set its level:
    sparkmirror retries or raises each failure, and reports the raised ones itself.
    """
    logger = logging.getLogger("kafka")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.CRITICAL)
    return {
        "bootstrap_servers": list(config.bootstrap_servers),
        "security_protocol": config.security_protocol,
        "ssl_context": ssl_context(config),
        **sasl_settings(config),
        "client_id": f"{config.client_id}|{role}" if config.client_id else role,
        "request_timeout_ms": config.request_timeout_ms,
        "reconnect_backoff_max_ms": 1000,
    }


def build_client(kind: Any, **settings: Any) -> Any:
    """Construct a kafka-python client, leaving no thread behind after a failure.

    The client's own constructor does leave one.
    """
    built: list[Any] = []

    def network(**configs: Any) -> Any:
        built.append(kind.DEFAULT_CONFIG["kafka_client"](**configs))
        return built[-1]

    try:
        return kind(kafka_client=network, **settings)
    except BaseException:
        for half in built:
            half.close()
        raise


class ClusterAdmin:
    """Admin client of one cluster; close it, or use it as a context manager."""

    def __init__(
        self, config: ClusterConfig, role: str, client: Any, timeout_s: float, opened: OpenConnections | None = None
    ) -> None:
        """Wrap a connected client; `opened` counts the client's connections."""
        self.config = config
        self._client = client
        self._opened = opened or OpenConnections()
        self._metadata = ClusterClient(config, role)
        """Client for the cluster's id and brokers.

        kafka-python 3.0.12 can't read DescribeCluster v0 (Kafka 2.8 to 3.6).
        """
        self._timeout_s = timeout_s
        self._failed_last = False

    @classmethod
    def connect(cls, config: ClusterConfig, role: str, timeout_s: float = 60.0) -> Self:
        """Connect within `timeout_s`; the same bound holds for each later call.

        `role` is sent to the brokers as part of the client id. Raises `ClusterUnreachable`, and `ConfigError`
        if a truststore or keystore can't be used.
        """
        check_access(config, timeout_s * PROBE_SHARE)
        settings = client_settings(config, role)
        settings["request_timeout_ms"] = min(config.request_timeout_ms, int(timeout_s * 1000))
        patience_s = timeout_s * (1 - PROBE_SHARE)
        settings["bootstrap_timeout_ms"] = patience_s * 900
        opened = OpenConnections()
        settings["metric_reporters"] = [lambda: opened]
        try:
            client = _within(patience_s, build_client, KafkaAdminClient, **settings)
        except (TimeoutError, KafkaError, ValueError, OSError) as error:
            reason = _why_unreachable(config, error, timeout_s * PROBE_SHARE)
            servers = ",".join(config.bootstrap_servers)
            raise ClusterUnreachable(f"cluster {config.alias} can't be reached at {servers}: {reason}") from error
        return cls(config, role, client, timeout_s, opened)

    @property
    def connections(self) -> int:
        """Number of connections open now."""
        return self._opened.count + self._metadata.connections

    def close(self) -> None:
        """Close the connections; a second call does nothing."""
        self._client.close()
        self._metadata.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def cluster_id(self) -> str:
        """Return the id of the cluster, set when its storage was formatted."""
        self._ask("reading the cluster id", self._metadata.metadata, ())
        return self._metadata.cluster_id

    def topics(self, names: Iterable[str] | None = None) -> dict[str, TopicDescription]:
        """Describe all topics, or the named ones; return the descriptions by name.

        Leaves out the brokers' internal topics, and missing and unreadable topics. Without `names` a single
        response brings all topics, as Kafka's protocol has it; named topics are asked for in chunks.
        """
        what = "reading the topics"
        if names is None:
            return _described(self._ask(what, self._client.describe_topics, None))
        described: dict[str, TopicDescription] = {}
        for chunk in _chunks(sorted(set(names)), TOPICS_PER_REQUEST):
            described |= _described(self._ask(what, self._client.describe_topics, chunk))
        return described

    def topic_configs(self, names: Iterable[str]) -> dict[str, tuple[ConfigEntry, ...]]:
        """Read every property of these topics.

        A deleted topic, or a topic whose configuration may not be read, is left out.
        """
        configs: dict[str, tuple[ConfigEntry, ...]] = {}
        for chunk in _chunks(sorted(set(names)), TOPICS_PER_REQUEST):
            answer = self._describe_configs([ConfigResource(ConfigResourceType.TOPIC, name) for name in chunk])
            for name, properties in answer.get("topic", {}).items():
                if properties:
                    configs[name] = tuple(_config_entry(key, data) for key, data in properties.items())
        return configs

    def broker_config(self, name: str) -> str | None:
        """Read one broker property from the first broker that answers.

        For example `producer.id.expiration.ms`. None if the broker does not have the property.
        """
        self._ask("reading the brokers", self._metadata.metadata, ())
        living = sorted(self._metadata.brokers)
        for broker in living:
            try:
                answer = self._describe_configs([ConfigResource(ConfigResourceType.BROKER, str(broker), [name])])
            except ClusterUnreachable:
                if broker == living[-1]:
                    raise
                continue  # the broker came back a moment ago, and kafka-python does not know it yet
            data = answer.get("broker", {}).get(str(broker), {}).get(name)
            return None if data is None else data["value"]
        return None

    def create_topics(self, specs: Iterable[NewTopicSpec]) -> dict[str, str | None]:
        """Create topics; return for each name None, or one line with the failure.

        None: the topic exists now.
        """
        return {name: creation_refusal(code, words) for name, (code, words) in self.creations(specs).items()}

    def create_compacted_topic(
        self,
        name: str,
        partitions: int,
        replication_factor: int,
        configs: Mapping[str, str] | None = None,
        *,
        factor_key: str = "",
    ) -> bool:
        """Create an internal topic with `cleanup.policy=compact`; True if it is new.

        If the principal may not create topics the topic is assumed to exist (`mm2.md` 2.1). Any other failure
        raises `ClusterUnreachable`; its message names `factor_key` if the replication factor is the reason.
        """
        settings = {"cleanup.policy": "compact", **(configs or {})}
        outcome = self.creations([NewTopicSpec(name, partitions, replication_factor, settings)])
        code, message = outcome[name]
        if code and code not in ASSUMED_TO_EXIST:
            reason = refusal(code, message)
            if code == ErrorCode.INVALID_REPLICATION_FACTOR and factor_key:
                reason += f" ({factor_key})"
            raise self._failed(f"creating the internal topic {name}", reason)
        return code == ErrorCode.NONE

    def create_partitions(self, counts: Mapping[str, int]) -> dict[str, str | None]:
        """Grow topics to these total counts of partitions.

        Return for each topic None if it has as many partitions now, or more; else one line with the failure.
        """
        outcomes: dict[str, str | None] = {}
        for chunk in _chunks(sorted(counts), TOPICS_PER_REQUEST):
            wanted = {name: counts[name] for name in chunk}
            answer = self._ask("adding partitions", self._client.create_partitions, wanted, raise_errors=False)
            for result in answer.results:
                fine = result.error_code in (ErrorCode.NONE, ErrorCode.INVALID_PARTITIONS)
                outcomes[result.name] = None if fine else refusal(result.error_code, result.error_message)
        return outcomes

    def start_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Read the log start offsets; leave out missing and leaderless partitions."""
        return self._offsets(partitions, OffsetSpec.EARLIEST)

    def end_offsets(
        self, partitions: Iterable[TopicPartition], *, isolation: str = "read_uncommitted"
    ) -> dict[TopicPartition, int]:
        """Read the high watermarks, or at read_committed the last stable offsets.

        Missing and leaderless partitions are left out.
        """
        return self._offsets(partitions, OffsetSpec.LATEST, IsolationLevel[isolation.upper()])

    def creations(self, specs: Iterable[NewTopicSpec]) -> dict[str, tuple[int, str]]:
        """Create topics; return for each name Kafka's error code and the broker's words.

        Code 0: created.
        """
        return self._creations(specs, "creating topics", dry=False)

    def would_create(self, specs: Iterable[NewTopicSpec]) -> dict[str, tuple[int, str]]:
        """Return the answers of `creations` without creating the topics."""
        return self._creations(specs, "asking whether topics can be created", dry=True)

    def _creations(self, specs: Iterable[NewTopicSpec], what: str, *, dry: bool) -> dict[str, tuple[int, str]]:
        outcomes: dict[str, tuple[int, str]] = {}
        for chunk in _chunks(list(specs), TOPICS_PER_REQUEST):
            request = {
                spec.name: {
                    "num_partitions": spec.partitions,
                    "replication_factor": spec.replication_factor,
                    "configs": dict(spec.configs),
                }
                for spec in chunk
            }
            create = self._client.create_topics
            answer = self._ask(what, create, request, raise_errors=False, validate_only=dry)
            for topic in answer["topics"]:
                outcomes[topic["name"]] = (topic["error_code"], topic.get("error_message") or "")
        return outcomes

    def _describe_configs(self, resources: Sequence[Any]) -> dict[str, Any]:
        ask = self._client.describe_configs
        answer: dict[str, Any] = self._ask("reading configurations", ask, resources, config_filter="all")
        return answer

    def _offsets(
        self, partitions: Iterable[TopicPartition], spec: Any, isolation: Any = IsolationLevel.READ_UNCOMMITTED
    ) -> dict[TopicPartition, int]:
        wanted = set(partitions)
        topics = self.topics({topic for topic, _ in wanted})
        led = {
            (topic.name, partition.partition)
            for topic in topics.values()
            for partition in topic.partitions
            if partition.leader >= 0
        }
        offsets: dict[TopicPartition, int] = {}
        for chunk in _chunks(sorted(wanted & led), PARTITIONS_PER_REQUEST):
            offsets |= self._list_offsets(chunk, spec, isolation)
        return offsets

    def _list_offsets(
        self, partitions: Sequence[TopicPartition], spec: Any, isolation: Any
    ) -> dict[TopicPartition, int]:
        """List offsets; leave out partitions that a broker refuses.

        The broker refuses the whole request for a single partition, so the request is halved until each refused
        partition is alone.
        """
        specs = {_TopicPartition(topic, partition): spec for topic, partition in partitions}

        def ask() -> dict[Any, Any] | None:
            try:
                answer: dict[Any, Any] = self._client.list_partition_offsets(specs, isolation, timeout_ms=2000)
            except BrokerResponseError:
                return None
            return answer

        answer = self._ask("reading offsets", ask)
        if answer is not None:
            return {(tp.topic, tp.partition): listed.offset for tp, listed in answer.items()}
        if len(partitions) == 1:
            return {}
        middle = len(partitions) // 2
        first, second = partitions[:middle], partitions[middle:]
        return self._list_offsets(first, spec, isolation) | self._list_offsets(second, spec, isolation)

    def _ask(self, what: str, question: Callable[..., _Answer], *args: Any, **options: Any) -> _Answer:
        """Ask, and ask again after retriable errors, until the admin timeout.

        After a failure, check first whether the brokers admit this client at all: kafka-python would try to
        sign in three times a second.
        """
        deadline = time.monotonic() + self._timeout_s
        if self._failed_last:
            check_access(self.config, self._timeout_s * PROBE_SHARE)
        self._failed_last = True
        while True:
            try:
                answer = _within(deadline - time.monotonic(), question, *args, **options)
                self._failed_last = False
                return answer
            except TimeoutError as error:
                raise self._failed(what, f"no answer within {self._timeout_s:g} s") from error
            except ClusterUnreachable:
                if time.monotonic() + RETRY_PAUSE_S >= deadline:
                    raise
            except (KafkaError, OSError, RuntimeError) as error:
                if isinstance(error, SaslAuthenticationFailedError):
                    check_access(self.config, self._timeout_s * PROBE_SHARE)
                passes = getattr(error, "retriable", False)
                if not passes or time.monotonic() + RETRY_PAUSE_S >= deadline:
                    raise self._failed(what, _one_line(error)) from error
            time.sleep(RETRY_PAUSE_S)

    def _failed(self, what: str, reason: str) -> ClusterUnreachable:
        return ClusterUnreachable(f"cluster {self.config.alias}: {what} failed: {reason}")


def _within(timeout_s: float, question: Callable[..., _Answer], *args: Any, **options: Any) -> _Answer:
    """Ask in a separate thread, for at most `timeout_s`.

    kafka-python waits without bound if its event loop stalls.
    """
    outcome: Future[_Answer] = Future()

    def ask() -> None:
        try:
            outcome.set_result(question(*args, **options))
        except BaseException as error:  # raised again in the caller's thread
            outcome.set_exception(error)

    Thread(target=ask, name="cluster-admin", daemon=True).start()
    return outcome.result(timeout_s)


def check_access(config: ClusterConfig, timeout_s: float) -> None:
    """Raise `ClusterUnreachable` if every broker refuses this client.

    kafka-python would retry without end and without a reason.
    """
    if not config.encrypted and not config.signs_in:
        return
    tls, how = ssl_context(config), sign_in(config)
    refusals: list[str] = []
    for host, port in addresses(config):
        try:
            with sign_in_pause(config, host, port).passage():
                RpcConnection.dial(
                    host, port, client_id=config.client_id, timeout_s=timeout_s, tls=tls, sign_in=how
                ).close()
        except AccessRefused as error:
            refusals.append(str(error))
        except ConnectionError:
            return  # a broker that is down may still come up
        else:
            return
    raise ClusterUnreachable(f"cluster {config.alias} can't be reached at {'; '.join(refusals)}")


def _why_unreachable(config: ClusterConfig, error: Exception, timeout_s: float) -> str:
    """Find the fault of the servers: kafka-python reports only that time is up."""
    if not isinstance(error, TimeoutError) and "Unable to bootstrap" not in str(error):
        return _one_line(error)
    each_s = timeout_s / len(config.bootstrap_servers)
    reasons = []
    for server in config.bootstrap_servers:
        host, _, port = server.rpartition(":")
        try:
            _within(each_s, _knock, host.strip("[]"), int(port), each_s)
        except ConnectionRefusedError:
            reasons.append("connection refused; check bootstrap.servers and that the brokers run")
        except socket.gaierror:
            reasons.append(f"host {host} is not known; check bootstrap.servers")
        except TimeoutError:
            reasons.append("no answer; check bootstrap.servers and the firewall")
        except ValueError:
            reasons.append(f"{server!r} is not host:port")
        except OSError as problem:
            reasons.append(_one_line(problem))
        else:
            reasons.append(
                f"it accepts connections but doesn't answer as a broker with "
                f"security.protocol={config.security_protocol}; check the port and security.protocol"
            )
    return reasons[-1]


def _knock(host: str, port: int, timeout_s: float) -> None:
    socket.create_connection((host, port), timeout_s).close()


def _described(topics: Iterable[Mapping[str, Any]]) -> dict[str, TopicDescription]:
    return {
        topic["name"]: TopicDescription(
            topic["name"],
            UUID(topic["topic_id"]).bytes if topic.get("topic_id") else NO_ID,
            tuple(
                PartitionDescription(
                    partition["partition_index"],
                    partition["leader_id"],
                    partition.get("leader_epoch", -1),
                    tuple(partition["replica_nodes"]),
                    tuple(partition["isr_nodes"]),
                )
                for partition in sorted(topic["partitions"], key=lambda p: int(p["partition_index"]))
            ),
        )
        for topic in topics
        if topic["partitions"] and not topic["is_internal"]
    }


def _config_entry(name: str, data: Mapping[str, Any]) -> ConfigEntry:
    return ConfigEntry(name, data["value"], data["config_source"], data["read_only"], data["is_sensitive"])


def refusal(code: int, message: str | None, advice: Mapping[int, str] = ADVICE) -> str:
    """Return one line for one of Kafka's error codes.

    The broker's message, or else the code's name, with the advice for the code.
    """
    line = f"{' '.join((message or error_name(code)).split()).rstrip('.')}"
    return f"{line}; {advice[code]}" if code in advice else line


def creation_refusal(code: int, words: str) -> str | None:
    """Return one line with the reason of a failed creation; None if the topic exists."""
    return None if code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS) else refusal(code, words)


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _chunks(items: Sequence[_Item], size: int) -> Iterator[list[_Item]]:
    for start in range(0, len(items), size):
        yield list(items[start : start + size])
