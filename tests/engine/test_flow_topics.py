"""What a flow knows of its topics, from one lease to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.config.model import TransformQuery
from sparkmirror.exact.durable.identity import Identity
from sparkmirror.exact.position.route import PartitionPair
from sparkmirror.kafka.wire.topic_ids import NO_ID
from sparkmirror.mirror.engine import flow_topics
from sparkmirror.mirror.engine.assignment import PartitionKey
from sparkmirror.mirror.engine.completion import Completion
from sparkmirror.mirror.engine.flow_driver import FlowDriver
from sparkmirror.mirror.engine.flow_topics import FlowTopics, TargetTopic
from sparkmirror.mirror.engine.flow_view import PartitionView
from sparkmirror.mirror.engine.order_book import OrderBook
from sparkmirror.mirror.engine.queried_topics import QueriedTopics
from sparkmirror.mirror.engine.turn_watch import TurnWatch
from sparkmirror.mirror.sync.topics import TopicSync
from sparkmirror.policy import DefaultReplicationPolicy
from sparkmirror.pump.messages.moves import MOST_MOVES, RouteMove

SOURCE, TARGET = (ClusterConfig(alias=alias, bootstrap_servers=("127.0.0.1:1",)) for alias in "AB")
IDENTITY = Identity(cluster_id="c", producer_id=1, producer_epoch=0)
KEY = PartitionKey("A->B", "t", 0)


class PlayedFlow:
    """A flow of one partition, whose clusters answer as the test says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.remote_id = b"1" * 16
        self.created: tuple[str, ...] = ()
        self.at_source = {"t"}
        self.made: list[set[str]] = []
        """What the takeover was told to be made by this process, by look."""
        self.sentinels = 0
        self.leadership = SimpleNamespace(identity=IDENTITY, homes=8, source_id="s", rank=1, state_lifetime_ms=1_000)
        self.seen: list[object] = []
        """What the done topics were told of the source."""
        monkeypatch.setattr(flow_topics, "TopicDuty", lambda *_: SimpleNamespace(sync_once=self._synced))
        monkeypatch.setattr(flow_topics, "TopicSentinel", self._sentinel)
        notes = SimpleNamespace(expect=lambda _: None, give_way=lambda topics: topics, unsettled=False)
        monkeypatch.setattr(flow_topics, "FirstNotes", lambda *_: notes)
        flow = FlowConfig(source=SOURCE, target=TARGET)
        view = SimpleNamespace(partitions={}, gone=())
        done = SimpleNamespace(is_released=lambda _: False, is_reached=lambda *_: False, changed=False, topics=())
        done.end_of, done.see = lambda *_: None, self.seen.append
        self.done = done
        self.turns = TurnWatch(flow, cast("Any", done))
        self.topics = FlowTopics(flow, cast("Any", view), cast("Any", None), cast("Any", done), self.turns, once=False)
        takeover = SimpleNamespace(refused={}, begin=lambda: None, look=self._look)
        self.topics.takeover = cast("Any", takeover)
        self.topics.weaknesses = cast("Any", SimpleNamespace(warn=lambda _: None))
        source = SimpleNamespace(topics=lambda names: {name: f"{name}, described" for name in names})
        self.topics.open(cast("Any", source), cast("Any", None))

    def _sentinel(self, *_: object, from_start: bool) -> SimpleNamespace:
        assert from_start
        self.sentinels += 1
        return SimpleNamespace(look=lambda *_: ())

    def _synced(self) -> SimpleNamespace:
        partition = SimpleNamespace(partition=0, leader=1)
        topic = SimpleNamespace(
            source=SimpleNamespace(name="t", partitions=[partition]),
            remote=SimpleNamespace(name="A.t", topic_id=self.remote_id, partitions=[partition]),
            partitions=(0,),
        )
        there = frozenset(self.at_source)
        return SimpleNamespace(mirrored=(topic,), created=self.created, grown=(), refused={}, at_source=there)

    def _look(self, _: Identity, routes: Iterable[PartitionPair], *, made: set[str]) -> None:
        assert list(routes) == [PartitionPair("t", "A.t", 0)]
        self.made.append(set(made))

    def sync(self) -> bool:
        return self.topics.sync(IDENTITY)

    def orders(self) -> OrderBook:
        """The orders of a round that copies the partition."""
        flow = FlowConfig(source=SOURCE, target=TARGET)
        nothing = SimpleNamespace(target_topic_id="", appended=-1, upstream=-1, downstream=-1)
        predecessors = SimpleNamespace(unclean=False, progress=lambda *_: nothing)
        view = SimpleNamespace(partitions={})
        book = OrderBook(
            flow, "i", *(cast("Any", each) for each in (view, None, self.leadership, predecessors, self.topics))
        )
        book.order([KEY])
        return book


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> PlayedFlow:
    return PlayedFlow(monkeypatch)


def test_a_topic_that_this_process_made_is_looked_at_after_the_lease_was_lost(played: PlayedFlow) -> None:
    """MirrorMaker 2 may have copied into it, while this process had no lease."""
    played.topics.begin()
    played.created = ("A.t",)
    played.sync()
    played.created = ()
    played.sync()
    assert played.made == [{"A.t"}, {"A.t"}]
    played.topics.begin()
    played.sync()
    assert played.made[-1] == set()


def test_what_was_read_of_losses_and_topics_holds_for_one_lease(played: PlayedFlow) -> None:
    for _ in range(2):
        played.topics.begin()
        played.sync()
        played.sync()
    assert played.sentinels == 2


def test_counts_outlive_a_topic_whose_writers_have_moved(played: PlayedFlow) -> None:
    """An operator may take the move back, and a counter never falls; a topic that is gone is forgotten."""
    views = played.topics._view.partitions  # noqa: SLF001
    moved, gone = PartitionKey("A->B", "moved", 0), PartitionKey("A->B", "gone", 0)
    for key in (moved, gone):
        views[key] = PartitionView()
        views[key].counts.take(1, "a pump", 77, 7_700)
    played.done.topics = ("moved",)
    played.sync()
    assert {key: view.counts.total for key, view in views.items()} == {moved: (77, 7_700)}


def test_a_round_ends_when_the_target_forgets_producers_sooner(played: PlayedFlow) -> None:
    """Its pumps take records for fresh that are old by now (R4)."""
    played.sync()
    orders = played.orders()
    played.leadership.state_lifetime_ms = 2_000
    assert (orders.only_grown, orders.can_take({}), orders.is_outlived) == (True, True, False)
    assert orders.order([KEY]).state_lifetime_ms == 1_000, "a task that comes later deals with what the others took"
    played.leadership.state_lifetime_ms = 999
    assert (orders.only_grown, orders.can_take({}), orders.is_outlived) == (False, False, True)
    orders.forget()
    assert orders.order([KEY]).state_lifetime_ms == 999
    assert orders.only_grown


def test_a_round_ends_when_the_opposite_flow_appears(played: PlayedFlow) -> None:
    """Its pumps would take that flow's copies for records that producers wrote (M1)."""
    played.sync()
    orders = played.orders()
    assert orders.only_grown
    played.turns.opposite = 7
    assert (orders.only_grown, orders.can_take({})) == (False, False)
    orders.forget()
    assert orders.order([KEY]).routes[0].opposite == 7
    assert orders.only_grown


def test_a_round_takes_no_more_moves_than_a_message_has_room_for(played: PlayedFlow) -> None:
    played.sync()
    orders = played.orders()
    move = RouteMove(number=1, route=orders.order([KEY]).routes[0], before=0, task=1)
    for number in range(MOST_MOVES):
        orders._moves[PartitionKey("A->B", "t", number)] = move  # noqa: SLF001
    assert orders.can_take({})
    orders._moves[PartitionKey("A->B", "t", MOST_MOVES)] = move  # noqa: SLF001
    assert not orders.can_take({})


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [(b"1" * 16, b"2" * 16, False), (b"1" * 16, b"1" * 16, True), (NO_ID, b"1" * 16, True)],
)
def test_a_remote_topic_that_was_created_again_is_another(
    played: PlayedFlow, before: bytes, after: bytes, same: bool
) -> None:
    """A topic that gets its id in an upgrade stays the same."""
    played.remote_id = before
    assert played.sync()
    assert not played.sync()
    orders = played.orders()
    played.remote_id = after
    assert played.sync() is (before != after)
    assert played.topics.targets() == {KEY: TargetTopic("A.t", after)}
    assert orders.only_grown is same
    assert orders.can_take({}) is same


def test_the_partitions_of_topics_whose_writers_have_moved_are_looked_at(played: PlayedFlow) -> None:
    """The topic duty leaves them out, so nothing else would show that they have grown."""
    played.sync()
    played.done.topics = ("orders",)
    played.sync()
    assert played.seen == [{"orders": "orders, described"}]


def test_heartbeats_are_no_querys() -> None:
    """As for Connect's transforms in pumps: clients look for heartbeats by name, and want each."""
    is_heartbeats = DefaultReplicationPolicy().is_heartbeats_topic
    queried = QueriedTopics([TransformQuery(name="all", topics=(".*",))], is_heartbeats)
    assert [queried.query_of(name) for name in ("heartbeats", "A.heartbeats")] == ["", ""]
    assert [queried.query_of(name) for name in ("orders", "device-heartbeats")] == ["all", "all"]


def test_a_pattern_that_matches_nothing_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, lines: Callable[[], list[str]]
) -> None:
    played = PlayedFlow(monkeypatch)
    played.topics._flow = played.topics._flow.model_copy(update={"topics": ("t", "slip;")})  # noqa: SLF001
    played.topics.begin()
    lines()
    for _ in range(2):
        played.topics.sync(IDENTITY)
    (line,) = lines()
    assert line.startswith("flow A->B: topics: nothing matches topics = slip; (`;` separates no patterns")
    played.at_source = {"t", "u"}
    played.topics.sync(IDENTITY)
    assert lines() == [], "it was told"
    played.at_source = {"u"}
    played.topics.sync(IDENTITY)
    assert [pattern.pattern for pattern in played.topics.matches.unmatched] == ["t", "slip;"]
    assert lines() == ["flow A->B: topics: nothing matches topics = t"]


@pytest.mark.parametrize(
    ("settings", "missing"),
    [
        ({"turn": "second"}, []),
        ({"topics_exclude": ("t",)}, ["topics.exclude leaves out every topic that topics matches: t matches t"]),
        ({"topics": ("u",)}, ["no topic of A matches topics = u"]),
    ],
    ids=["turn", "exclude", "topics"],
)
def test_what_a_flow_without_a_topic_owes_with_once(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], missing: list[str]
) -> None:
    """Topics that wait for their turn owe nothing; else the line has the true reason."""
    PlayedFlow(monkeypatch)
    nothing = TopicSync(mirrored=(), created=(), grown=(), refused={}, at_source=frozenset({"t"}))
    monkeypatch.setattr(flow_topics, "TopicDuty", lambda *_: SimpleNamespace(sync_once=lambda: nothing))
    flow = FlowConfig(source=SOURCE, target=TARGET, **{"topics": ("t",), **settings})
    driver = FlowDriver(flow, "i", use_lease=False, once=True)
    driver.topics.open(cast("Any", SimpleNamespace(end_offsets=lambda *_, **__: {})), cast("Any", None))
    monkeypatch.setattr(driver.topics.takeover, "look", lambda *_, **__: None)
    monkeypatch.setattr(driver.reports.loss_watch, "read", lambda: None)
    driver.topics.sync(IDENTITY)
    completion = Completion()
    completion.finish(driver)
    assert completion.missing(driver) == [f"A->B: {line}" for line in missing]
