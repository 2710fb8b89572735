"""Decoding kafka-python's answers: what it decodes, in memory and time that an answer's bytes bound."""

from __future__ import annotations

import struct
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.protocol.admin import ListGroupsResponse
from kafka.protocol.consumer import OffsetFetchResponse
from kafka.protocol.metadata import MetadataResponse
from tests.support.schema_answers import KINDS, Crowded, arrays, filled, schema_of, uvarint

from sparkmirror.kafka.wire import answer_bounds, bounded_decoding
from sparkmirror.kafka.wire.bounded_decoding import MEMORY_FACTOR

MOST_ENTRIES = answer_bounds.MOST_ENTRIES
ASKED = sorted(name.removesuffix("Request") for name in answer_bounds.BOUNDS)
KB = 1 << 10
SMALL = 4 * KB
SCATTERED = 13
"""A step through the numbers, so that neighbours differ."""


def decode(kind: Any, version: int, data: memoryview, at: int) -> Any:
    return bounded_decoding.decode(kind, version, data, at, MOST_ENTRIES)


def versions_of(kind: Any) -> range:
    """Of ApiVersions the one that is asked for: with an error kafka-python takes others for it, too."""
    return range(1 if kind.name == "ApiVersionsResponse" else kind.max_version + 1)


def same(theirs: Any, ours: Any) -> bool:
    """Equal, but that arrays are tuples, and operations the number on the wire."""
    if isinstance(theirs, list):
        return type(ours) is tuple and len(theirs) == len(ours) and all(map(same, theirs, ours))
    if isinstance(theirs, set):
        return bool(ours == sum(1 << bit for bit in theirs))
    if hasattr(theirs, "_struct"):
        return type(theirs) is type(ours) and all(
            same(getattr(theirs, name), getattr(ours, name))
            for name, field in theirs.fields.items()
            if field.for_version_q(theirs.version) and (getattr(theirs, name) or getattr(ours, name))
        )
    return bool(theirs == ours)


def test_every_request_has_a_bound_and_every_answer_a_decoder() -> None:
    assert {f"{name}Response" for name in ASKED} <= KINDS.keys()


def scattered(seed: int) -> Callable[[int], int]:
    numbers = iter(range(seed, 1 << 20, SCATTERED))
    return lambda most: next(numbers) % (most + 1)


@pytest.mark.parametrize("name", ASKED)
def test_it_decodes_what_kafka_python_decodes(name: str) -> None:
    kind = KINDS[f"{name}Response"]
    for version in versions_of(kind):
        for seed in range(2):
            data = bytes(filled(kind, version, scattered(seed)).encode())
            assert same(kind.decode(memoryview(data), version=version), decode(kind, version, memoryview(data), 0))


@settings(max_examples=60)
@given(st.sampled_from(ASKED), st.data())
def test_whatever_comes_is_an_answer_or_an_error_at_once(name: str, data: st.DataObject) -> None:
    kind = KINDS[f"{name}Response"]
    version = data.draw(st.sampled_from(versions_of(kind)))
    choose: Callable[[int], int] = lambda most: data.draw(st.integers(0, most))  # noqa: E731 - as `filled` wants it
    frame = bytearray(filled(kind, version, choose).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(frame)))
        frame[at : at + 4] = data.draw(st.sampled_from((b"\x7f\xff\xff\xff", b"\xff" * 9, b"\x80" * 4, b"")))
    began = time.thread_time()
    tracemalloc.start()
    try:
        decode(kind, version, memoryview(frame), 0)
    except (struct.error, IndexError, ValueError):
        pass
    finally:
        taken = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert time.thread_time() - began < 5
    assert taken < MEMORY_FACTOR * len(frame) + 1000 * KB  # a decoder that is made now, too


def memory_of(call: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        kept = call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        del kept
        tracemalloc.stop()


def crowded(kind: Any) -> Iterator[tuple[int, bytes]]:
    """Answers of the smallest entries: where they have the most objects for their bytes."""
    version = versions_of(kind)[-1]
    for path in arrays(schema_of(kind), version):
        for text in (b"", b"ab"):
            yield version, Crowded(kind, version, path, text, SMALL).data


@pytest.mark.parametrize("name", ASKED)
def test_the_memory_of_an_answer_is_a_multiple_of_its_bytes(name: str) -> None:
    kind = KINDS[f"{name}Response"]
    for version, data in crowded(kind):
        decode(kind, version, memoryview(data), 0)  # makes the decoder
        assert memory_of(lambda: decode(kind, version, memoryview(data), 0)) < MEMORY_FACTOR * len(data) + KB  # noqa: B023


ABSURD = {
    "2^31 groups": (
        ListGroupsResponse,
        0,
        struct.pack(">hi", 0, 2**31 - 1) + bytes(100),
        "2147483647 entries or bytes",
    ),
    "more groups than bytes": (ListGroupsResponse, 0, struct.pack(">hi", 0, 26) + bytes(100), "26 entries or bytes"),
    "2^31 groups, compact": (
        ListGroupsResponse,
        3,
        bytes(6) + uvarint(2**31 - 1) + bytes(100),
        "2147483646 entries or bytes are announced, and 100 bytes are left",
    ),
    "a number without an end": (ListGroupsResponse, 3, bytes(6) + b"\xff" * (4 << 20), "more than 32 bits"),
    "a name that is longer than the answer": (
        ListGroupsResponse,
        3,
        bytes(6) + b"\2\xff\x7f" + bytes(9),
        "16382 entries",
    ),
    "ever more tagged fields": (
        ListGroupsResponse,
        3,
        bytes(6) + b"\1" + b"\xff\xff\x7f" + bytes(999),
        "2097151 tagged",
    ),
    "a tagged field beyond the end": (ListGroupsResponse, 3, bytes(6) + b"\1\1\0\x7f", "127 entries or bytes"),
    "2^31 replicas": (
        MetadataResponse,
        0,
        struct.pack(">iihhihiii", 0, 1, 0, 0, 1, 0, 0, 1, 2**31 - 1) + bytes(100),
        "2147483647 entries or bytes",
    ),
}


@pytest.mark.parametrize("case", ABSURD)
def test_a_length_that_lies_is_refused_at_once(case: str) -> None:
    kind, version, data, why = ABSURD[case]
    began = time.thread_time()
    with pytest.raises(ValueError, match=why):
        decode(kind, version, memoryview(data), 0)
    assert time.thread_time() - began < 1


def test_only_what_may_be_null_is_none() -> None:
    """An array or a text of -5 bytes must not lead backwards either."""
    assert decode(ListGroupsResponse, 0, memoryview(struct.pack(">hi", 0, -5)), 0).groups == ()
    (group,) = decode(ListGroupsResponse, 0, memoryview(struct.pack(">hihh", 0, 1, -5, -1)), 0).groups
    assert (group.group_id, group.protocol_type) == ("", "")
    (fetched,) = decode(OffsetFetchResponse, 0, memoryview(struct.pack(">ihiiqhh", 1, 0, 1, 0, 0, -1, 0)), 0).topics
    assert fetched.partitions[0].metadata is None
    assert decode(MetadataResponse, 2, memoryview(struct.pack(">ihii", 0, -1, 1, 0)), 0).cluster_id is None


def test_an_answer_has_no_more_entries_than_the_largest_cluster() -> None:
    data = struct.pack(">hi", 0, MOST_ENTRIES + 1) + bytes(4 * (MOST_ENTRIES + 1))
    with pytest.raises(ValueError, match="600,001 entries, and at most 600,000 are read"):
        decode(ListGroupsResponse, 0, memoryview(data), 0)


def test_tagged_fields_cost_no_more_than_their_bytes() -> None:
    """Kafka-python copies the rest of the answer for each: 20,000 of them took minutes."""
    group = b"\1\1\1\1" + b"\1\x63\0"  # version 5: three texts and a type, then tag 99, empty
    data = memoryview(bytes(6) + uvarint(200_001) + group * 200_000 + b"\0")
    began = time.thread_time()
    answer = decode(ListGroupsResponse, 5, data, 0)
    assert len(answer.groups) == 200_000
    assert time.thread_time() - began < 5
