"""Bounds of answers: what real clusters send is below them, and whatever is above ends the connection at once."""

from __future__ import annotations

import socket
import struct
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from kafka.protocol.admin import DescribeAclsResponse, ListGroupsRequest, ListGroupsResponse
from kafka.protocol.consumer import OffsetFetchRequest, OffsetFetchResponse
from kafka.protocol.metadata import ApiVersionsResponse, FindCoordinatorRequest, MetadataRequest, MetadataResponse

from sparkmirror.kafka.wire.answer_bounds import (
    ALL_METADATA,
    LARGEST_BATCH,
    LARGEST_PRODUCE,
    LISTING,
    AnswerBound,
    bound_of,
    fetch_bound,
    produce_bound,
    raw_bound,
)
from sparkmirror.kafka.wire.rpc import AnswerTooLarge, RpcConnection

MB = 1 << 20


def named(count: int) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=f"topic-{at}") for at in range(count)])


def test_bounds_grow_with_what_is_asked_for() -> None:
    sizes = [bound_of(named(count), 40 * count).bytes for count in (0, 1, 300)]
    assert sizes[0] == 2 * MB
    assert sizes[0] < sizes[1] < sizes[2] < ALL_METADATA
    assert bound_of(MetadataRequest(topics=None), 30).bytes == ALL_METADATA
    assert bound_of(FindCoordinatorRequest(coordinator_keys=["g"] * 250), 5000).bytes < MB
    assert fetch_bound(MB, 3).bytes > MB + LARGEST_BATCH
    assert produce_bound(1000).bytes < 2 * MB
    assert produce_bound(64 * MB).bytes == LARGEST_PRODUCE
    assert raw_bound(2, 1000).bytes < MB


def test_a_request_without_a_bound_is_not_sent() -> None:
    with pytest.raises(ValueError, match="no bound for the answer to request 77"):
        raw_bound(77, 10)


def size_of(entry: Any) -> int:
    """Bytes of one entry of an array of an answer."""
    return len(entry._struct.encode([entry], version=entry.version, compact=True, tagged=True)) - 1  # noqa: SLF001


def test_answers_of_large_clusters_are_below_their_bounds() -> None:
    """100,000 topics with ten partitions each, as many groups and ACLs; a group's offsets in 300,000 partitions."""
    topic = MetadataResponse.MetadataResponseTopic
    replicas = [101, 102, 103]
    partitions = [
        topic.MetadataResponsePartition(
            version=12, partition_index=at, leader_id=101, leader_epoch=7, replica_nodes=replicas, isr_nodes=replicas
        )
        for at in range(10)
    ]
    described = topic(version=12, name="n" * 60, topic_id=uuid.uuid4(), partitions=partitions)
    assert 45 * MB < 100_000 * size_of(described) < ALL_METADATA
    group = ListGroupsResponse.ListedGroup(
        version=5, group_id="n" * 60, protocol_type="consumer", group_state="Stable", group_type="classic"
    )
    assert 100_000 * size_of(group) < LISTING
    resource = DescribeAclsResponse.DescribeAclsResource
    acl = resource.AclDescription(version=3, principal="User:" + "n" * 30, host="*", operation=3, permission_type=3)
    alone = resource(version=3, resource_type=2, resource_name="n" * 60, pattern_type=3, acls=[acl])
    assert 100_000 * size_of(alone) < LISTING
    fetched = OffsetFetchResponse.OffsetFetchResponseGroup.OffsetFetchResponseTopics
    place = fetched.OffsetFetchResponsePartitions(
        version=9, partition_index=3, committed_offset=10**12, committed_leader_epoch=5, metadata="", error_code=0
    )
    assert 300_000 * size_of(place) < LISTING


def test_the_reason_has_the_request_both_sizes_and_a_remedy() -> None:
    why = bound_of(MetadataRequest(topics=None), 30).excess(1 << 28)
    assert why == (
        "an answer to Metadata of 268,435,456 bytes, and at most 67,108,864 are read: "
        "give sparkmirror's principal DESCRIBE on fewer topics"
    )
    assert bound_of(ListGroupsRequest(), 30).excess(1 << 28) == (
        "an answer to ListGroups of 268,435,456 bytes, and at most 12,582,912 are read: "
        "give sparkmirror's principal DESCRIBE on fewer groups"
    )
    assert AnswerBound("Fetch", 5).excess(6) == (
        "an answer to Fetch of 6 bytes, and at most 5 are read: check that this is a Kafka broker"
    )
    assert AnswerBound("Fetch", 5).excess(-1) is not None
    assert AnswerBound("Fetch", 5).excess(5) is None


# --- connections --------------------------------------------------------------------------------------


class Announcing:
    """A broker that answers ApiVersions, and announces answers of a size to all else, of which nothing comes."""

    def __init__(self, size: int) -> None:
        self.ours, self.theirs = socket.socketpair()
        api = ApiVersionsResponse.ApiVersion
        versions = ApiVersionsResponse(
            error_code=0, api_keys=[api(api_key=key, min_version=0, max_version=8) for key in (1, 3, 9)]
        )
        versions.API_VERSION = 0
        versions.with_header(correlation_id=1)
        first = bytes(versions.encode(header=True))
        self.theirs.sendall(struct.pack(">i", len(first)) + first + struct.pack(">i", size))

    def connection(self) -> RpcConnection:
        return RpcConnection(self.ours, "client", 5.0, host="b1.example")

    def close(self) -> None:
        self.ours.close()
        self.theirs.close()


@pytest.fixture
def announcing() -> Iterator[Announcing]:
    broker = Announcing(3 * MB)
    yield broker
    broker.close()


def test_a_larger_answer_ends_the_connection(announcing: Announcing) -> None:
    connection = announcing.connection()
    with pytest.raises(
        AnswerTooLarge, match=r"^b1.example: an answer to Metadata of 3,145,728 bytes, and at most 2,16"
    ):
        connection.call(named(1))
    assert announcing.ours.fileno() == -1


def test_a_raw_answer_has_the_bound_it_is_given(announcing: Announcing) -> None:
    with pytest.raises(AnswerTooLarge, match="an answer to Fetch of 3,145,728 bytes, and at most 1,000 are read"):
        announcing.connection().exchange_raw([struct.pack(">hhi", 1, 12, 0)], AnswerBound("Fetch", 1000))


def test_an_answer_within_its_bound_is_waited_for(announcing: Announcing) -> None:
    announcing.theirs.shutdown(socket.SHUT_WR)
    with pytest.raises(ConnectionError, match="closed the connection"):
        announcing.connection().call(OffsetFetchRequest(group_id="g", topics=None), newest=7)
