"""Places of records that a copy has deleted are deleted, and nothing that is asked of the others changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.copied_flow import Side

from sparkmirror.exact.durable import claim_expiry
from sparkmirror.exact.durable.claim_expiry import ClaimExpiry
from sparkmirror.exact.durable.claims import TargetPartition
from sparkmirror.exact.durable.place_expiry import delete_expired
from sparkmirror.exact.durable.query_places import PlacesKey, QueryPlaces
from sparkmirror.exact.maps import query_map_feed
from sparkmirror.exact.maps.query_map_feed import QueryMapFeed
from sparkmirror.kafka.cluster.leader_epochs import EpochStart
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.kafka.wire.splice import Run
from sparkmirror.queries.plan_log import PlanLog, PlannedRange

pytestmark = pytest.mark.broker

HERE, OTHER, SOURCE = (b"t" * 16, 3), (b"t" * 16, 4), b"s" * 16


def places(batch: int, epoch: int = 0, target: TargetPartition = HERE) -> QueryPlaces:
    """Ten records, from ten times the batch's number on."""
    return QueryPlaces(
        query="q",
        target=target,
        batch=batch,
        part=0,
        source_topic_id=SOURCE,
        sequence=10 * batch,
        downstream=10 * batch,
        runs=(Run(10 * batch, 10),),
        upstream_end=10 * batch + 10,
        epochs=(EpochStart(epoch, 30 * epoch),),
    )


@pytest.fixture
def feed(side: Side, topic_name: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[], QueryMapFeed]:
    monkeypatch.setattr(query_map_feed, "plans_topic", lambda _: topic_name)
    return lambda: QueryMapFeed(side.client, "eu")


def log_of_places(log: TopicLog) -> list[int]:
    """The batches whose places are in the log, and not deleted since."""
    there: dict[PlacesKey, bool] = {}
    for entry in log.read(0, 0)[0]:
        if (key := PlacesKey.read(entry.key)) is not None and key.target == HERE:
            there[key] = entry.value is not None
    return sorted(key.batch for key, is_there in there.items() if is_there)


def taken(feed: QueryMapFeed, target: TargetPartition = HERE) -> list[int]:
    """The batches whose places a map takes in now."""
    feed.read()
    return [claim.incarnation for claim in feed.new_claims(target, (4000, 0))]


@pytest.mark.parametrize(
    ("log_start", "kept"),
    [(0, range(7)), (10, range(7)), (11, range(1, 7)), (40, [2, 3, 4, 5, 6]), (41, [2, 4, 5, 6]), (99, [2, 5, 6])],
)
def test_places_below_the_log_are_deleted(
    log_start: int, kept: Iterable[int], side: Side, topic_name: str, feed: Callable[[], QueryMapFeed]
) -> None:
    """Kept: the newest that begins below, each leader epoch's last, and the two newest micro-batches'.

    A map begins behind those that are missing: to it, places count up to the next.
    """
    log, plans = TopicLog(side.client, topic_name), PlanLog(side.client, topic_name, "q")
    written = [places(number, int(number > 2)) for number in range(7)]
    plans.place([*written, *(places(number, target=OTHER) for number in range(7))], {})
    early = feed()
    assert taken(early) == [*range(7)]
    assert delete_expired(log, {HERE: log_start, (b"t" * 16, 5): 99}) == 7 - len(list(kept))
    assert delete_expired(log, {HERE: log_start}) == 0
    assert log_of_places(log) == list(kept)
    assert taken(feed()) == [number for number in kept if log_start <= 40 or number > 2]
    assert taken(feed(), OTHER) == [*range(7)]
    again = PlanLog(side.client, topic_name, "q")
    again.newest()
    assert (again.last_places(HERE, 7), again.last_places(HERE, 6)) == (written[6], written[5])
    planned = PlannedRange(70, 70, SOURCE.hex(), HERE[0].hex())
    assert again.copied(("t", 3), planned).epochs == (EpochStart(0, 0), EpochStart(1, 30))
    plans.place([places(7, 1)], {})
    assert taken(early) == [7]


def test_places_that_are_not_known_are_deleted_too(side: Side, topic_name: str) -> None:
    unknown = [replace(places(number), runs=(), is_known=False) for number in range(7)]
    PlanLog(side.client, topic_name, "q").place(unknown, {})
    assert delete_expired(TopicLog(side.client, topic_name), {HERE: 41}) == 4
    assert delete_expired(TopicLog(side.client, topic_name), {HERE: 41}) == 0


def test_the_duty_deletes_places_once_the_copy_begins_elsewhere(
    side: Side, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flow without queries has no topic for them."""
    expired: list[Mapping[TargetPartition, int]] = []
    starts = [{HERE: 5}, {HERE: 5}, {HERE: 5}, {HERE: 9}]
    flow: Any = SimpleNamespace(name="eu->us", source=SimpleNamespace(alias="eu"), target=side.config)
    monkeypatch.setattr(claim_expiry, "retract_expired", lambda *_: 0)
    monkeypatch.setattr(claim_expiry, "log_starts", lambda *_: starts.pop(0))
    monkeypatch.setattr(claim_expiry, "plans_topic", lambda _: f"{topic_name}-absent")
    with closing(ClaimExpiry(flow, list)) as duty:
        duty.run()
    monkeypatch.setattr(claim_expiry, "plans_topic", lambda _: topic_name)
    monkeypatch.setattr(claim_expiry, "delete_expired", lambda _, starts: expired.append(starts))
    with closing(ClaimExpiry(flow, list)) as duty:
        for _ in range(3):
            duty.run()
    assert expired == [{HERE: 5}, {HERE: 9}]
