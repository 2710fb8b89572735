"""Answers that are damaged, cut off or absurd: `Garbled`, soon, and in no more memory than they have bytes."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from kafka.protocol.consumer import FetchResponse
from kafka.protocol.metadata import ApiVersionsResponse, MetadataRequest, MetadataResponse
from kafka.protocol.producer import ProduceResponse

from sparkmirror.kafka.wire import fetch_format, produce
from sparkmirror.kafka.wire.answer_bounds import ALL_METADATA, fetch_bound
from sparkmirror.kafka.wire.buffers import FramePool
from sparkmirror.kafka.wire.channel import Channel, ChannelClosed
from sparkmirror.kafka.wire.primitives import Garbled, Reader
from sparkmirror.kafka.wire.rpc import BrokerUnreachable, RpcConnection
from sparkmirror.kafka.wire.varints import read, written, zigzag

LONG = int(os.environ.get("SPARKMIRROR_FUZZ", "0"))
"""So many examples of each, instead of a few hundred."""

MB = 1 << 20
brief = settings(max_examples=LONG or 120, suppress_health_check=[HealthCheck.too_slow])
versions_of_fetch = st.integers(*fetch_format.VERSIONS)
versions_of_produce = st.integers(*produce.VERSIONS)


def damaged(data: bytes, draw: Callable[..., Any]) -> bytes:
    """Some bytes changed, cut out, put in, or the end cut off."""
    out = bytearray(data)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(out)))
        match draw(st.integers(0, 3)):
            case 0:
                out[at : at + 1] = draw(st.binary(min_size=1, max_size=1))
            case 1:
                out[at : at + 4] = struct.pack(">I", draw(st.sampled_from((0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**24))))
            case 2:
                out[at:at] = draw(st.sampled_from((b"\xff" * 5, b"\xff" * 11, b"\xff\xff\xff\xff\x0f", b"\x80" * 40)))
            case 3:
                del out[at:]
    return bytes(out)


def fetch_answer(version: int) -> bytes:
    topic = FetchResponse.FetchableTopicResponse
    answer = FetchResponse(
        throttle_time_ms=5,
        session_id=9,
        responses=[
            topic(
                topic="t",
                partitions=[
                    topic.PartitionData(
                        partition_index=number,
                        high_watermark=70,
                        last_stable_offset=60,
                        log_start_offset=3,
                        aborted_transactions=[topic.PartitionData.AbortedTransaction(producer_id=8, first_offset=44)],
                        records=b"some records" * number,
                    )
                    for number in range(3)
                ],
            )
        ],
    )
    answer.API_VERSION = version
    answer.with_header(correlation_id=1)
    return bytes(answer.encode(header=True))


def produce_answer(version: int) -> bytes:
    topic = ProduceResponse.TopicProduceResponse
    partition = topic.PartitionProduceResponse
    answer = ProduceResponse(
        responses=[
            topic(
                name="t",
                partition_responses=[
                    partition(
                        index=1,
                        error_code=87,
                        base_offset=5,
                        log_append_time_ms=-1,
                        record_errors=[
                            partition.BatchIndexAndErrorMessage(batch_index=3, batch_index_error_message="x")
                        ],
                        error_message="all of it",
                    )
                ],
            )
        ],
        throttle_time_ms=7,
    )
    answer.API_VERSION = version
    answer.with_header(correlation_id=1)
    return bytes(answer.encode(header=True))


def read_fetch(version: int, frame: bytes) -> list[fetch_format.AnsweredPartition]:
    head, parts = fetch_format.decode(version, memoryview(frame))
    assert head.throttle_ms >= 0
    return list(parts)


def within_a_bound(call: Callable[[], object], size: int) -> None:
    """It gives something, or is `Garbled`; in a second, and without memory that only its lengths ask for."""
    tracemalloc.start()
    began = time.thread_time()
    try:
        with contextlib.suppress(Garbled):
            call()
        assert time.thread_time() - began < 5
        assert tracemalloc.get_traced_memory()[1] < 1000 * size + MB
    finally:
        tracemalloc.stop()


@brief
@given(versions_of_fetch, st.data())
def test_damaged_answers_to_a_fetch(version: int, data: st.DataObject) -> None:
    frame = damaged(fetch_answer(version), data.draw)
    within_a_bound(lambda: read_fetch(version, frame), len(frame))


@brief
@given(versions_of_produce, st.data())
def test_damaged_answers_to_a_produce(version: int, data: st.DataObject) -> None:
    frame = damaged(produce_answer(version), data.draw)
    within_a_bound(lambda: produce.read_answer(version, memoryview(frame)), len(frame))


@brief
@given(versions_of_fetch, versions_of_produce, st.binary(max_size=300))
@example(6, 5, b"\0\0\0\0" * 2 + b"\x7f\xff\xff\xff" + b"\x80\0" * 20)  # a name of -32768 bytes, 2^31 times
@example(16, 13, b"\0" * 15 + b"\xff" * 200)  # a number without an end
def test_whatever_comes_as_an_answer(fetch_version: int, produce_version: int, frame: bytes) -> None:
    within_a_bound(lambda: read_fetch(fetch_version, frame), len(frame))
    within_a_bound(lambda: produce.read_answer(produce_version, memoryview(frame)), len(frame))


@pytest.mark.parametrize("version", range(fetch_format.VERSIONS[0], fetch_format.VERSIONS[1] + 1))
def test_an_answer_to_a_fetch_that_is_cut_off_at_each_byte(version: int) -> None:
    frame = fetch_answer(version)
    assert [len(part.records) for part in read_fetch(version, frame)] == [0, 12, 24]
    for end in range(len(frame)):
        with contextlib.suppress(Garbled):
            assert end == len(frame) - 1 or not read_fetch(version, frame[:end])


@pytest.mark.parametrize("version", range(produce.VERSIONS[0], produce.VERSIONS[1] + 1))
def test_an_answer_to_a_produce_that_is_cut_off_at_each_byte(version: int) -> None:
    frame = produce_answer(version)
    ((_, (ack,), throttle),) = [produce.read_answer(version, memoryview(frame))]
    assert (ack.error, ack.base_offset, throttle) == (87, 5, 7)
    for end in range(len(frame) - 1):
        with pytest.raises(Garbled, match="an answer to a Produce can't be read"):
            produce.read_answer(version, memoryview(frame[:end]))


def test_a_number_without_an_end_is_refused_at_once() -> None:
    """Four megabytes of them took hours."""
    began = time.thread_time()
    with pytest.raises(ValueError, match="more than 64 bits"):
        Reader(memoryview(b"\xff" * (4 * MB))).uvarint()
    with pytest.raises(ValueError, match="more than 64 bits"):
        read(b"\xff" * (4 * MB), 0)
    assert time.thread_time() - began < 1


@settings(max_examples=300)
@given(st.integers(-(2**63), 2**63 - 1), st.binary(max_size=4))
def test_numbers_come_back_and_cut_off_ones_are_noticed(value: int, behind: bytes) -> None:
    data = written(zigzag(value))
    assert read(data + behind, 0) == (zigzag(value), len(data))
    for end in range(len(data)):
        with pytest.raises(IndexError):
            read(data[:end], 0)


# --- frames -------------------------------------------------------------------------------------------


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    yield ours, theirs
    ours.close()
    theirs.close()


FETCH = fetch_bound(MB, 1)


@pytest.mark.parametrize("size", [-1, -(2**31), 2**31 - 1, FETCH.bytes + 1])
def test_a_frame_of_an_absurd_size(pair: tuple[socket.socket, socket.socket], size: int) -> None:
    ours, theirs = pair
    theirs.sendall(struct.pack(">i", size) + b"x" * 100)
    channel = Channel(ours, FramePool(MB, 1))
    channel.bound = FETCH
    with pytest.raises(
        ChannelClosed, match=f"an answer to Fetch of {size:,} bytes, and at most {FETCH.bytes:,} are read"
    ):
        list(channel.receive())


def resident_mb() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MB


def test_a_frame_takes_memory_as_it_comes(pair: tuple[socket.socket, socket.socket]) -> None:
    """The largest one is announced, and a little of it sent: neither memory nor the pump's share of it is gone."""
    ours, theirs = pair
    pool = FramePool(MB, 1)
    channel = Channel(ours, pool)
    channel.bound = FETCH
    before = resident_mb()
    theirs.sendall(struct.pack(">i", FETCH.bytes) + b"x" * 50_000)
    assert list(channel.receive()) == []
    assert resident_mb() - before < 16
    assert pool.in_use == 50_000
    theirs.sendall(b"x" * 50_000)
    assert list(channel.receive()) == []
    assert pool.in_use == 100_000
    channel.close()
    assert pool.in_use == 0


@pytest.mark.parametrize("size", [0, 10, 400_000, MB, 3 * MB])
def test_frames_of_each_size_come_whole(pair: tuple[socket.socket, socket.socket], size: int) -> None:
    ours, theirs = pair
    pool = FramePool(MB, 1)
    channel = Channel(ours, pool)
    channel.bound = FETCH
    data = os.urandom(size)
    sender = threading.Thread(target=theirs.sendall, args=(struct.pack(">i", size) + data,))
    sender.start()
    frames: list[Any] = []
    deadline = time.monotonic() + 20
    while not frames and time.monotonic() < deadline:
        frames += channel.receive()
    sender.join()
    (frame,) = frames
    assert bytes(frame.view) == data
    assert pool.in_use >= size
    frame.release()
    assert pool.in_use == 0


# --- everything else that brokers answer ---------------------------------------------------------------


class Says:
    """A broker that answers ApiVersions, and then whatever it is given."""

    def __init__(self, frame: bytes, size: int | None = None) -> None:
        self.ours, self.theirs = socket.socketpair()
        versions = ApiVersionsResponse(
            error_code=0, api_keys=[ApiVersionsResponse.ApiVersion(api_key=3, min_version=0, max_version=12)]
        )
        versions.API_VERSION = 0
        versions.with_header(correlation_id=1)
        first = bytes(versions.encode(header=True))
        self.theirs.sendall(struct.pack(">i", len(first)) + first)
        self.theirs.sendall(struct.pack(">i", len(frame) if size is None else size) + frame)
        self.theirs.shutdown(socket.SHUT_WR)

    def ask(self) -> Any:
        return RpcConnection(self.ours, "client", 5.0).call(MetadataRequest(topics=None))

    def close(self) -> None:
        self.ours.close()
        self.theirs.close()


def metadata_answer() -> bytes:
    topic = MetadataResponse.MetadataResponseTopic
    answer = MetadataResponse(
        brokers=[MetadataResponse.MetadataResponseBroker(node_id=1, host="h", port=9092)],
        cluster_id="c",
        controller_id=1,
        topics=[
            topic(
                name="t",
                partitions=[
                    topic.MetadataResponsePartition(
                        partition_index=0, leader_id=1, replica_nodes=[1], isr_nodes=[1], offline_replicas=[]
                    )
                ],
            )
        ],
    )
    answer.API_VERSION = 12
    answer.with_header(correlation_id=2)
    return bytes(answer.encode(header=True))


def test_a_good_answer_is_read() -> None:
    broker = Says(metadata_answer())
    assert broker.ask().topics[0].name == "t"
    broker.close()


@brief
@given(st.data())
def test_damaged_answers_to_anything_else(data: st.DataObject) -> None:
    frame = damaged(metadata_answer(), data.draw)
    assume(frame != metadata_answer())
    broker = Says(frame)
    began = time.monotonic()
    try:
        with contextlib.suppress(BrokerUnreachable):
            broker.ask()
    finally:
        broker.close()
    assert time.monotonic() - began < 60


@pytest.mark.parametrize("size", [-1, 2**31 - 1])
def test_an_answer_of_an_absurd_size(size: int) -> None:
    broker = Says(b"x" * 100, size)
    with pytest.raises(BrokerUnreachable, match=f"an answer to Metadata of {size:,} bytes, and at most 67,108,864 are"):
        broker.ask()
    broker.close()


def test_an_answer_takes_memory_as_it_comes() -> None:
    broker = Says(b"x" * 100, ALL_METADATA)
    before = resident_mb()
    with pytest.raises(BrokerUnreachable, match="closed the connection"):
        broker.ask()
    assert resident_mb() - before < 16
    broker.close()
