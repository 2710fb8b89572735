"""Maps over a segments topic that an unclean election has cut: what was known is known again, or nothing is said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import cast

import pytest
from tests.support.cut_log import Topic, View

from sparkmirror.exact.durable.claim_log import ClaimLog
from sparkmirror.exact.durable.claims import Claim, home_partition
from sparkmirror.exact.durable.identity import Identity
from sparkmirror.exact.maps import map_keeper
from sparkmirror.exact.maps.map_keeper import MapKeeper
from sparkmirror.exact.maps.partition_map import CLAIMS_LOST, PartitionMap
from sparkmirror.kafka.cluster.client import ClusterClient, PartitionLeader, TopicLeaders
from sparkmirror.kafka.cluster.list_offsets import EARLIEST, ListedOffset
from sparkmirror.kafka.cluster.log_tail import LastBatch
from sparkmirror.kafka.cluster.topic_log import LogEntry, LogPlace
from sparkmirror.kafka.wire.splice import Run
from sparkmirror.kafka.wire.topic_partition import TopicPartition

TARGET_ID = b"t" * 16
HERE = "us.orders", 0
END = 30
HOMES = 4
HOME = home_partition(TARGET_ID, 0, HOMES)
NEIGHBOUR = next(number for number in range(1, 99) if home_partition(TARGET_ID, number, HOMES) == HOME)
LEADER = PartitionLeader(1, 0)


def claim(sequence: int, upstream: int) -> Claim:
    """Ten records without a gap among them."""
    return Claim(
        target_topic_id=TARGET_ID,
        partition=0,
        sequence=sequence,
        incarnation=sequence,
        producer_id=4000,
        producer_epoch=0,
        source_topic_id=b"s" * 16,
        source_leader_epoch=0,
        downstream=sequence,
        runs=(Run(upstream, 10),),
        confirmed=True,
    )


CLAIMS = claim(0, 0), claim(10, 15), claim(20, 40)


class Target:
    """A target whose log has all records."""

    cluster_id = "cluster"

    def metadata(self, _: Iterable[str]) -> dict[str, TopicLeaders]:
        return {"us.orders": TopicLeaders("us.orders", TARGET_ID, 0, {0: LEADER, NEIGHBOUR: LEADER})}


@pytest.fixture
def topic() -> Topic:
    made = Topic(HOMES)
    log = ClaimLog(View(made))
    log.agree("cluster", Identity("cluster", 4000, 0))
    log.claim(CLAIMS)
    return made


@pytest.fixture
def keeper(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> Iterator[MapKeeper]:
    def listed(_: object, __: int, asked: Mapping[str, list[int]], at: int) -> dict[TopicPartition, ListedOffset]:
        listing = ListedOffset(0 if at == EARLIEST else END, 0)
        return {("us.orders", number): listing for number in asked["us.orders"]}

    monkeypatch.setattr(map_keeper, "list_offsets", listed)
    monkeypatch.setattr(map_keeper, "last_batches", lambda *_: {HERE: LastBatch(END - 1, END, 0)})
    monkeypatch.setattr(map_keeper, "TopicLog", lambda *_, **__: View(topic))
    made = MapKeeper(cast("ClusterClient", Target()), "A")
    yield made
    made.close()


def from_where(keeper: MapKeeper, *more: TopicPartition) -> list[int | None] | str:
    """The source offset of a record of each claim; or why nothing is said."""
    found = keeper.refresh(dict.fromkeys((HERE, *more)))[HERE]
    return [found.upstream(offset) for offset in (5, 15, 25)] if isinstance(found, PartitionMap) else found.reason


TRUTH = [5, 20, 45]


def claims_in(topic: Topic) -> int:
    return len(topic.entries[HOME])


def test_a_cut_is_noticed_though_the_log_is_as_long_as_before(topic: Topic, keeper: MapKeeper) -> None:
    assert from_where(keeper) == TRUTH
    topic.cut(HOME, claims_in(topic) - 2)
    ClaimLog(View(topic)).claim([CLAIMS[2], replace(CLAIMS[2], incarnation=77)])
    assert from_where(keeper) == CLAIMS_LOST.reason, "one of those between is gone"
    ClaimLog(View(topic)).claim([CLAIMS[1]])
    assert from_where(keeper) == TRUTH


def test_nothing_is_said_while_the_newest_claims_are_gone(topic: Topic, keeper: MapKeeper) -> None:
    assert from_where(keeper) == TRUTH
    topic.cut(HOME, claims_in(topic) - 1)
    for _ in range(2):
        assert from_where(keeper) == CLAIMS_LOST.reason
    ClaimLog(View(topic)).claim([CLAIMS[2]])
    assert from_where(keeper) == TRUTH


def test_claims_that_are_written_again_in_another_order_make_the_same_map(topic: Topic, keeper: MapKeeper) -> None:
    topic.cut(HOME, claims_in(topic) - 3)
    ClaimLog(View(topic)).claim([CLAIMS[2], CLAIMS[0], CLAIMS[1]])
    assert from_where(keeper) == TRUTH


def test_an_election_without_a_loss_changes_nothing(topic: Topic, keeper: MapKeeper) -> None:
    assert from_where(keeper) == TRUTH
    topic.elect(HOME)
    topic.asked.clear()
    assert from_where(keeper) == TRUTH
    assert topic.asked == ["fetch"]


def test_a_cut_is_noticed_where_all_is_read_again_for_another_partition(topic: Topic, keeper: MapKeeper) -> None:
    assert from_where(keeper) == TRUTH
    topic.cut(HOME, claims_in(topic) - 1)
    assert from_where(keeper, ("us.orders", NEIGHBOUR)) == CLAIMS_LOST.reason


def test_a_cut_in_the_midst_of_a_first_read(topic: Topic, keeper: MapKeeper, monkeypatch: pytest.MonkeyPatch) -> None:
    ClaimLog(View(topic)).claim(CLAIMS)
    assert claims_in(topic) > 3, "more than one answer"
    read_on = View.read_on

    def cut_behind_the_first_answer(
        log: View, partition: int, place: LogPlace
    ) -> tuple[list[LogEntry], LogPlace, bool]:
        answer = read_on(log, partition, place)
        if partition == HOME and place.offset == 0 and not topic.epochs[HOME]:
            topic.cut(HOME, 1)
            ClaimLog(View(topic)).claim(CLAIMS)
        return answer

    monkeypatch.setattr(View, "read_on", cut_behind_the_first_answer)
    assert from_where(keeper) == TRUTH
    assert topic.epochs[HOME] == 1
