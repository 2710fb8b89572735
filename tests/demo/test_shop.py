"""The shop's events: repeatable, and with everything in them that a copy may lose."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import pytest

from sparkmirror.demo.shop import SHOP, ShopEvent, ShopTopic, events
from sparkmirror.kafka.wire.batches import CODECS

MAX_BATCH_BYTES = 1_000_000
OVERHEAD_BYTES = 100


def _some(topic: ShopTopic, count: int = 3_000, seed: int = 1) -> list[ShopEvent]:
    return list(islice(events(topic, seed), count))


def _size(event: ShopEvent) -> int:
    headers = sum(len(key) + len(value or b"") for key, value in event.headers)
    return len(event.key or b"") + len(event.value or b"") + headers + OVERHEAD_BYTES


def _by_name(name: str) -> ShopTopic:
    return next(topic for topic in SHOP if topic.name == name)


@pytest.mark.parametrize("topic", SHOP, ids=lambda topic: topic.name)
def test_a_seed_gives_the_same_events_again(topic: ShopTopic) -> None:
    assert _some(topic) == _some(topic)
    assert _some(topic) != _some(topic, seed=2)


@pytest.mark.parametrize("topic", SHOP, ids=lambda topic: topic.name)
def test_every_partition_gets_events_and_a_key_stays_in_one(topic: ShopTopic) -> None:
    some = _some(topic)
    assert {event.partition for event in some} == set(range(topic.partitions))
    places = {(event.key, event.partition) for event in some if event.key is not None}
    assert len(places) == len({key for key, _ in places})


@pytest.mark.parametrize("topic", SHOP, ids=lambda topic: topic.name)
def test_a_batch_is_never_too_large_for_a_broker(topic: ShopTopic) -> None:
    some = _some(topic)
    turn = topic.batch_records * topic.partitions
    for start in range(0, len(some), turn):
        sizes: Counter[int] = Counter()
        for event in some[start : start + turn]:
            sizes[event.partition] += _size(event)
        assert max(sizes.values()) < MAX_BATCH_BYTES


def test_all_codecs_and_all_events_are_shared_out() -> None:
    assert {topic.codec for topic in SHOP} == set(CODECS)
    assert sum(topic.share for topic in SHOP) == pytest.approx(1)


def test_what_copies_like_to_lose_is_there() -> None:
    orders, clicks, payments, inventory = map(_by_name, ("orders", "clicks", "payments", "inventory"))
    assert any(event.value is None for event in _some(orders))
    header_values = {value for event in _some(orders) for _, value in event.headers}
    assert {None, b""} <= header_values
    assert all(event.key is None for event in _some(clicks))
    assert any([key for key, _ in event.headers] == ["attempt", "attempt", ""] for event in _some(payments))
    assert {None, b""} <= {event.value for event in _some(inventory)}
