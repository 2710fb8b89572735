"""Records of our own topics and of MirrorMaker 2's that somebody else wrote: none is taken for what it is not."""

from __future__ import annotations

import contextlib
import os
import struct
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sparkmirror.exact.durable.claims import (
    AnnouncedBatch,
    Claim,
    Retracted,
    claim_record,
    identity_record,
    read_record,
)
from sparkmirror.exact.durable.identity import Identity
from sparkmirror.exact.mm2.connect_offsets import read_key, read_value
from sparkmirror.exact.mm2.record_formats import Checkpoint, Heartbeat, Malformed, OffsetSync
from sparkmirror.kafka.wire.splice import Run

brief = settings(max_examples=int(os.environ.get("SPARKMIRROR_FUZZ", "120")))
some = st.none() | st.binary(max_size=90)
SEGMENT = Claim(
    target_topic_id=b"t" * 16,
    partition=3,
    sequence=70,
    incarnation=5,
    producer_id=4000,
    producer_epoch=0,
    source_topic_id=b"s" * 16,
    source_leader_epoch=7,
    downstream=72,
    runs=(Run(170, 6), Run(180, 400), Run(200_000, 10)),
    batches=(AnnouncedBatch(8, 3, 99, 1000, 1007), AnnouncedBatch(408, 0, 98, 1010, 1010)),
)
OURS = [
    claim_record(SEGMENT),
    identity_record(Identity("cluster", 4000, 0), b"u" * 16),
    (bytes.fromhex("000102" + "75" * 16), struct.pack(">hqhqhqH", 1, 4001, 0, 4000, 0, 7, 7) + b"clusterid"),
]
THEIRS: list[Any] = [
    Heartbeat("a", "b", 5),
    Checkpoint(group="group", topic="topic", partition=3, upstream=10, downstream=12, metadata="why"),
    OffsetSync("topic", 3, 10, 12),
]


def damaged(data: bytes, draw: Callable[..., Any]) -> bytes:
    out = bytearray(data)
    for _ in range(draw(st.integers(1, 2))):
        at = draw(st.integers(0, len(out)))
        match draw(st.integers(0, 3)):
            case 0:
                out[at : at + 1] = draw(st.binary(min_size=1, max_size=1))
            case 1:
                out[at : at + 8] = struct.pack(">q", draw(st.sampled_from((-1, 2**63 - 1, -(2**63), 2**31))))
            case 2:
                out[at:at] = draw(st.sampled_from((b"\xff" * 9 + b"\x01", b"\xff" * 30, b"\xff\xff\xff\xff\x0f")))
            case 3:
                del out[at:]
    return bytes(out)


def taken(key: bytes, value: bytes | None) -> None:
    """Whatever it is, it can be used, and written again as it was read."""
    began = time.thread_time()
    read = read_record(key, value)
    if isinstance(read, Claim):
        assert read.runs
        assert (read.upstream, read.announced, read.next_upstream(read.sequence)) is not None
        assert read.runs_at(read.sequence, 5)
        assert read_record(*claim_record(read)) == read
    elif isinstance(read, Identity):
        assert read_record(*identity_record(read, b"u" * 16)) == replace(read, former=())
    else:
        assert read is None or isinstance(read, Retracted)
    assert time.thread_time() - began < 1


@brief
@given(st.sampled_from(OURS), st.data())
def test_damaged_claims(record: tuple[bytes, bytes], data: st.DataObject) -> None:
    key, value = record
    taken(key, damaged(value, data.draw))
    taken(damaged(key, data.draw), value)


@brief
@given(some, some, st.sampled_from([b"", b"\0\1\0", b"\0\1\1", b"\0\1\2"]))
@example(claim_record(SEGMENT)[0], (claim_record(SEGMENT)[1] or b"")[:49] + b"\xff" * 1_000_000, b"")
@example(claim_record(SEGMENT)[0], (claim_record(SEGMENT)[1] or b"")[:49] + b"\0\0", b"")
def test_whatever_bytes_in_our_topic(key: bytes | None, value: bytes | None, head: bytes) -> None:
    if key is None:
        assert read_record(key, value) is None
    else:
        taken(head + key, value)
        taken(head + key, None if value is None else b"\0\1" + value)


def test_claims_cut_off_at_each_byte() -> None:
    for key, value in OURS:
        assert value is not None
        for end in range(len(value)):
            taken(key, value[:end])
        for end in range(len(key)):
            taken(key[:end], value)
    key, value = OURS[0]
    assert value is not None
    assert [read_record(key, value[:end]) for end in range(len(value))] == [None] * len(value)


@brief
@given(st.sampled_from(THEIRS), st.data())
def test_damaged_records_of_mirror_maker(record: Any, data: st.DataObject) -> None:
    """Either it is `Malformed`, or says what its bytes say."""
    key, value = damaged(record.key(), data.draw), damaged(record.value(), data.draw)
    for one, other in ((key, record.value()), (record.key(), value), (None, value), (key, None)):
        with contextlib.suppress(Malformed):
            read = type(record).read(one, other)
            assert one is not None
            assert other is not None
            assert one.startswith(read.key())
            assert other.startswith(read.value())


@pytest.mark.parametrize("record", THEIRS)
def test_records_of_mirror_maker_cut_off_at_each_byte(record: Any) -> None:
    for end in range(len(record.key())):
        with pytest.raises(Malformed):
            type(record).read(record.key()[:end], record.value())
    for end in range(len(record.value())):
        with pytest.raises(Malformed):
            type(record).read(record.key(), record.value()[:end])


@brief
@given(some)
@example(b"[" * 100_000)
@example(b'{"offset":' * 50_000)
@example(b'["c",{"cluster":"a","partition":1e999,"topic":"t"}]')
@example(b'["c",{"cluster":"a","partition":-1,"topic":"t"}]')
@example(b'{"offset":1' + b"0" * 10_000 + b"}")
@example(b'{"offset":1e999}')
@example(b"\xff\xfe")
def test_what_connect_stores(content: bytes | None) -> None:
    read_key(content)
    read_value(content)
