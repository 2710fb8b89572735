"""A client of Spark's ports that has no secret, as any user of the machine can be."""

from __future__ import annotations

import socket
import struct
from contextlib import suppress

_PATIENCE_S = 5.0
_CHUNK_REQUEST, _CHUNK, _RPC, _RPC_ANSWER = 0, 1, 3, 4
"""Message types of Spark's wire format, `org.apache.spark.network.protocol.Message`."""

_OPEN_BLOCKS = 0
"""Type of the RPC that asks a block manager for blocks, `org.apache.spark.network.shuffle.protocol`."""


def fetched(port: int, block: str) -> bytes:
    """A block of the block manager at this port; empty if the port gives none, or is another one's."""
    with socket.create_connection(("127.0.0.1", port), _PATIENCE_S) as line:
        ask = bytes([_OPEN_BLOCKS]) + _text("app") + _text("driver") + struct.pack(">i", 1) + _text(block)
        kind, answer = _answer(line, _RPC, struct.pack(">qi", 1, len(ask)) + ask)
        if kind != _RPC_ANSWER:
            return b""
        stream = answer[8 + 4 + 1 :][:8]
        kind, answer = _answer(line, _CHUNK_REQUEST, stream + struct.pack(">i", 0))
        return answer[8 + 4 :] if kind == _CHUNK else b""


def deserialized(port: int) -> str:
    """What the RPC port says to the beginning of a serialized Java object, which ends too soon."""
    with socket.create_connection(("127.0.0.1", port), _PATIENCE_S) as line:
        java = b"\x00\x00\x00\x01x\xac\xed\x00\x05sr"  # of no sender, to x at no address
        return _answer(line, _RPC, struct.pack(">qi", 1, len(java)) + java)[1].decode(errors="replace")


def _text(words: str) -> bytes:
    return struct.pack(">i", len(words)) + words.encode()


def _answer(line: socket.socket, kind: int, message: bytes) -> tuple[int, bytes]:
    """The type and content of the next message; -1 and nothing if there comes none."""
    with suppress(OSError):
        line.sendall(struct.pack(">qb", 8 + 1 + len(message), kind) + message)
        answers = line.makefile("rb")
        head = answers.read(8 + 1)
        if len(head) == 8 + 1:
            (size,) = struct.unpack(">q", head[:8])
            return head[8], answers.read(size - 8 - 1)
    return -1, b""
