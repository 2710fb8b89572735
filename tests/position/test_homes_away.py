"""A partition of the segments topic that serves nothing holds up only the pairs with claims in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.support.cut_log import Topic, View

from sparkmirror.exact.durable.claim_log import ClaimLog
from sparkmirror.exact.durable.claims import Retracted, home_partition
from sparkmirror.exact.durable.identity import Identity
from sparkmirror.exact.durable.losses import LossLedger
from sparkmirror.exact.position import reader as position_reader
from sparkmirror.exact.position.cause import Cause
from sparkmirror.exact.position.reader import PositionReader
from sparkmirror.exact.position.route import PartitionPair, PartitionReading, Refusal
from sparkmirror.kafka.cluster.client import ClusterClient, PartitionLeader, TopicLeaders
from sparkmirror.kafka.cluster.topic_log import LogPlace, LogUnavailable
from sparkmirror.kafka.wire.rpc import AnswerTooLarge, BrokerUnreachable

TOPIC_ID = b"t" * 16
HOMES = 8
ROUTES = [PartitionPair("orders", "us.orders", partition) for partition in range(12)]
READ = cast("PartitionReading", "read")


def home(route: PartitionPair) -> int:
    return home_partition(TOPIC_ID, route.partition, HOMES)


class Away(View):
    """Some partitions can't be read."""

    def __init__(self, topic: Topic) -> None:
        super().__init__(topic)
        self.away: dict[int, ConnectionError] = {}
        self.tried: list[int] = []
        """Partitions that were asked in vain."""

    def read_on(self, partition: int, place: LogPlace) -> Any:
        if partition in self.away:
            self.tried.append(partition)
            raise self.away[partition]
        return super().read_on(partition, place)

    def led_alike(self, partition: int) -> set[int]:
        return set(self.away)


class Reader(PositionReader):
    """Readings of which only the claims are played."""

    def __init__(self, log: ClaimLog) -> None:
        leaders = {route.partition: PartitionLeader(route.partition % 2, 0) for route in ROUTES}
        cluster = SimpleNamespace(
            cluster_id="cluster",
            config=SimpleNamespace(alias="B"),
            metadata=lambda topics: {topic: TopicLeaders(topic, TOPIC_ID, 0, leaders) for topic in topics},
        )
        client = cast("ClusterClient", cluster)
        ledger = cast("LossLedger", None)
        super().__init__(client, client, log, ledger, cast("Any", None), Identity("cluster", 4000, 0), lambda: 0.0)
        self.work: Callable[[Sequence[PartitionPair]], None] = lambda routes: log.refresh(
            (TOPIC_ID, route.partition) for route in routes
        )
        self.groups: list[Sequence[PartitionPair]] = []

    def _read_group(self, *given: Any) -> dict[PartitionPair, PartitionReading | Refusal]:
        self.groups.append(given[-1])
        self.work(given[-1])
        return dict.fromkeys(given[-1], READ)

    def answers(self) -> Mapping[PartitionPair, PartitionReading | Refusal]:
        found: dict[PartitionPair, PartitionReading | Refusal] = {}
        self.read(dict.fromkeys(ROUTES, cast("Any", None)), found.update)
        assert found.keys() == set(ROUTES)
        return found


@pytest.fixture(autouse=True)
def no_policies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(position_reader, "topic_configs", lambda *_: {})


@pytest.fixture
def topic() -> Topic:
    return Topic(HOMES)


@pytest.fixture
def view(topic: Topic) -> Away:
    return Away(topic)


@pytest.fixture
def reader(view: Away) -> Reader:
    return Reader(ClaimLog(view, HOMES))


def refused(answers: Mapping[PartitionPair, PartitionReading | Refusal], reason: str) -> set[PartitionPair]:
    for answer in answers.values():
        if isinstance(answer, Refusal):
            assert (answer.reason, answer.transient, answer.cause) == (reason, True, Cause.UNREACHABLE)
    return {route for route, answer in answers.items() if answer is not READ}


@pytest.mark.parametrize("kind", [BrokerUnreachable, AnswerTooLarge, ConnectionError])
@pytest.mark.parametrize("away", [{3}, {3, 4}, set(range(HOMES))], ids=["one", "two", "all"])
def test_claims_that_can_not_be_read_hold_up_no_other_pair(
    view: Away, reader: Reader, away: set[int], kind: type[ConnectionError]
) -> None:
    view.away = {at: kind("no leader now") for at in away}
    held_up = {route for route in ROUTES if home(route) in away}
    assert held_up
    assert refused(reader.answers(), "no leader now") == held_up
    needed = {home(route) for route in held_up}
    assert len(view.tried) == (1 if kind is BrokerUnreachable else len(needed)), "none is asked in vain twice"
    view.away = {}
    assert not refused(reader.answers(), ""), "each reading looks itself"


def test_claims_that_can_not_be_written_hold_up_no_other_pair(topic: Topic, view: Away, reader: Reader) -> None:
    """As with too few replicas in sync."""
    writer = ClaimLog(view, HOMES)
    topic.leaderless = {3}

    def settle(routes: Sequence[PartitionPair]) -> None:
        writer.revise((), [Retracted(TOPIC_ID, route.partition, 0, 1) for route in routes])

    reader.work = settle
    held_up = {route for route in ROUTES if home(route) == 3}
    assert refused(reader.answers(), "topic topic: partition 3 has no leader now (error 5)") == held_up


def test_old_claims_that_can_not_be_read_hold_up_no_other_pair(view: Away, reader: Reader) -> None:
    log = ClaimLog(view, HOMES)
    reader.work = lambda routes: cast("None", log.wholes((TOPIC_ID, route.partition) for route in routes))
    view.away = {3: LogUnavailable("topic", "it can't be read", 5)}
    held_up = {route for route in ROUTES if home(route) == 3}
    assert refused(reader.answers(), "topic topic: it can't be read (error 5)") == held_up


def test_a_leader_that_is_away_refuses_its_pairs_at_once(reader: Reader) -> None:
    def fails(_: Sequence[PartitionPair]) -> None:
        raise ConnectionError("nobody is there")

    reader.work = fails
    assert refused(reader.answers(), "nobody is there") == set(ROUTES)
    assert len(reader.groups) == 2
