"""A flow between the two real clusters, pumped in this process, and consumer groups on both sides."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from bench.one_pump import copy_once
from bench.producing import TOOLS
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic
from lab import KafkaCluster

from sparkmirror.config import ClusterConfig, FlowConfig, load_mm2_properties
from sparkmirror.demo.jars import class_path
from sparkmirror.demo.java import java
from sparkmirror.exact.mm2.record_formats import Checkpoint
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.groups import Committed, Groups, Offsets
from sparkmirror.kafka.cluster.share_groups import ShareGroups, StartOffsets
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.mirror.sync.checkpoints import Checkpoints
from sparkmirror.mirror.sync.group_offsets import GroupOffsetSync
from sparkmirror.mirror.sync.share_group_offsets import ShareGroupOffsets
from sparkmirror.policy import DefaultGroupFilter, DefaultTopicFilter, ReplicationPolicy, policy_for
from sparkmirror.pump.messages.orders import Receipt

_numbers = itertools.count(1)


class Record(NamedTuple):
    """As a consumer sees it."""

    offset: int
    key: bytes | None
    value: bytes | None


class Cluster:
    """One side, as its applications use it."""

    def __init__(self, alias: str, cluster: KafkaCluster) -> None:
        self.alias = alias
        self.servers = cluster.bootstrap_servers

    def create(self, topic: str, partitions: int = 1, configs: Mapping[str, str] | None = None) -> None:
        admin = KafkaAdminClient(bootstrap_servers=self.servers)
        try:
            admin.create_topics([NewTopic(topic, partitions, 1, topic_configs=dict(configs or {}))])
            admin.wait_for_topics([topic], timeout_ms=60_000)
        finally:
            admin.close()

    def recreate(self, topic: str) -> None:
        """Delete a topic of one partition, and create it again."""
        admin = KafkaAdminClient(bootstrap_servers=self.servers)
        try:
            admin.delete_topics([topic])
            wait_for(lambda: topic not in admin.list_topics(), f"{topic} deleted")
        finally:
            admin.close()
        self.create(topic)

    def produce(self, topic: str, count: int, partition: int = 0) -> None:
        producer = KafkaProducer(bootstrap_servers=self.servers, linger_ms=5)
        for number in range(count):
            producer.send(topic, key=b"key-%d" % number, value=b"value-%d" % next(_numbers), partition=partition)
        producer.flush()
        producer.close()

    def transactions(self, topic: str, count: int) -> None:
        """Of three records each; one in four is aborted, the last one of a multiple of four too."""
        producer = KafkaProducer(
            bootstrap_servers=self.servers, transactional_id=f"{topic}-writer", retry_backoff_ms=10
        )
        producer.init_transactions()
        for number in range(count):
            producer.begin_transaction()
            for index in range(3):
                producer.send(topic, value=b"%d-%d" % (number, index), partition=0)
            producer.flush()
            if number % 4 == 3:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
        producer.close()

    def aborted(self, topic: str) -> None:
        """One transaction that comes to nothing."""
        producer = KafkaProducer(
            bootstrap_servers=self.servers, transactional_id=f"{topic}-writer", retry_backoff_ms=10
        )
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, value=b"never", partition=0)
        producer.flush()
        producer.abort_transaction()
        producer.close()
        # The coordinator writes the marker after it has answered.
        wait_for(lambda: self.end(topic, committed=True) == self.end(topic), f"the marker in {topic}")

    def delete_records(self, topic: str, before: int) -> None:
        """Of partition 0, as retention does."""
        admin = KafkaAdminClient(bootstrap_servers=self.servers)
        try:
            admin.delete_records({TopicPartition(topic, 0): before})
        finally:
            admin.close()

    def read(self, topic: str, partition: int = 0, *, committed: bool = False) -> list[Record]:
        consumer = KafkaConsumer(
            bootstrap_servers=self.servers,
            isolation_level="read_committed" if committed else "read_uncommitted",
            enable_auto_commit=False,
        )
        where = TopicPartition(topic, partition)
        try:
            consumer.assign([where])
            consumer.seek_to_beginning(where)
            end = consumer.end_offsets([where])[where]
            found: list[Record] = []
            while consumer.position(where) < end:
                for some in consumer.poll(timeout_ms=200).values():
                    found += [Record(one.offset, one.key, one.value) for one in some]
            return found
        finally:
            consumer.close()

    def end(self, topic: str, partition: int = 0, *, committed: bool = False) -> int:
        isolation = "read_committed" if committed else "read_uncommitted"
        consumer = KafkaConsumer(bootstrap_servers=self.servers, isolation_level=isolation)
        where = TopicPartition(topic, partition)
        try:
            return int(consumer.end_offsets([where])[where])
        finally:
            consumer.close()

    def commit(self, group: str, offsets: Mapping[tuple[str, int], int], metadata: str = "") -> None:
        """As an application without members does."""
        wanted = {group: {where: Committed(one, metadata) for where, one in offsets.items()}}
        client = ClusterClient(self._config(), "test")
        try:
            outcome = Groups(client).commit(wanted)[group]
            assert not any(outcome.values()), outcome
        finally:
            client.close()

    def committed(self, group: str) -> Offsets:
        client = ClusterClient(self._config(), "test")
        try:
            return Groups(client).committed([group]).offsets[group]
        finally:
            client.close()

    def start_share_group(self, group: str, starts: StartOffsets) -> None:
        """As an administrator does, for one without members."""
        client = ClusterClient(self._config(), "test")
        try:
            outcome = ShareGroups(client).set_starts({group: starts})[group]
            assert not any(outcome.values()), outcome
        finally:
            client.close()

    def share_starts(self, group: str) -> StartOffsets:
        client = ClusterClient(self._config(), "test")
        try:
            return ShareGroups(client).starts([group]).offsets[group]
        finally:
            client.close()

    def delete_group(self, group: str) -> None:
        admin = KafkaAdminClient(bootstrap_servers=self.servers)
        try:
            admin.delete_groups([group])
        finally:
            admin.close()

    def checkpoints(self, topic: str) -> list[Checkpoint]:
        """All that were ever written."""
        client = ClusterClient(self._config(), "test")
        try:
            return [Checkpoint.read(one.key, one.value) for one in TopicLog(client, topic).read(0, 0)[0]]
        finally:
            client.close()

    def _config(self) -> ClusterConfig:
        return ClusterConfig(alias=self.alias, bootstrap_servers=tuple(self.servers.split(",")))


class GroupFlow:
    """`alias->other` for topics by regular expressions; aliases of its own, so that internal topics are too."""

    def __init__(self, source: Cluster, target: Cluster, topics: str, directory: Path, **settings: str) -> None:
        self.source, self.target = source, target
        self.file = directory / f"{source.alias}-{target.alias}-{next(_numbers)}.properties"
        self.flow = self._load(topics, settings)
        self.receipts: dict[tuple[str, int], Receipt] = {}
        self._duties: list[Checkpoints | GroupOffsetSync | ShareGroupOffsets] = []

    def _load(self, topics: str, settings: Mapping[str, str]) -> FlowConfig:
        a, b = self.source.alias, self.target.alias
        lines = {
            "clusters": f"{a}, {b}",
            f"{a}.bootstrap.servers": self.source.servers,
            f"{b}.bootstrap.servers": self.target.servers,
            f"{a}->{b}.enabled": "true",
            f"{a}->{b}.topics": topics,
            "replication.factor": "1",
            "heartbeats.replication.enabled": "false",
            **settings,
        }
        self.file.write_text("".join(f"{key} = {value}\n" for key, value in lines.items()))
        flow = load_mm2_properties(str(self.file)).flows[0]
        group = flow.group.model_copy(
            update={"checkpoints_topic_replication_factor": 1, "refresh_groups_interval_seconds": 0}
        )
        return flow.model_copy(update={"group": group})

    @property
    def policy(self) -> ReplicationPolicy:
        return policy_for(self.flow.replication_policy_class, source_alias=self.source.alias)

    def copy(self, *, groups: bool = False) -> None:
        """Everything that is at the source now; with `groups` the driver looks after groups too, at the end."""
        settings = self.flow.group.model_copy(update={"emit_checkpoints_enabled": groups})
        flow = self.flow.model_copy(update={"group": settings})
        done = copy_once(flow, f"test-{next(_numbers)}", 60)
        assert all(one.state == "done" for one in done), done
        self.receipts |= {(one.target_topic, one.partition): one for one in done}

    def checkpoints(self, prefix: str) -> Checkpoints:
        """The duty, for groups whose names begin so; as after a restart."""
        duty = Checkpoints(
            self.flow, self.policy, DefaultGroupFilter([f"{prefix}.*"]), self._wanted_topic, self._newest_receipts
        )
        self._duties.append(duty)
        return duty

    def share_group_offsets(self, prefix: str) -> ShareGroupOffsets:
        duty = ShareGroupOffsets(
            self.flow, self.policy, lambda group: group.startswith(prefix), self._wanted_topic, self._newest_receipts
        )
        self._duties.append(duty)
        return duty

    def _wanted_topic(self, topic: str) -> bool:
        return DefaultTopicFilter(self.flow.topics, self.flow.topics_exclude).should_replicate_topic(topic)

    def _newest_receipts(self) -> list[Receipt]:
        return list(self.receipts.values())

    def group_offsets(self, checkpoints: Checkpoints) -> GroupOffsetSync:
        duty = GroupOffsetSync(self.flow, checkpoints)
        self._duties.append(duty)
        return duty

    def written(self, prefix: str) -> list[Checkpoint]:
        """Checkpoints of these groups, in order."""
        topic = self.policy.checkpoints_topic(self.source.alias)
        return [one for one in self.target.checkpoints(topic) if one.group.startswith(prefix)]

    def close(self) -> None:
        for duty in self._duties:
            duty.close()


@contextmanager
def group_flows(directory: Path) -> Iterator[Callable[..., GroupFlow]]:
    """Make flows as `GroupFlow` does, with their files in this directory; close them at the end."""
    with ExitStack() as made:

        def make(source: Cluster, target: Cluster, topics: str, **settings: str) -> GroupFlow:
            return made.enter_context(closing(GroupFlow(source, target, topics, directory, **settings)))

        yield make


def console(cluster: Cluster, tool: str, topic: str, group: str, *arguments: str) -> list[str]:
    """A console consumer's command."""
    return [
        *(java(), "-Xmx128m", "-cp", class_path(TOOLS), f"org.apache.kafka.tools.consumer.{tool}"),
        *("--bootstrap-server", cluster.servers, "--topic", topic, "--group", group, *arguments),
    ]


def wait_for(condition: Callable[[], bool], what: str, timeout_s: float = 30.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not in {timeout_s:.0f} s"
        time.sleep(0.1)


def from_offset(records: Iterable[Record], offset: int) -> list[tuple[bytes | None, bytes | None]]:
    """What a consumer reads from there on."""
    return [(one.key, one.value) for one in records if one.offset >= offset]
