"""Two clusters A and B, and a mirror with both flows of a migration there and back, for tests of turns."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from lab import KafkaCluster
from tests.support import mirror_process as mp

from sparkmirror.config import FlowConfig, MirrorConfig, load_mm2_properties
from sparkmirror.exact.durable.losses import LossKind, LossLedger, losses_topic
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.mirror.engine.mirror import Mirror
from sparkmirror.mirror.sync.application_translator import Stored, Translation
from sparkmirror.mirror.sync.moved_writers import say_moved
from sparkmirror.mirror.sync.turn_translator import TurnTranslator
from sparkmirror.mirror.sync.turns import Drained, drained, start_turn

PARTITIONS = 3
IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"


class TurnCase:
    """One topic pattern, written at the cluster whose turn it is; each partition's values count up."""

    def __init__(
        self,
        path: Path,
        a: KafkaCluster,
        b: KafkaCluster,
        topics: Sequence[str],
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.a, self.b = a, b
        self.topics = topics
        self.numbers = {(topic, partition): 0 for topic in topics for partition in range(PARTITIONS)}
        """Next value of each partition."""
        self.transactional: set[str] = set()
        """Topics with offsets that are no records: their ends do not tell what is there."""
        self.stragglers: dict[tuple[str, str, int], list[int]] = {}
        self._straggled: dict[tuple[str, str, int, int], bytes] = {}
        """Offsets of records written where the topic was not live, by alias, topic and partition."""
        self.file = mp.write_properties(
            path / "mm2.properties",
            a.bootstrap_servers,
            b.bootstrap_servers,
            ",".join(topics),
            {
                "B->A.enabled": "true",
                "B->A.topics": ",".join(topics),
                "A->B.sparkmirror.turn": "first",
                "B->A.sparkmirror.turn": "second",
                "A.session.timeout.ms": "6000",
                "replication.policy.class": IDENTITY,
                "sync.topic.acls.enabled": "false",
                "refresh.topics.interval.seconds": "600",
                **(settings or {}),
            },
        )

    @property
    def config(self) -> MirrorConfig:
        return load_mm2_properties(str(self.file))

    def flow(self, name: str) -> FlowConfig:
        return next(flow for flow in self.config.flows if flow.name == name)

    def cluster(self, alias: str) -> KafkaCluster:
        return self.a if alias == "A" else self.b

    def write(self, alias: str, topic: str, count: int, *, transactional: bool = False) -> None:
        """Write the next `count` values to each partition at the cluster where the topic is live."""
        settings = {"transactional_id": f"{topic}-{alias}"} if transactional else {}
        producer = KafkaProducer(
            bootstrap_servers=self.cluster(alias).bootstrap_servers,
            linger_ms=5,
            max_in_flight_requests_per_connection=1,
            **settings,
        )
        if transactional:
            producer.init_transactions()
        for _ in range(count):
            if transactional:
                producer.begin_transaction()
            for partition in range(PARTITIONS):
                number = self.numbers[topic, partition]
                producer.send(topic, key=b"k%d" % number, value=b"%d" % number, partition=partition)
                self.numbers[topic, partition] = number + 1
            if transactional:
                producer.commit_transaction()
        producer.flush()
        producer.close()

    @contextmanager
    def load(self, alias: str) -> Iterator[None]:
        """Write to all topics where they are live, until the context is left."""
        stop = threading.Event()

        def write() -> None:
            while not stop.is_set():
                for topic in self.topics:
                    self.write(alias, topic, 10, transactional=topic in self.transactional)

        thread = threading.Thread(target=write)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def abort(self, alias: str, topic: str) -> None:
        """Write records of a transaction that comes to nothing."""
        producer = KafkaProducer(
            bootstrap_servers=self.cluster(alias).bootstrap_servers, transactional_id=f"{topic}-{alias}"
        )
        producer.init_transactions()
        producer.begin_transaction()
        for partition in range(PARTITIONS):
            producer.send(topic, value=b"aborted", partition=partition)
        producer.flush()
        producer.abort_transaction()
        producer.close()

    def straggle(self, alias: str, topic: str, partition: int = 0) -> int:
        """Write a record where the topic is not live; return its offset."""
        producer = KafkaProducer(bootstrap_servers=self.cluster(alias).bootstrap_servers)
        value = b"straggler %d at %s" % (len(self._straggled), alias.encode())
        offset: int = producer.send(topic, value=value, partition=partition).get(30).offset
        producer.close()
        self.stragglers.setdefault((alias, topic, partition), []).append(offset)
        self._straggled[alias, topic, partition, offset] = value
        return offset

    def unnamed(self, alias: str, topic: str, partition: int) -> set[int]:
        """Offsets of a side's stragglers that no ledger calls foreign and that the other side lacks.

        The last records before a turn begins there are part of the turn, whoever wrote them: they are copied.
        """
        copied = {value for _, value in self._log("B" if alias == "A" else "A", topic, partition)}
        named = self.foreign(alias, topic, partition)
        return {
            offset
            for offset in self.stragglers.get((alias, topic, partition), ())
            if offset not in named and self._straggled[alias, topic, partition, offset] not in copied
        }

    def records(self, alias: str, topic: str, partition: int) -> list[tuple[int, bytes]]:
        """A partition's offsets and values, without stragglers."""
        return [each for each in self._log(alias, topic, partition) if not each[1].startswith(b"straggler")]

    def _log(self, alias: str, topic: str, partition: int) -> list[tuple[int, bytes]]:
        consumer = KafkaConsumer(
            bootstrap_servers=self.cluster(alias).bootstrap_servers,
            enable_auto_commit=False,
            isolation_level="read_committed",
        )
        with closing(consumer):
            place = TopicPartition(topic, partition)
            consumer.assign([place])
            consumer.seek_to_beginning(place)
            end = consumer.end_offsets([place])[place]
            found: list[tuple[int, bytes]] = []
            deadline = time.monotonic() + 30
            while consumer.position(place) < end:
                assert time.monotonic() < deadline, f"{topic}-{partition} at {alias} can't be read"
                for batch in consumer.poll(500).values():
                    found += [(one.offset, one.value) for one in batch]
        return found

    def numbers_at(self, alias: str, topic: str, partition: int) -> list[int]:
        return [int(value) for _, value in self.records(alias, topic, partition)]

    def is_level(self, topics: Iterable[str] = ()) -> bool:
        """True if both sides have all values, by their log ends or by their last values."""
        return all(self._has_all(alias, topic) for alias in ("A", "B") for topic in topics or self.topics)

    def is_begun(self, alias: str) -> bool:
        """True if a side has some records of each partition."""
        servers = self.cluster(alias).bootstrap_servers
        return all(min(mp.end_offsets(servers, topic, PARTITIONS)) > 0 for topic in self.topics)

    def _has_all(self, alias: str, topic: str) -> bool:
        ends = mp.end_offsets(self.cluster(alias).bootstrap_servers, topic, PARTITIONS)
        for partition, end in enumerate(ends):
            written = self.numbers[topic, partition]
            if end < written + len(self.stragglers.get((alias, topic, partition), ())):
                return False
            if topic in self.transactional and self.numbers_at(alias, topic, partition)[-1:] != [written - 1]:
                return False
        return True

    def end_turn(self, name: str, topics: Sequence[str]) -> Drained:
        """Publish the ends of a flow's turn, and wait until all is copied."""
        flow = self.flow(name)
        assert {said.topic for said in say_moved(flow, set(topics).__contains__)} == set(topics)
        return self.drain(name, topics)

    def drain(self, name: str, topics: Sequence[str]) -> Drained:
        flow = self.flow(name)
        found = drained(flow, topics)
        deadline = time.monotonic() + 60 * mp.PATIENCE
        while found.missing:
            assert time.monotonic() < deadline, found.missing
            time.sleep(0.1)
            found = drained(flow, topics)
        return found

    def turn(self, before: str, after: str, topics: Sequence[str]) -> Drained:
        """End a flow's turn, and begin the opposite flow's."""
        found = self.end_turn(before, topics)
        start_turn(self.flow(after), found.borders)
        return found

    def translate(self, alias: str, topic: str, partition: int, offsets: Sequence[int]) -> list[Translation]:
        with TurnTranslator(self.config.flows[0]) as translator:
            stored = [Stored(topic, partition, offset) for offset in offsets]
            return translator.translate_each(stored, reverse=alias == "B")

    def foreign(self, alias: str, topic: str, partition: int) -> set[int]:
        """Offsets at a cluster that the ledger of the flow to it calls foreign, and not the next turn's."""
        to = self.flow("A->B" if alias == "B" else "B->A")
        with closing(ClusterClient(to.target, "test")) as client:
            found = LossLedger(TopicLog(client, losses_topic(to.source.alias))).read()
        return {
            offset
            for loss in found
            if loss.kind is LossKind.FOREIGN
            and loss.action != "expected"
            and (loss.source_topic, loss.partition) == (topic, partition)
            for offset in range(loss.first, loss.end)
        }

    def assert_translates(self, topic: str) -> None:
        """A reader stopped at any record goes on at the other side without a value skipped or read again.

        It may read stragglers of that side, which come right before the record.
        """
        for partition in range(PARTITIONS):
            sides = {alias: dict(self.records(alias, topic, partition)) for alias in ("A", "B")}
            for alias, other in (("A", "B"), ("B", "A")):
                answers = self.translate(alias, topic, partition, list(sides[alias]))
                for (offset, value), answer in zip(sides[alias].items(), answers, strict=True):
                    assert answer.offset is not None, (alias, partition, offset, answer)
                    next_value = next((there for at, there in sides[other].items() if at >= answer.offset), None)
                    assert next_value == value, (alias, partition, offset, answer, next_value)


def state_of(mirror: Mirror, name: str) -> str:
    """A flow's state as status tells it."""
    return next(flow.state for flow in mirror.observer.snapshot(newest=True).flows if flow.flow == name)


def late(mirror: Mirror, name: str) -> dict[str, int]:
    """Number of late offsets of each topic that has some, as status tells it."""
    flow = next(flow for flow in mirror.observer.snapshot(newest=True).flows if flow.flow == name)
    return {topic.topic: topic.late for topic in flow.topics if topic.late}
