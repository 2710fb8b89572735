"""A broker that means harm: it says that it is the only one of its cluster, and answers as it is told to."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from kafka.protocol.metadata import ApiVersionsResponse, FindCoordinatorResponse, MetadataRequest, MetadataResponse
from tests.support.schema_answers import KINDS

API_VERSIONS = 18
MB = 1 << 20


class Asked(NamedTuple):
    """One request, with the port that was dialed."""

    name: str
    """Kafka's name, as `Metadata`."""
    version: int
    correlation_id: int
    data: bytes
    port: int

    @property
    def kind(self) -> Any:
        return KINDS[f"{self.name}Response"]

    def head(self) -> bytes:
        """The header of the answer."""
        return struct.pack(">i", self.correlation_id) + bytes(int(self.kind.flexible_version_q(self.version)))


Answer = Callable[[Asked], Iterable[bytes] | None]
"""What is sent in answer, length and all; None for the honest answer."""


def framed(asked: Asked, body: bytes) -> bytes:
    head = asked.head()
    return struct.pack(">i", len(head) + len(body)) + head + body


def honest(asked: Asked, cluster_id: str | None = "hostile") -> bytes:
    """The answer of an empty cluster that knows every topic, with three partitions."""
    answer = asked.kind(version=asked.version)
    if asked.name == "Metadata":
        request = MetadataRequest.decode(asked.data, version=asked.version, header=True)
        topic = MetadataResponse.MetadataResponseTopic
        answer.brokers = [
            MetadataResponse.MetadataResponseBroker(version=asked.version, node_id=1, host="127.0.0.1", port=asked.port)
        ]
        answer.cluster_id, answer.controller_id = cluster_id, 1
        answer.topics = [
            topic(version=asked.version, name=wanted.name, partitions=[leads(asked.version, at) for at in range(3)])
            for wanted in request.topics or ()
        ]
    elif asked.name == "FindCoordinator":
        answer.node_id, answer.host, answer.port = 1, "127.0.0.1", asked.port
        answer.coordinators = [FindCoordinatorResponse.Coordinator(version=asked.version, key="g", node_id=1)]
    return framed(asked, bytes(answer.encode()))


def leads(version: int, partition: int, leader: int = 1) -> Any:
    return MetadataResponse.MetadataResponseTopic.MetadataResponsePartition(
        version=version,
        partition_index=partition,
        leader_id=leader,
        leader_epoch=0,
        replica_nodes=[leader],
        isr_nodes=[leader],
    )


class HostileBroker:
    """Listens while it is open; `answer` may be changed at any time."""

    def __init__(self, answer: Answer = lambda _: None) -> None:
        self.answer = answer
        self.asked: list[str] = []
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._serve, args=self._server.accept()[:1], daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError, struct.error), sock, sock.makefile("rb") as requests:
            while size := requests.read(4):
                data = requests.read(struct.unpack(">i", size)[0])
                key, version, correlation_id = struct.unpack_from(">hhi", data)
                if key == API_VERSIONS:
                    sock.sendall(_versions(version, correlation_id))
                    continue
                asked = Asked(NAMES[key], version, correlation_id, data, self.port)
                self.asked.append(asked.name)
                for piece in self.answer(asked) or [honest(asked)]:
                    sock.sendall(piece)

    def close(self) -> None:
        self._server.close()


NAMES = {kind.API_KEY: name.removesuffix("Response") for name, kind in KINDS.items()}


def _versions(version: int, correlation_id: int) -> bytes:
    api = ApiVersionsResponse.ApiVersion
    version = min(version, 3)
    answer = ApiVersionsResponse(
        error_code=0,
        api_keys=[
            api(version=version, api_key=kind.API_KEY, min_version=0, max_version=kind.max_version)
            for kind in KINDS.values()
        ],
    )
    answer.API_VERSION = version
    answer.with_header(correlation_id=correlation_id)
    body = bytes(answer.encode(header=True))
    return struct.pack(">i", len(body)) + body


def endless(asked: Asked, announced: int, piece: bytes) -> Iterator[bytes]:
    """An answer of so many bytes, and then more and more."""
    yield struct.pack(">i", announced) + asked.head()
    while True:
        yield piece
