"""The ListOffsets request and its answer, with kafka-python's own codecs as the other side."""

from __future__ import annotations

from typing import Any

import pytest
from kafka.protocol.consumer import ListOffsetsRequest, ListOffsetsResponse

from sparkmirror.kafka.wire.offsets_format import VERSIONS, OffsetsAsk, PartitionOffset, decode, encode
from sparkmirror.kafka.wire.primitives import Garbled

every_version = pytest.mark.parametrize("version", range(VERSIONS[0], VERSIONS[1] + 1))
ASK = OffsetsAsk(replica_id=-2, isolation_level=1, timestamp=-1, timeout_ms=12_345)


@every_version
def test_a_request_says_what_was_asked(version: int) -> None:
    sent = encode(version, 7, b"us->eu", ASK, {"orders": [0, 5], "grüße": [3]})
    read = ListOffsetsRequest.decode(sent, version=version, header=True)
    assert (read.header.correlation_id, read.header.client_id) == (7, "us->eu")
    assert (read.replica_id, read.isolation_level) == (-2, 1)
    asked = [(topic.name, part) for topic in read.topics for part in topic.partitions]
    assert [(name, part.partition_index) for name, part in asked] == [("orders", 0), ("orders", 5), ("grüße", 3)]
    assert {part.timestamp for _, part in asked} == {-1}
    if version >= 4:
        assert {part.current_leader_epoch for _, part in asked} == {-1}
    if version >= 10:
        assert read.timeout_ms == 12_345


def answer(version: int) -> bytes:
    kind = ListOffsetsResponse.ListOffsetsTopicResponse

    def part(index: int, error: int, offset: int) -> Any:
        return kind.ListOffsetsPartitionResponse(
            partition_index=index, error_code=error, timestamp=-1, offset=offset, leader_epoch=9
        )

    made = ListOffsetsResponse(
        throttle_time_ms=3,
        topics=[
            kind(name="orders", partitions=[part(0, 0, 2**40), part(5, 6, -1)]),
            kind(name="grüße", partitions=[part(3, 0, 0)]),
        ],
    )
    made.API_VERSION = version
    made.with_header(correlation_id=7)
    return bytes(made.encode(header=True))


@every_version
def test_an_answer_is_read_partition_by_partition(version: int) -> None:
    assert decode(version, memoryview(answer(version))) == [
        PartitionOffset("orders", 0, 0, 2**40),
        PartitionOffset("orders", 5, 6, -1),
        PartitionOffset("grüße", 3, 0, 0),
    ]


def test_tagged_fields_of_a_later_broker_are_passed_over() -> None:
    whole = answer(10)
    at = whole.index((2**40).to_bytes(8, "big")) + 8 + 4  # behind the first partition's leader epoch: its tags
    assert whole[at] == 0
    tagged = whole[:at] + bytes((1, 77, 2, 0xAB, 0xCD)) + whole[at + 1 :]
    assert decode(10, memoryview(tagged)) == decode(10, memoryview(whole))


@every_version
def test_a_cut_answer_is_an_error(version: int) -> None:
    whole = answer(version)
    for size in range(len(whole) - 1):  # the last byte may be the tags of the whole, which nobody needs
        with pytest.raises(Garbled):
            decode(version, memoryview(whole[:size]))
