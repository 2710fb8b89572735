"""Ask a broker, over the wire, which brokers it knows in its cluster."""

from __future__ import annotations

import socket

from kafka.protocol.metadata import MetadataRequest, MetadataResponse

_VERSION = 1
"""Metadata version that every Kafka from 0.10 on speaks."""


def brokers_known_to(port: int, *, timeout_s: float = 2.0) -> frozenset[int]:
    """Return the node ids that the broker at 127.0.0.1:`port` lists.

    Empty if the broker does not answer. A broker is listed when it is registered and caught up, so it can serve.
    """
    request = MetadataRequest(version=_VERSION, topics=[])
    request.with_header(correlation_id=1, client_id="sparkmirror-demo")
    try:
        with socket.create_connection(("127.0.0.1", port), timeout_s) as connection:
            connection.sendall(request.encode(framed=True, header=True))
            answer = connection.makefile("rb")
            size = int.from_bytes(answer.read(4), "big")
            frame = answer.read(size)
    except OSError:
        return frozenset()
    if not size or len(frame) < size:  # the broker hung up: it is shutting down
        return frozenset()
    response = MetadataResponse.decode(memoryview(frame), version=_VERSION, header=True)
    return frozenset(broker.node_id for broker in response.brokers)
