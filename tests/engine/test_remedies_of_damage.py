"""Doctor's remedies for what brokers have lost or damaged, followed on real clusters: the finding goes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from lab import KafkaCluster
from remedy_case import Case, wait_for_finding, wait_until_gone
from tests.support import loss_tools as lt
from tests.support import mirror_process as mp
from tests.support.started import started

from sparkmirror.config import ClusterConfig
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.producers import describe_producers
from sparkmirror.kafka.wire.batches import BatchHeader, batch_headers

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

EACH = 20


@pytest.fixture(scope="module")
def fragile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """A cluster whose broker is stopped, and which forgets producers five seconds after their last record."""
    expiry = {"producer.id.expiration.ms": "5000", "producer.id.expiration.check.interval.ms": "1000"}
    cluster = KafkaCluster(tmp_path_factory.mktemp("fragile", numbered=False), properties=expiry)
    with started(cluster):
        yield cluster


def damage(log: Path, offset: int) -> BatchHeader:
    """Flip a byte of the records of the batch that has an offset; return its header."""
    data = bytearray(log.read_bytes())
    found = [entry for entry in batch_headers(memoryview(bytes(data))) if entry[1].next_offset > offset]
    position, header = found[0]
    data[position + header.size - 1] ^= 0xFF
    log.write_bytes(data)
    return header


def test_the_records_below_the_next_batch_are_deleted(remedy_case: Case, fragile: KafkaCluster) -> None:
    """The tool shows which batch is damaged, and where the next one begins."""
    remedy_case.source = fragile
    topic = remedy_case.topic
    mp.create_topic(fragile.bootstrap_servers, topic, 1)
    for _ in range(3):
        mp.produce(fragile.bootstrap_servers, topic, 1, EACH)
    whole = lt.records(fragile, topic, 0)
    (broker,) = fragile.brokers
    directory = broker.log_dirs[0]
    broker.terminate()
    batch = damage(directory / f"{topic}-0" / "00000000000000000000.log", EACH + 1)
    broker.start()
    remedy_case.write()
    with remedy_case.running() as mirror:
        finding = wait_for_finding(mirror, "parked-unreadable")
        assert f"the batch at source offset {batch.base_offset} is corrupt" in finding.cause
        dump, delete = re.findall(r"`(kafka-[^`]+)`", finding.action)
        shown = remedy_case.run(dump, DIRECTORY=str(directory), SEGMENT="0" * 20)
        (damaged,) = (line for line in shown.splitlines() if "isvalid: false" in line)
        assert damaged.startswith(f"baseOffset: {batch.base_offset} lastOffset: {batch.next_offset - 1} ")
        (entry,) = re.findall(r"`(\{[^`]+\})`", finding.action)
        below = remedy_case.directory / "below.json"
        below.write_text(entry.replace("NEXT", str(batch.next_offset)))
        remedy_case.run(delete.replace(below.name, str(below)))
        remedy_case.say("retry")
        lost = batch.next_offset - batch.base_offset
        mp.wait_for(lambda: remedy_case.copied() == 3 * EACH - lost, 90, "all that can be read is copied")
        wait_until_gone(mirror, "parked-unreadable")
    kept = [one for at, one in whole.items() if not batch.base_offset <= at < batch.next_offset]
    assert list(lt.records(remedy_case.target, f"A.{topic}", 0).values()) == kept
    assert lt.gist(lt.ledger(remedy_case.target, topic)) == [
        ("expired", 0, batch.base_offset, batch.next_offset, batch.base_offset, "continued")
    ]


def test_a_copy_whose_end_nothing_tells_is_deleted(
    remedy_case: Case, fragile: KafkaCluster, verify_verb: Callable[..., CompletedProcess[str]]
) -> None:
    """Somebody has written to the copy, retention has deleted all of it, and the target has forgotten who wrote."""
    remedy_case.target = fragile
    topic, copy = remedy_case.topic, f"A.{remedy_case.topic}"
    mp.create_topic(remedy_case.source.bootstrap_servers, topic, 1)
    mp.produce(remedy_case.source.bootstrap_servers, topic, 1, EACH)
    remedy_case.write()
    with remedy_case.running():
        mp.wait_for(lambda: remedy_case.copied() == EACH, 90, "all is copied")
    mp.produce(fragile.bootstrap_servers, copy, 1, EACH)
    lt.delete_records(fragile, copy, 0, before=2 * EACH)
    wait_until_forgotten(fragile, copy)
    mp.produce(remedy_case.source.bootstrap_servers, topic, 1, EACH)
    with remedy_case.running() as mirror:
        finding = wait_for_finding(mirror, "parked-target-truncated")
        assert f"offsets {EACH} to {2 * EACH - 1} may have been a foreign producer's" in finding.cause
        compared = " ".join(verify_verb(str(remedy_case.file)).stdout.split())
        assert f"{2 * EACH} offsets that the source keeps are deleted at the target" in compared
        remedy_case.run(finding.action)
        remedy_case.say("retry")
        mp.wait_for(lambda: remedy_case.copied() == 2 * EACH, 90, "all is copied again")
        wait_until_gone(mirror, "parked-target-truncated")
    assert lt.records(fragile, copy, 0) == lt.records(remedy_case.source, topic, 0)


def wait_until_forgotten(cluster: KafkaCluster, topic: str) -> None:
    """Wait until the cluster knows no producer of the topic's partition."""
    config = ClusterConfig(alias="B", bootstrap_servers=(cluster.bootstrap_servers,))
    with closing(ClusterClient(config, "test")) as client:
        client.metadata([topic])
        mp.wait_for(lambda: not describe_producers(client, 1, {topic: [0]})[topic, 0].producers, 60, "forgotten")
