"""Claims, losses and words that this release writes are read by the code of release 0.1 as they are meant."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from lab import KafkaCluster

from sparkmirror.config import ClusterConfig
from sparkmirror.exact.durable.acknowledgements import acknowledge, retract
from sparkmirror.exact.durable.claim_log import ClaimLog
from sparkmirror.exact.durable.claims import AnnouncedBatch, Claim, home_partition
from sparkmirror.exact.durable.losses import Loss, LossKind
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.fetch_once import FetchBounds, fetch_once, only_part
from sparkmirror.kafka.cluster.topic_log import LogEntry, TopicLog
from sparkmirror.kafka.wire.batches import batch_headers
from sparkmirror.kafka.wire.fetch_session import FetchedPartition
from sparkmirror.kafka.wire.splice import Run
from sparkmirror.pump.messages.control import Control, Leader, Round
from sparkmirror.pump.messages.moves import RouteMoves, TaskWords
from sparkmirror.pump.messages.orders import AddedRoutes

HOMES = 3
TOPIC_ID, PARTITION = b"t" * 16, 5

READER = """
import sys
from sparkmirror.cluster.client import ClusterClient
from sparkmirror.cluster.topic_log import TopicLog
from sparkmirror.config import ClusterConfig
from sparkmirror.offsets.segment_log import SegmentLog

servers, topic, topic_id, partition = sys.argv[1:]
client = ClusterClient(ClusterConfig(alias="B", bootstrap_servers=(servers,)), "old")
for claim in SegmentLog(TopicLog(client, topic)).whole(bytes.fromhex(topic_id), int(partition)):
    print(str(claim).replace("Segment(", "Claim("))
"""


def a_claim(number: int, *, partition: int = PARTITION, confirmed: bool = False) -> Claim:
    """On a piece of a compacted log: a hundred runs, in four batches."""
    return Claim(
        target_topic_id=TOPIC_ID,
        partition=partition,
        sequence=200 * number,
        incarnation=7 + number,
        producer_id=4000,
        producer_epoch=0,
        source_topic_id=b"s" * 16,
        source_leader_epoch=7,
        downstream=200 * number,
        runs=tuple(Run(500 * number + 5 * at, 2) for at in range(100)),
        batches=tuple(AnnouncedBatch(50, 3, 0x1234567 * at, 1000 + at, 2000 + at) for at in range(4)),
        confirmed=confirmed,
    )


@pytest.fixture
def client(target_cluster: KafkaCluster, topic_name: str) -> Iterator[ClusterClient]:
    """A client of the target, which has an empty segments topic of the test's name."""
    config = ClusterConfig(alias="B", bootstrap_servers=(target_cluster.bootstrap_servers,))
    with ClusterAdmin.connect(config, "test") as admin:
        admin.create_compacted_topic(topic_name, HOMES, 1)
    made = ClusterClient(config, "test")
    yield made
    made.close()


def codecs_of(client: ClusterClient, topic: str, home: int) -> set[str]:
    """Those of the batches in a partition, as the broker stores them."""
    described = client.metadata([topic])[topic]
    asked, ids = {(topic, home): 0}, {topic: described.topic_id}
    part = only_part(
        fetch_once(client, described.partitions[home].leader, asked, ids, FetchBounds(1 << 20, 1 << 20, 0))
    )
    assert isinstance(part, FetchedPartition)
    return {header.codec for _, header in batch_headers(part.records)}


@pytest.mark.broker
def test_compressed_claims_and_retractions(client: ClusterClient, topic_name: str, old_source: Path) -> None:
    claims = [a_claim(number) for number in range(20)]
    log = ClaimLog(TopicLog(client, topic_name))
    log.claim([*claims, *(a_claim(0, partition=other) for other in range(5))])
    log.revise([replace(claim, confirmed=True) for claim in claims[:10]], claims[15:])
    meant = [*(a_claim(number, confirmed=number < 10) for number in range(15))]
    assert codecs_of(client, topic_name, home_partition(TOPIC_ID, PARTITION, HOMES)) == {"gzip"}
    assert sorted(log.whole(TOPIC_ID, PARTITION), key=lambda claim: claim.sequence) == meant
    servers = ",".join(client.config.bootstrap_servers)
    old = subprocess.run(
        [sys.executable, "-c", READER, servers, topic_name, TOPIC_ID.hex(), str(PARTITION)],
        env=os.environ | {"PYTHONPATH": str(old_source)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert old.returncode == 0, old.stderr
    assert old.stdout.splitlines() == [
        str(claim).replace(", ended=False, changed=False, turn=False)", ")") for claim in meant
    ]


CONTROL_READER = """
import json
import sys
from sparkmirror.cluster.topic_log import Entry
from sparkmirror.pump.control import ControlState

state = ControlState()
for offset, (key, value) in enumerate(json.load(sys.stdin)):
    state.apply([Entry(offset, key.encode(), None if value is None else value.encode())])
print(state.leader.incarnation, state.leader.rank, state.last_epoch.number, state.unclean, state.added)
print(state.is_paused("orders"), state.bytes_per_second)
"""


class Written:
    """A topic in memory."""

    failures = 0

    def __init__(self) -> None:
        self.records: list[tuple[str, str | None]] = []

    def append(self, _: int, entries: list[tuple[bytes, bytes | None]]) -> int:
        self.records += [(key.decode(), None if value is None else value.decode()) for key, value in entries]
        return len(self.records) - len(entries)

    @property
    def entries(self) -> list[LogEntry]:
        """As the topic's reader gets them."""
        return [
            LogEntry(offset, key.encode(), None if value is None else value.encode())
            for offset, (key, value) in enumerate(self.records)
        ]


def test_words_of_a_driver_its_tasks_and_operators(old_source: Path) -> None:
    """A process of 0.1 stands by: it passes over the words on routes and moves, which are not for its pumps."""
    topic = Written()
    control = Control(cast("TopicLog", topic))
    control.pause(["orders"])
    rank = control.lead(Leader(incarnation="new", host="h", pid=1))
    for number in (1, 2):
        control.round(Round(incarnation="new", number=number, phase="running"))
        control.take_back(topic.entries, rank)
        control.add(AddedRoutes(incarnation="new", epoch=number, routes={}, shares={}))
        control.move(RouteMoves(incarnation="new", epoch=number, moves=(), shares={}))
        control.tell(TaskWords(incarnation="new", epoch=number, task=0))
    control.throttle(1000.0)
    assert [value for _, value in topic.records].count(None) == 3
    old = subprocess.run(
        [sys.executable, "-c", CONTROL_READER],
        env=os.environ | {"PYTHONPATH": str(old_source)},
        input=json.dumps(topic.records),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (old.returncode, old.stderr) == (0, ""), "without a warning"
    assert old.stdout.splitlines() == ["new 1 2 True None", "True 1000.0"]


LEDGER_READER = """
import json
import sys
from sparkmirror.cluster.topic_log import Entry
from sparkmirror.offsets.losses import read_losses

entries = [
    Entry(offset, key.encode(), None if value is None else value.encode())
    for offset, (key, value) in enumerate(json.load(sys.stdin))
]
print([(loss.kind, loss.first, loss.end) for loss in read_losses(entries)])
"""


def test_acknowledged_losses(old_source: Path) -> None:
    """A process of 0.1 passes over the operator's words, and knows the losses as before."""
    topic = Written()
    loss = Loss(
        kind=LossKind.EXPIRED,
        source_topic="orders",
        target_topic="A.orders",
        partition=0,
        first=3,
        end=7,
        downstream=3,
        target_topic_id="0" * 32,
        action="continued",
        words="4 records expired",
    )
    log = cast("TopicLog", topic)
    log.append(0, [(loss.key.encode(), loss.model_dump_json().encode())])
    acknowledge(log, [loss], at_ms=1, by="ann@host", why="known")
    retract(log, [loss])
    old = subprocess.run(
        [sys.executable, "-c", LEDGER_READER],
        env=os.environ | {"PYTHONPATH": str(old_source)},
        input=json.dumps(topic.records),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (old.returncode, old.stderr) == (0, "")
    assert old.stdout.strip() == "[(<LossKind.EXPIRED: 'expired'>, 3, 7)]"
