"""The Produce request and its answer, with kafka-python's own codecs as the other side."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.protocol.producer import ProduceRequest, ProduceResponse

from sparkmirror.kafka.wire.primitives import Garbled
from sparkmirror.kafka.wire.produce import BY_ID_FROM, VERSIONS, Ack, produce_request, read_answer, topic_field

modest = settings(max_examples=80, deadline=None)

Topic = tuple[str, bytes]
Topics = dict[Topic, dict[int, bytes]]

versions = st.integers(*VERSIONS)
names = st.text("abcxyz.-_019", min_size=1, max_size=249)
topics = st.lists(
    st.tuples(names, st.binary(min_size=16, max_size=16).filter(any)),
    max_size=4,
    unique_by=(lambda one: one[0], lambda one: one[1]),
)
partitions = st.integers(0, 2**31 - 1)


def fields(version: int, asked: Topics) -> dict[bytes, dict[int, memoryview]]:
    return {
        topic_field(version, name, topic_id): {index: memoryview(batch) for index, batch in batches.items()}
        for (name, topic_id), batches in asked.items()
    }


def who(version: int, topic: Any) -> Any:
    """What a decoded message names a topic by in this version."""
    return topic.topic_id.bytes if version >= BY_ID_FROM else topic.name


# --- out ----------------------------------------------------------------------------------------------


@modest
@given(
    versions,
    st.integers(-(2**31), 2**31 - 1),
    st.text(max_size=30),
    st.integers(0, 2**31 - 1),
    topics.flatmap(
        lambda which: st.fixed_dictionaries(
            {topic: st.dictionaries(partitions, st.binary(max_size=300), min_size=1, max_size=4) for topic in which}
        )
    ),
)
def test_a_broker_reads_what_was_meant(
    version: int, correlation_id: int, client_id: str, timeout_ms: int, asked: Topics
) -> None:
    sent = b"".join(produce_request(version, correlation_id, client_id.encode(), timeout_ms, fields(version, asked)))
    read = ProduceRequest.decode(sent, version=version, header=True)
    head = read.header
    assert (head.request_api_key, head.request_api_version) == (0, version)
    assert (head.correlation_id, head.client_id) == (correlation_id, client_id)
    assert (read.transactional_id, read.acks, read.timeout_ms) == (None, -1, timeout_ms)
    assert [
        (who(version, topic), [(part.index, bytes(part.records)) for part in topic.partition_data])
        for topic in read.topic_data
    ] == [
        (topic_id if version >= BY_ID_FROM else name, list(batches.items()))
        for (name, topic_id), batches in asked.items()
    ]
    assert read.encode(version=version, header=True) == sent


@pytest.mark.parametrize("version", range(VERSIONS[0], VERSIONS[1] + 1))
@pytest.mark.parametrize("size", [126, 127, 128, 16382, 16383, 16384, 2097151])
def test_every_length_of_a_length_is_right(version: int, size: int) -> None:
    asked = {("orders", b"i" * 16): {0: bytes(size), 1: b"next"}}
    sent = b"".join(produce_request(version, 1, b"us", 30_000, fields(version, asked)))
    (topic,) = ProduceRequest.decode(sent, version=version, header=True).topic_data
    assert [(part.index, len(part.records)) for part in topic.partition_data] == [(0, size), (1, 4)]


def test_batches_are_sent_where_they_lie() -> None:
    batch = memoryview(bytearray(b"a batch"))
    sent = produce_request(13, 1, b"us", 30_000, {b"i" * 16: {0: batch}})
    assert any(buffer is batch for buffer in sent)


# --- back ---------------------------------------------------------------------------------------------

errors = st.sampled_from([0, 3, 6, 7, 19, 32, 45, 87, 100, -1])
offsets = st.integers(-1, 2**63 - 1)
texts = st.none() | st.text(max_size=40)
acks = st.tuples(
    partitions,
    errors,
    offsets,
    offsets,
    st.lists(st.tuples(st.integers(0, 2**31 - 1), texts), max_size=3),
    texts,
    st.none() | st.tuples(st.integers(-1, 9), st.integers(-1, 99)),
)
TopicAnswer = ProduceResponse.TopicProduceResponse
PartitionAnswer = TopicAnswer.PartitionProduceResponse


def encoded(response: Any, version: int, correlation_id: int = 1) -> memoryview:
    response.API_VERSION = version
    response.with_header(correlation_id=correlation_id)
    return memoryview(response.encode(header=True))


def partition_answer(ack: Any) -> Any:
    index, error, base_offset, append_time, record_errors, message, leader = ack
    return PartitionAnswer(
        index=index,
        error_code=error,
        base_offset=base_offset,
        log_append_time_ms=append_time,
        log_start_offset=base_offset // 2,
        record_errors=[
            PartitionAnswer.BatchIndexAndErrorMessage(batch_index=at, batch_index_error_message=said)
            for at, said in record_errors
        ],
        error_message=message,
        current_leader=PartitionAnswer.LeaderIdAndEpoch(leader_id=leader[0], leader_epoch=leader[1])
        if leader
        else None,
    )


@modest
@given(
    versions,
    st.integers(-(2**31), 2**31 - 1),
    st.integers(0, 2**31 - 1),
    topics.flatmap(lambda which: st.tuples(*(st.tuples(st.just(one), st.lists(acks, max_size=4)) for one in which))),
    st.lists(st.tuples(st.integers(0, 9), st.text(max_size=20), texts), max_size=3),
)
def test_an_answer_is_read_as_the_broker_meant_it(
    version: int, correlation_id: int, throttle_ms: int, answered: Any, nodes: list[tuple[int, str, str | None]]
) -> None:
    """With all that newer brokers add in tagged fields: the new leader, and where it is (KIP-951)."""
    response = ProduceResponse(
        throttle_time_ms=throttle_ms,
        responses=[
            TopicAnswer(
                name=name,
                topic_id=uuid.UUID(bytes=topic_id),
                partition_responses=[partition_answer(one) for one in given_],
            )
            for (name, topic_id), given_ in answered
        ],
        node_endpoints=[
            ProduceResponse.NodeEndpoint(node_id=node, host=host, port=9092, rack=rack) for node, host, rack in nodes
        ],
    )
    assert read_answer(version, encoded(response, version, correlation_id)) == (
        correlation_id,
        [
            Ack(
                (topic_field(version, name, topic_id), index),
                error,
                base_offset,
                append_time,
                tuple((at, said or "") for at, said in record_errors) if version >= 8 else (),
                (message or "") if version >= 8 else "",
            )
            for (name, topic_id), given_ in answered
            for index, error, base_offset, append_time, record_errors, message, _ in given_
        ],
        throttle_ms,
    )


@pytest.mark.parametrize("version", range(VERSIONS[0], VERSIONS[1] + 1))
def test_a_cut_off_answer_is_not_taken_for_a_whole_one(version: int) -> None:
    ack = (3, 87, -1, -1, [(7, "no key")], "refused", None)
    response = ProduceResponse(
        throttle_time_ms=1,
        responses=[TopicAnswer(name="orders", topic_id=uuid.UUID(int=5), partition_responses=[partition_answer(ack)])],
    )
    frame = encoded(response, version)
    assert len(read_answer(version, frame)[1]) == 1
    for end in range(len(frame) - (version >= 9)):  # the last byte counts tagged fields, which nobody reads
        with pytest.raises(Garbled):
            read_answer(version, frame[:end])


def test_an_ack_is_found_by_the_key_that_was_sent() -> None:
    """Whatever the version, what stands for the topic in the request stands for it in the answer."""
    for version in range(VERSIONS[0], VERSIONS[1] + 1):
        field = topic_field(version, "orders", b"i" * 16)
        response = ProduceResponse(
            responses=[
                TopicAnswer(
                    name="orders",
                    topic_id=uuid.UUID(bytes=b"i" * 16),
                    partition_responses=[partition_answer((3, 0, 5, -1, [], None, None))],
                )
            ]
        )
        _, (ack,), _ = read_answer(version, encoded(response, version))
        assert ack.key == (field, 3)
