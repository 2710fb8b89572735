"""A shop's made-up events, the same for the same seed.

The events contain everything that is easy to lose in a copy: null keys, null values, empty values, headers with empty
and null values, every codec, records of 0 bytes to 20 kB.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from kafka.partitioner import murmur2

Header = tuple[str, bytes | None]

CUSTOMERS = 5_000
ARTICLES = 2_000

_PAGES = ("/", "/search", "/cart", "/checkout", "/account", "/help")
_AGENTS = ("Mozilla/5.0 (X11; Linux x86_64)", "Mozilla/5.0 (iPhone)", "curl/8.9")
_METHODS = ("card", "transfer", "voucher", "cash")
_PHRASES = (
    "the box came late",
    "but the lamp is lovely, and bright",
    "it is used each evening",
    "would buy again",
    "the colour differs from the picture",
    "très bien",
    "größer als gedacht",
    "良い品です",
    "👍",
)


class ShopEvent(NamedTuple):
    """One record as a producer gives it to Kafka, and its partition."""

    partition: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]


Message = tuple[bytes | None, bytes | None, tuple[Header, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShopTopic:
    """One topic in the shop, and the function that makes its records."""

    name: str
    partitions: int
    codec: str
    share: float
    """Share of all events, 0 to 1."""
    batch_records: int
    """One partition's records in a backlog's batch, roughly; well below 1 MiB."""
    message: Callable[[random.Random, int], Message]


def events(topic: ShopTopic, seed: int) -> Iterator[ShopEvent]:
    """Yield the topic's events, without end."""
    chance = random.Random(f"{seed} {topic.name}")  # noqa: S311
    number = 0
    while True:
        key, value, headers = topic.message(chance, number)
        partition = chance.randrange(topic.partitions) if key is None else _partition(key, topic.partitions)
        yield ShopEvent(partition, key, value, headers)
        number += 1


@cache
def _partition(key: bytes, partitions: int) -> int:
    """Return the key's partition, as Kafka's own producers choose it."""
    return int(murmur2(key) & 0x7FFFFFFF) % partitions


def _customer(chance: random.Random) -> str:
    return f"customer-{int(CUSTOMERS * chance.random() ** 2)}"  # some buy more than others


def _order(chance: random.Random, number: int) -> Message:
    customer = _customer(chance)
    items = [
        {
            "article": chance.randrange(ARTICLES),
            "count": 1 + chance.randrange(3),
            "cents": 99 + chance.randrange(20_000),
        }
        for _ in range(1 + int(12 * chance.random() ** 3))
    ]
    headers: tuple[Header, ...] = (
        ("trace", chance.randbytes(16)),
        ("coupon", b"" if number % 3 else b"WELCOME"),
        ("agent", None if number % 5 else b"shop-app/7.1"),
    )
    signature = chance.randbytes(96).hex()
    value = None if number % 97 == 0 else _json(order=number, customer=customer, items=items, signature=signature)
    return customer.encode(), value, headers


def _click(chance: random.Random, number: int) -> Message:
    page = _PAGES[int(len(_PAGES) * chance.random())]
    agent = _AGENTS[number % len(_AGENTS)]
    session = chance.randbytes(64).hex()
    value = _json(session=session, page=page, article=int(ARTICLES * chance.random()), agent=agent)
    return None, value, ()


def _payment(chance: random.Random, number: int) -> Message:
    value = _json(
        order=number,
        cents=99 + chance.randrange(90_000),
        method=_METHODS[number % 4],
        receipt=chance.randbytes(128).hex(),
    )
    # A key of a header may come twice, and may be empty.
    headers: tuple[Header, ...] = (("attempt", b"1"), ("attempt", b"2"), ("", b"")) if number % 11 == 0 else ()
    return _customer(chance).encode(), value, headers


def _stock(chance: random.Random, number: int) -> Message:
    article = chance.randrange(ARTICLES)
    key = b"article-%d" % article
    if number % 7 == 0:
        return key, None, ()
    if number % 13 == 0:
        return key, b"", ()
    return key, _json(article=article, stock=chance.randrange(500), shelf=f"{chance.randrange(40)}-{number % 9}"), ()


def _review(chance: random.Random, number: int) -> Message:
    phrases = chance.choices(_PHRASES, k=1 + int(700 * chance.random() ** 5))
    language = (("language", ("en", "de", "fr", "ja")[number % 4].encode()),)
    return b"article-%d" % chance.randrange(ARTICLES), " ".join(phrases).encode(), language


def _json(**fields: Any) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode()


SHOP = (
    ShopTopic(name="orders", partitions=6, codec="lz4", share=0.40, batch_records=300, message=_order),
    ShopTopic(name="clicks", partitions=4, codec="snappy", share=0.36, batch_records=500, message=_click),
    ShopTopic(name="payments", partitions=3, codec="zstd", share=0.15, batch_records=400, message=_payment),
    ShopTopic(name="inventory", partitions=2, codec="none", share=0.07, batch_records=200, message=_stock),
    ShopTopic(name="reviews", partitions=2, codec="gzip", share=0.02, batch_records=30, message=_review),
)
"""The shop's topics.

None is compacted, so that offsets have no gaps and can be compared too.
"""
