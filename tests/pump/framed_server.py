"""A TCP server of length-prefixed frames, in the place of a broker."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable


class FramedServer:
    """Gives each request's answer, one connection's requests in order.

    `answer` gets the request and the port of the connection's other end, and returns the answer without its length.
    """

    def __init__(self, answer: Callable[[bytes, int], bytes]) -> None:
        self._answer = answer
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._serve, args=self._server.accept(), daemon=True).start()

    def _serve(self, sock: socket.socket, address: tuple[str, int]) -> None:
        with contextlib.suppress(OSError, ValueError), sock, sock.makefile("rb") as requests:
            while size := requests.read(4):
                data = self._answer(requests.read(struct.unpack(">i", size)[0]), address[1])
                sock.sendall(struct.pack(">i", len(data)) + data)

    def close(self) -> None:
        self._server.close()
