"""The driver's admin requests to one cluster: topics, configurations, offsets.

Each question goes over its own `ClusterClient`, is asked again after a passing error, and ends within the admin
timeout. A question without an answer raises `ClusterUnreachable` with one line. If a single topic fails, the result
says so.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Lock
from typing import Self, TypeVar

from sparkmirror.config.model import ClusterConfig
from sparkmirror.errors import AnotherCluster, ClusterUnreachable
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.list_offsets import (
    DEBUG_CONSUMER,
    EARLIEST,
    LATEST,
    KnownLeaders,
    offsets_by_leader,
)
from sparkmirror.kafka.cluster.mutation_quota import MutationAnswers, as_quota_allows
from sparkmirror.kafka.cluster.new_topics import NewTopicSpec, create_topics, creation_answers, growth_answers
from sparkmirror.kafka.cluster.open_transactions import OpenTransaction, open_transactions
from sparkmirror.kafka.cluster.reachability import check_access, one_line, why_unreachable, within
from sparkmirror.kafka.cluster.refusal_lines import creation_refusal, refusal
from sparkmirror.kafka.cluster.still_ends import StillEnds, still_ends
from sparkmirror.kafka.cluster.topic_configs import ConfigEntry, broker_config, describe_topic_configs
from sparkmirror.kafka.cluster.topic_descriptions import TopicDescription, describe_topics
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.rpc import AccessRefused, UnsupportedBroker
from sparkmirror.kafka.wire.topic_partition import TopicPartition

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

_Answer = TypeVar("_Answer")


class ClusterAdmin:
    """One cluster's admin client; close it, or use it as a context manager.

    Any thread may ask.
    """

    def __init__(self, config: ClusterConfig, role: str, timeout_s: float) -> None:
        """Make a client without connections; `connect` asks the cluster first."""
        self.config = config
        self._role = role
        self._timeout_s = timeout_s
        self._lock = Lock()
        self._idle: list[ClusterClient] = []
        self._asking: set[ClusterClient] = set()
        self._failed_last = False
        self._closed = False
        self.quota_patience_s = timeout_s
        """Longest time in seconds that a creation waits for the controller's quota."""
        self.quota_wait_s = 0.0
        """Seconds until topics over the quota may be asked for again; 0: no such topics."""

    @classmethod
    def connect(cls, config: ClusterConfig, role: str, timeout_s: float = 60.0) -> Self:
        """Connect within `timeout_s`; the same bound holds for each later call.

        `role` is the client id, unless the user has written another. Raises `ClusterUnreachable`, and `ConfigError`
        if a truststore or keystore can't be used.
        """
        check_access(config, timeout_s * PROBE_SHARE)
        admin = cls(config, role, timeout_s)
        try:
            admin._until(time.monotonic() + timeout_s * (1 - PROBE_SHARE), _metadata)
        except AnotherCluster:
            admin.close()
            raise
        except (TimeoutError, ConnectionError, ClusterUnreachable) as error:
            admin.close()
            check_access(config, timeout_s * PROBE_SHARE)
            unanswered = isinstance(error, TimeoutError | ClusterUnreachable)
            reason = why_unreachable(config, timeout_s * PROBE_SHARE) if unanswered else one_line(error)
            servers = ",".join(config.bootstrap_servers)
            raise ClusterUnreachable(f"cluster {config.alias} can't be reached at {servers}: {reason}") from error
        return admin

    @property
    def connections(self) -> int:
        """Number of open connections, those that a question is using among them."""
        with self._lock:
            return sum(client.connections for client in (*self._idle, *self._asking))

    def close(self) -> None:
        """Close the connections; a second call does nothing."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for client in idle:
            client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def cluster_id(self) -> str:
        """Return the cluster's id, set when its storage was formatted."""
        return self._ask("reading the cluster id", _metadata).cluster_id

    def topics(self, names: Iterable[str] | None = None) -> dict[str, TopicDescription]:
        """Describe all topics, or the named ones, as `describe_topics` does."""
        wanted = None if names is None else list(names)
        return self._ask("reading the topics", lambda client: describe_topics(client, wanted))

    def topic_configs(self, names: Iterable[str]) -> dict[str, tuple[ConfigEntry, ...]]:
        """Read every property of these topics, as `describe_topic_configs` does."""
        topics = list(names)
        return self._ask("reading configurations", lambda client: describe_topic_configs(client, topics))

    def broker_config(self, name: str) -> str | None:
        """Read one broker property from the first broker that answers.

        For example `producer.id.expiration.ms`. None if the broker does not have the property.
        """
        return self._ask("reading configurations", lambda client: broker_config(client, name))

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
        wished: Mapping[str, str] | None = None,
    ) -> bool:
        """Create an internal topic with `cleanup.policy=compact`; True if it is new.

        A cluster that lets no client set one of the `wished` settings creates the topic without them. If the principal
        may not create topics the topic is assumed to exist (`mm2.md` 2.1). Any other failure raises
        `ClusterUnreachable`; its message names `factor_key` if the replication factor is the reason.
        """
        needed = {"cleanup.policy": "compact", **(configs or {})}
        for settings in (needed | dict(wished or {}), needed):
            code, message = self.creations([NewTopicSpec(name, partitions, replication_factor, settings)])[name]
            if code not in (ErrorCode.INVALID_CONFIG, ErrorCode.POLICY_VIOLATION):
                break
        if code and code not in ASSUMED_TO_EXIST:
            reason = refusal(code, message)
            if code == ErrorCode.INVALID_REPLICATION_FACTOR and factor_key:
                reason += f" ({factor_key})"
            raise self._failed(f"creating the internal topic {name}", reason)
        return code == ErrorCode.NONE

    def create_partitions(self, counts: Mapping[str, int]) -> dict[str, tuple[int, str]]:
        """Grow topics to these total partition counts, as far as the quota allows.

        Return for each name Kafka's error code and the broker's words. Code 0: it has as many now, or more.
        """

        def ask(names: Sequence[str]) -> MutationAnswers:
            wanted = {name: counts[name] for name in names}
            return self._ask("adding partitions", lambda client: growth_answers(client, wanted))

        return self._as_quota_allows(ask, list(counts))

    def start_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Read the log start offsets; leave out missing and leaderless partitions."""
        return self._offsets(partitions, EARLIEST, read_committed=False)

    def end_offsets(
        self,
        partitions: Iterable[TopicPartition],
        *,
        isolation: str = "read_uncommitted",
        known: KnownLeaders | None = None,
    ) -> dict[TopicPartition, int]:
        """Read the high watermarks, or at read_committed the last stable offsets.

        Missing and leaderless partitions are left out. `known` has the leaders from the caller's last question.
        """
        return self._offsets(partitions, LATEST, read_committed=isolation == "read_committed", known=known)

    def log_ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Read the leaders' own log ends, which may be above the high watermarks.

        Missing and leaderless partitions are left out.
        """
        wanted = set(partitions)
        ask = functools.partial(offsets_by_leader, partitions=wanted, timestamp=LATEST, replica_id=DEBUG_CONSUMER)
        return self._ask("reading log ends", ask)

    def still_ends(self, partitions: Iterable[TopicPartition]) -> StillEnds:
        """Read the leaders' log ends of logs at rest, as `still_ends` does."""
        wanted = list(partitions)
        return self._ask("reading log ends", lambda client: still_ends(client, wanted))

    def open_transactions(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, OpenTransaction | str]:
        """Find the transactions that hold partitions back, as `open_transactions` does."""
        wanted = list(partitions)
        return self._ask("looking for open transactions", lambda client: open_transactions(client, wanted))

    def creations(self, specs: Iterable[NewTopicSpec]) -> dict[str, tuple[int, str]]:
        """Create topics, as far as the quota allows.

        Return for each name Kafka's error code and the broker's words. Code 0: created.
        """
        by_name = {spec.name: spec for spec in specs}

        def ask(names: Sequence[str]) -> MutationAnswers:
            wanted = [by_name[name] for name in names]
            return self._ask("creating topics", lambda client: creation_answers(client, wanted))

        return self._as_quota_allows(ask, list(by_name))

    def _as_quota_allows(
        self, ask: Callable[[Sequence[str]], MutationAnswers], names: Sequence[str]
    ) -> dict[str, tuple[int, str]]:
        answers = as_quota_allows(ask, names, self.quota_patience_s)
        self.quota_wait_s = answers.throttle_s if answers.over_quota else 0.0
        return answers.topics

    def would_create(self, specs: Iterable[NewTopicSpec]) -> dict[str, tuple[int, str]]:
        """Return what `creations` would answer, without creating the topics."""
        wanted = list(specs)
        what = "asking whether topics can be created"
        return self._ask(what, lambda client: create_topics(client, wanted, dry=True))

    def _offsets(
        self,
        partitions: Iterable[TopicPartition],
        at: int,
        *,
        read_committed: bool,
        known: KnownLeaders | None = None,
    ) -> dict[TopicPartition, int]:
        wanted = set(partitions)
        ask = functools.partial(
            offsets_by_leader, partitions=wanted, timestamp=at, read_committed=read_committed, known=known
        )
        return self._ask("reading offsets", ask)

    def _ask(self, what: str, question: Callable[[ClusterClient], _Answer]) -> _Answer:
        """Ask, and ask again after passing errors, until the admin timeout.

        After a failure, check first whether the brokers admit this client at all.
        """
        if self._failed_last:
            check_access(self.config, self._timeout_s * PROBE_SHARE)
        self._failed_last = True
        try:
            answer = self._until(time.monotonic() + self._timeout_s, question)
        except TimeoutError as error:
            raise self._failed(what, f"no answer within {self._timeout_s:g} s") from error
        except ConnectionError as error:
            raise self._failed(what, one_line(error)) from error
        self._failed_last = False
        return answer

    def _until(self, deadline: float, question: Callable[[ClusterClient], _Answer]) -> _Answer:
        """Ask until there is an answer, or no time is left for another try."""
        while True:
            try:
                answer: _Answer = within(deadline - time.monotonic(), self._with_client, question)
                return answer
            except (UnsupportedBroker, AnotherCluster):
                raise
            except (ConnectionError, ClusterUnreachable) as error:
                check_access(self.config, self._timeout_s * PROBE_SHARE)
                if isinstance(error, AccessRefused) or time.monotonic() + RETRY_PAUSE_S >= deadline:
                    raise
            time.sleep(RETRY_PAUSE_S)

    def _with_client(self, question: Callable[[ClusterClient], _Answer]) -> _Answer:
        """Ask over an idle client, or over a new one."""
        with self._lock:
            client = self._idle.pop() if self._idle else ClusterClient(self.config, self._role)
            self._asking.add(client)
        try:
            return question(client)
        finally:
            with self._lock:
                self._asking.discard(client)
                keep = not self._closed
                if keep:
                    self._idle.append(client)
            if not keep:
                client.close()

    def _failed(self, what: str, reason: str) -> ClusterUnreachable:
        return ClusterUnreachable(f"cluster {self.config.alias}: {what} failed: {reason}")


def _metadata(client: ClusterClient) -> ClusterClient:
    """Read the cluster's id and brokers into the client."""
    client.metadata([])
    return client
