"""The segments topic on a real broker: one identity for all, and claims that are there once they are said to be."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from kafka.admin import KafkaAdminClient, NewTopic
from lab import KafkaCluster

from sparkmirror.config import ClusterConfig
from sparkmirror.exact.durable.claim_log import KEPT_CLAIMS, ClaimLog, in_safe_order
from sparkmirror.exact.durable.claims import (
    AnnouncedBatch,
    Claim,
    Retracted,
    claim_record,
    home_partition,
    identity_record,
)
from sparkmirror.exact.durable.identity import Identity, Producer
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.kafka.wire.splice import Run

pytestmark = pytest.mark.broker

TOPIC_ID = b"t" * 16
PARTITIONS = 4
FENCED_01 = [
    (
        "000100" + "00" * 16,
        "0001" + "00000000000003e8" + "0000" + b"cluster".hex(),
    ),
    (
        "000102" + "01" * 16,
        "0001" + "00000000000003e9" + "0000" + "00000000000003e8" + "0000" + "0000019ab697e800" + "0007"
        + b"cluster".hex() + b"mm2-sparkmirror.A.0f1e2d3c4b5a6978".hex(),
    ),
    (
        "000102" + "03" * 16,
        "0001" + "00000000000003eb" + "0000" + "00000000000003e8" + "0000" + "0000019ab697e801" + "0007"
        + b"cluster".hex() + b"mm2-sparkmirror.A.1111111111111111".hex(),
    ),
    (
        "000102" + "02" * 16,
        "0001" + "00000000000003ea" + "0003" + "00000000000003e9" + "0000" + "0000019ab698d260" + "0007"
        + b"cluster".hex() + b"mm2-sparkmirror.A.8897a6b5c4d3e2f1".hex(),
    ),
]  # fmt: skip
"""Keys and values that commit dd728ac wrote, in the format of release 0.1: producer 1000, followed by 1001 and, too
late, 1003; then 1002 at epoch 3."""
Opened = Callable[[], ClaimLog]


def claim(partition: int, sequence: int = 0, incarnation: int = 1, *, confirmed: bool = False) -> Claim:
    runs = Run(sequence + 100, 10), Run(sequence + 200, 5)
    batches = (AnnouncedBatch(15, 3, 99, 1000, 1014),)
    return Claim(
        target_topic_id=TOPIC_ID,
        partition=partition,
        sequence=sequence,
        incarnation=incarnation,
        producer_id=4000,
        producer_epoch=0,
        source_topic_id=b"s" * 16,
        source_leader_epoch=0,
        downstream=sequence,
        runs=runs,
        batches=batches,
        confirmed=confirmed,
    )


@pytest.fixture
def topic_log(target_cluster: KafkaCluster, topic_name: str) -> Callable[[], TopicLog]:
    """A new view of a compacted topic of the test's own, each time it is called."""
    servers = target_cluster.bootstrap_servers
    admin = KafkaAdminClient(bootstrap_servers=servers)
    admin.create_topics([NewTopic(topic_name, PARTITIONS, 1, topic_configs={"cleanup.policy": "compact"})])
    admin.close()
    config = ClusterConfig(alias="target", bootstrap_servers=tuple(servers.split(",")))
    return lambda: TopicLog(ClusterClient(config, "test"), topic_name)


@pytest.fixture
def opened(topic_log: Callable[[], TopicLog]) -> Opened:
    return lambda: ClaimLog(topic_log())


def test_concurrent_proposers_agree(opened: Opened) -> None:
    together = threading.Barrier(8)

    def propose(number: int) -> Identity | None:
        log = opened()
        together.wait()
        return log.agree("cluster", Identity("cluster", number, 0))

    with ThreadPoolExecutor(8) as pool:
        agreed = set(pool.map(propose, range(8)))
    assert len(agreed) == 1
    assert agreed == {opened().agree("cluster", None)}


def test_no_proposal_no_identity(opened: Opened) -> None:
    assert opened().agree("cluster", None) is None


def test_an_identity_is_void_at_another_cluster(opened: Opened) -> None:
    old, new = Identity("old", 1, 0), Identity("new", 2, 0)
    assert opened().agree("old", old) == old
    assert opened().agree("new", None) is None
    assert opened().agree("new", new) == new
    assert opened().agree("old", new) == old


def test_a_flow_that_release_0_1_fenced_is_still_itself(opened: Opened, topic_log: Callable[[], TopicLog]) -> None:
    """The newest identity that all agreed on counts, and batches of the former ones are the flow's, too."""
    topic_log().append(0, [(bytes.fromhex(key), bytes.fromhex(value)) for key, value in FENCED_01])
    log = opened()
    present = log.agree("cluster", Identity("cluster", 9, 0))
    assert present == Identity("cluster", 1002, 3, (Producer(1000, 0), Producer(1001, 0)))
    assert [present.wrote(number, 0) for number in range(999, 1004)] == [False, True, True, False, False]
    assert present.wrote(1002, 3)
    assert [present.fenced_with(number) for number in range(999, 1004)] == [False, True, True, False, False]
    assert log.is_present(present)
    assert not log.is_present(Identity("cluster", 1000, 0))
    assert log.agree("another", None) is None


def test_claims_are_read_back_as_they_come(opened: Opened) -> None:
    writer, reader = opened(), opened()
    where = [(TOPIC_ID, 7)]
    writer.claim([claim(7)])
    reader.refresh(where)
    assert list(reader.claims(TOPIC_ID, 7)) == [claim(7)]
    opened().claim([claim(7, 50, incarnation=2)])
    reader.refresh(where)
    reader.refresh(where)
    assert list(reader.claims(TOPIC_ID, 7)) == [claim(7), claim(7, 50, incarnation=2)]
    assert reader.claims(TOPIC_ID, 8) == ()


def test_a_claim_is_replaced_by_its_confirmation_and_taken_back_by_name(opened: Opened) -> None:
    writer, reader = opened(), opened()
    mine, rivals, other = claim(7), claim(7, incarnation=2), claim(7, 15)
    writer.claim([mine, rivals, other])
    reader.refresh([(TOPIC_ID, 7)])
    assert list(reader.claims(TOPIC_ID, 7)) == [mine, rivals, other]
    confirmed = replace(mine, confirmed=True)
    writer.revise([confirmed], [rivals])
    reader.refresh([(TOPIC_ID, 7)])
    assert list(reader.claims(TOPIC_ID, 7)) == [confirmed, other]
    assert list(reader.whole(TOPIC_ID, 7)) == [confirmed, other]


def test_whoever_is_killed_while_settling_leaves_no_less_known_than_before() -> None:
    """A split claim is shortened last, and a rival taken back when what it is false for is there."""
    first, part, rival = claim(7, confirmed=True), claim(7, 15, confirmed=True), claim(7, incarnation=2)
    found = in_safe_order([first, part], [rival, claim(7, 15)])
    assert found == [part, first, Retracted(TOPIC_ID, 7, rival.sequence, 2)]


def test_history_tells_everything_in_order(opened: Opened) -> None:
    log = opened()
    log.claim([claim(7)])
    log.revise([claim(7, confirmed=True)], [claim(8, 30, 4)])
    found = [one for home in range(log.homes) for one in log.history(home) if one.partition == 7]
    assert found == [claim(7), claim(7, confirmed=True)]
    assert Retracted(TOPIC_ID, 8, 30, 4) in [one for home in range(log.homes) for one in log.history(home)]


def test_claims_of_another_topic_are_not_mixed_in(opened: Opened) -> None:
    """One that had the name before: its partition may have the same home (R17)."""
    home = home_partition(TOPIC_ID, 7, PARTITIONS)
    other_id = next(id for n in range(256) if home_partition(id := bytes([n]) * 16, 7, PARTITIONS) == home)
    others = replace(claim(7, incarnation=2), target_topic_id=other_id)
    log = opened()
    log.claim([claim(7), others])
    log.refresh([(TOPIC_ID, 7)])
    for read in (log.claims, log.whole):
        assert list(read(TOPIC_ID, 7)) == [claim(7)]
        assert list(read(other_id, 7)) == [others]


def test_of_a_long_history_the_newest_are_kept_and_the_whole_is_there_when_asked_for(opened: Opened) -> None:
    claims = [claim(7, 15 * number, confirmed=True) for number in range(3 * KEPT_CLAIMS)]
    coming = claim(7, 15 * len(claims))
    start = replace(claim(7), batches=(), runs=(Run(100, 0),), incarnation=2)
    opened().claim([start, *claims, coming])
    reader = opened()
    reader.refresh([(TOPIC_ID, 7)])
    kept = list(reader.claims(TOPIC_ID, 7))
    assert KEPT_CLAIMS <= len(kept) <= 2 * KEPT_CLAIMS + 1
    assert kept == [*claims, coming][-len(kept) :]
    assert list(reader.whole(TOPIC_ID, 7)) == [start, *claims, coming]


def test_what_is_written_late_of_a_forgotten_claim_stays_forgotten(opened: Opened) -> None:
    """It would seem to count until the first of those that are kept."""
    claims = [claim(7, 15 * number, confirmed=True) for number in range(3 * KEPT_CLAIMS)]
    writer, reader = opened(), opened()
    writer.claim(claims)
    reader.refresh([(TOPIC_ID, 7)])
    kept = list(reader.claims(TOPIC_ID, 7))
    writer.claim([claims[1], claim(7, 20, 9)])
    reader.refresh([(TOPIC_ID, 7)])
    assert list(reader.claims(TOPIC_ID, 7)) == kept


def test_tombstones_and_other_versions_are_ignored(opened: Opened, topic_log: Callable[[], TopicLog]) -> None:
    raw = topic_log()
    home = home_partition(TOPIC_ID, 7, PARTITIONS)
    key, value = claim_record(claim(7))
    assert value is not None
    raw.append(home, [(key, None), (b"\x00\x09" + key[2:], value), (b"x", b"y")])
    raw.append(0, [(identity_record(Identity("cluster", 1, 0), bytes(16))[0], None)])
    log = opened()
    log.refresh([(TOPIC_ID, 7)])
    assert log.claims(TOPIC_ID, 7) == ()
    assert log.agree("cluster", None) is None


def test_a_large_pumps_claims_are_all_durable(opened: Opened) -> None:
    """Each partition of a flow claims once, at its start: all of them at the same time."""
    claims = [claim(number) for number in range(PARTITIONS * 6000)]
    opened().claim(claims)
    reader = opened()
    reader.refresh((TOPIC_ID, one.partition) for one in claims)
    missing = [one.partition for one in claims if list(reader.claims(TOPIC_ID, one.partition)) != [one]]
    assert missing == [], f"{len(missing)} of {len(claims)}"
