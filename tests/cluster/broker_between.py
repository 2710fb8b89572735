"""A broker between clients and a real one, which answers a request in its own way as long as it is told to."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections import Counter
from typing import Any

from hostile_broker import API_VERSIONS, NAMES, Answer, Asked


class BrokerBetween:
    """Passes on each request to the broker's port, and what `answer` does not answer."""

    def __init__(self, port: int, brokers_port: int, answer: Answer = lambda _: None) -> None:
        self.answer = answer
        self.asked: Counter[str] = Counter()
        self.altered: Counter[str] = Counter()
        """Requests that `answer` has answered."""
        self._brokers_port = brokers_port
        self._server = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._serve, args=self._server.accept()[:1], daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        with (
            contextlib.suppress(OSError, ValueError, struct.error),
            sock,
            socket.create_connection(("127.0.0.1", self._brokers_port)) as broker,
            sock.makefile("rb") as requests,
            broker.makefile("rb") as answers,
        ):
            while size := requests.read(4):
                data = requests.read(struct.unpack(">i", size)[0])
                key, version, correlation_id = struct.unpack_from(">hhi", data)
                asked = Asked(NAMES.get(key, str(key)), version, correlation_id, data, self._brokers_port)
                self.asked[asked.name] += 1
                # ApiVersions has a header of its own; what kafka-python can't read is not altered either.
                alterable = key in NAMES and key != API_VERSIONS
                pieces: Any = self.answer(asked) if alterable else None
                if pieces is not None:
                    self.altered[asked.name] += 1
                    for piece in pieces:
                        sock.sendall(piece)
                    continue
                broker.sendall(size + data)
                length = answers.read(4)
                sock.sendall(length + answers.read(struct.unpack(">i", length)[0]))

    def close(self) -> None:
        self._server.close()
