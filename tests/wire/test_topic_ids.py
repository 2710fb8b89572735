"""Topics go by their ids wherever the broker can read ids: in Produce (R17) and in Fetch."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterator

import pytest
from kafka.protocol.consumer import FetchRequest
from kafka.protocol.metadata import ApiVersionsResponse
from kafka.protocol.producer import ProduceRequest

from sparkmirror.kafka.wire import fetch_session as fetch
from sparkmirror.kafka.wire import produce
from sparkmirror.kafka.wire.fetch_session import FetchPosition, FetchSession
from sparkmirror.kafka.wire.produce import produce_request, topic_field
from sparkmirror.kafka.wire.rpc import RpcConnection

TOPIC, TOPIC_ID = "orders", b"the id of orders"


@contextlib.contextmanager
def speaking(api_key: int, newest: int) -> Iterator[RpcConnection]:
    """A connection to a broker whose newest version of one request is this."""
    ours, broker = socket.socketpair()
    api = ApiVersionsResponse.ApiVersion(api_key=api_key, min_version=0, max_version=newest)
    response = ApiVersionsResponse(error_code=0, api_keys=[api])
    response.API_VERSION = 0
    response.with_header(correlation_id=1)
    data = bytes(response.encode(header=True))
    broker.sendall(struct.pack(">i", len(data)) + data)
    with ours, broker:
        yield RpcConnection(ours, "us", 5.0)


@pytest.mark.parametrize(("newest", "spoken"), [(9, 9), (12, 12), (13, 13), (14, 13)])
def test_produce_names_a_topic_by_its_id_where_the_broker_reads_ids(newest: int, spoken: int) -> None:
    """Else a topic that is created again under the same name would get the old one's batches."""
    with speaking(produce.API_KEY, newest) as connection:
        version = connection.version(produce.API_KEY, produce.VERSIONS, "Produce")
    assert version == spoken
    batches = {topic_field(version, TOPIC, TOPIC_ID): {0: memoryview(b"a batch")}}
    sent = b"".join(produce_request(version, 1, b"us", 1000, batches))
    (topic,) = ProduceRequest.decode(sent, version=version, header=True).topic_data
    if newest >= 13:
        assert topic.topic_id.bytes == TOPIC_ID
        assert TOPIC.encode() not in sent.replace(TOPIC_ID, b"")
    else:
        assert topic.name == TOPIC
        assert TOPIC_ID not in sent


@pytest.mark.parametrize(("newest", "spoken"), [(12, 12), (13, 13), (15, 15), (16, 16), (18, 16)])
def test_fetch_names_a_topic_by_its_id_where_the_broker_reads_ids(newest: int, spoken: int) -> None:
    with speaking(fetch.API_KEY, newest) as connection:
        version = connection.version(fetch.API_KEY, fetch.VERSIONS, "Fetch")
    assert version == spoken
    session = FetchSession(
        version, client_id="us", max_wait_ms=500, min_bytes=1, max_bytes=1000, partition_max_bytes=1000
    )
    session.want(TOPIC, TOPIC_ID, 0, FetchPosition(0, 0, 0))
    sent = session.request(1)
    (topic,) = FetchRequest.decode(sent, version=version, header=True).topics
    if newest >= 13:
        assert topic.topic_id.bytes == TOPIC_ID
        assert TOPIC.encode() not in sent.replace(TOPIC_ID, b"")
    else:
        assert topic.topic == TOPIC
        assert TOPIC_ID not in sent
