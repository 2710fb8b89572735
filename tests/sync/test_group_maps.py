"""Maps that can't be read, or are about an earlier topic; stand-ins answer for both clusters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

import pytest

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.exact.durable.claims import Claim
from sparkmirror.exact.durable.noted_progress import ReportedProgress
from sparkmirror.exact.maps.partition_map import NOTHING_YET, LogBounds, PartitionMap, Unmapped
from sparkmirror.kafka.cluster.client import ClusterClient, PartitionLeader, TopicLeaders
from sparkmirror.kafka.cluster.list_offsets import EARLIEST, ListedOffset
from sparkmirror.kafka.cluster.topic_log import LogUnavailable
from sparkmirror.kafka.wire.error_codes import ErrorCode
from sparkmirror.kafka.wire.rpc import BrokerUnreachable
from sparkmirror.kafka.wire.splice import Run
from sparkmirror.kafka.wire.topic_ids import NO_ID
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.mirror.sync import group_maps, offsets_and_ids
from sparkmirror.mirror.sync.group_maps import GroupMaps, NothingThere, PlacedGroup, TranslatedOffset
from sparkmirror.mirror.sync.move_cost import MoveCost
from sparkmirror.mirror.sync.noted_markers import NotedMarkers
from sparkmirror.policy import DefaultReplicationPolicy
from sparkmirror.pump.messages.orders import Receipt

A, B = (ClusterConfig(alias=alias, bootstrap_servers=("127.0.0.1:1",)) for alias in "AB")
OURS, COPY = ("orders", 0), ("B.clicks", 0)
UNKNOWN = PlacedGroup(None, is_ahead=True)


class PlayedCluster:
    """Topics with ids; or a cluster that is gone."""

    def __init__(self, ids: Mapping[str, bytes]) -> None:
        self.ids = dict(ids)
        self.is_gone = False

    def metadata(self, topics: Iterable[str]) -> dict[str, TopicLeaders]:
        if self.is_gone:
            raise BrokerUnreachable("no broker answers")
        return {name: TopicLeaders(name, self.ids[name], 0, {0: PartitionLeader(1, 0)}) for name in topics}


class PlayedMaps:
    """The maps at one cluster."""

    def __init__(self) -> None:
        self.error: Exception | None = None

    def refresh(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, PartitionMap | Unmapped]:
        if self.error is not None:
            raise self.error
        return {partition: thousand_copied() for partition in partitions}


class Stage(GroupMaps):
    """Maps of groups at A, whose topics are copied to B; B's topic is copied back."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(group_maps, "MapKeeper", lambda _, alias: self.keepers.setdefault(alias, PlayedMaps()))
        monkeypatch.setattr(NotedMarkers, "of", lambda *_: {})
        self.keepers: dict[str, PlayedMaps] = {}
        self.here, self.there = (
            PlayedCluster({"orders": b"s" * 16}),
            PlayedCluster({"clicks": b"s" * 16, "A.orders": b"t" * 16}),
        )
        self.reports: list[Receipt] = []
        source, target = cast("ClusterClient", self.here), cast("ClusterClient", self.there)
        super().__init__(
            FlowConfig(source=A, target=B), DefaultReplicationPolicy(), source, target, lambda: self.reports
        )


def thousand_copied() -> PartitionMap:
    claim = Claim(
        target_topic_id=b"t" * 16,
        partition=0,
        sequence=0,
        incarnation=1,
        producer_id=1,
        producer_epoch=0,
        source_topic_id=b"s" * 16,
        source_leader_epoch=0,
        downstream=0,
        runs=(Run(0, 10),),
        confirmed=True,
    )
    made = PartitionMap()
    made.take(claim)
    made.bound(LogBounds(0, 1000))
    assert made.stands(ReportedProgress(1000, 1000))
    return made


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(monkeypatch)


def test_a_map_of_the_opposite_flow_that_cant_be_read_stops_no_other(stage: Stage) -> None:
    """Anyone may create a topic that is named like a copy."""
    refused = LogUnavailable("segments", "it isn't there", ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    stage.keepers["B"].error = refused
    stage.refresh([OURS, COPY])
    assert stage.of(OURS, 5) == TranslatedOffset(("A.orders", 0), 5, True, 1000)
    assert stage.of(COPY, 5) == Unmapped(str(refused))
    assert stage.place(COPY, 5, 5) == UNKNOWN


def test_a_place_after_a_refresh_that_has_failed_is_unknown(stage: Stage) -> None:
    stage.there.is_gone = True
    with pytest.raises(BrokerUnreachable):
        stage.refresh([OURS, COPY])
    assert stage.place(COPY, 5, 5) == UNKNOWN
    assert stage.place(OURS, 5, 5) == PlacedGroup(MoveCost(0, 0), is_ahead=False)


def test_a_map_of_an_earlier_source_topic_translates_nothing(stage: Stage) -> None:
    """Nothing of the new topic is copied yet; of a topic without an id it is not known."""
    stage.refresh([OURS])
    assert stage.copied_to(OURS) == 1000
    stage.here.ids["orders"] = b"n" * 16
    stage.refresh([OURS])
    assert stage.of(OURS, 5) is NOTHING_YET
    assert stage.copied_to(OURS) is None
    assert stage.place(OURS, 5, 1000) == UNKNOWN
    stage.here.ids["orders"] = NO_ID
    stage.refresh([OURS])
    assert stage.of(OURS, 5) == TranslatedOffset(("A.orders", 0), 5, True, 1000)


def test_a_report_on_an_earlier_source_topic_tells_nothing_of_the_new_one(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the new one is empty, a group continues at the target's end."""
    ends = {OURS: 7, ("A.orders", 0): 1000}
    starts = {OURS: 0}

    def listed(_: object, __: int, asked: Mapping[str, list[int]], at: int) -> dict[TopicPartition, ListedOffset]:
        told = starts if at == EARLIEST else ends
        return {(topic, number): ListedOffset(told[topic, number], 0) for topic in asked for number in asked[topic]}

    monkeypatch.setattr(offsets_and_ids, "list_offsets", listed)
    stage.reports.append(
        Receipt(
            flow="A->B",
            source_topic="orders",
            target_topic="A.orders",
            partition=0,
            state="running",
            upstream=1000,
            downstream=1000,
        )
    )
    stage.here.ids["orders"] = b"n" * 16
    stage.refresh([OURS])
    assert stage.without_records([OURS]) == {}
    starts[OURS] = 7
    assert stage.without_records([OURS]) == {
        OURS: NothingThere(7, TranslatedOffset(("A.orders", 0), 1000, True, 1000)),
    }
