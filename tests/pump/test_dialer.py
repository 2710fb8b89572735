"""Connections that are made for a pump's loop, which never waits for one of them."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.kafka.wire.buffers import FramePool
from sparkmirror.pump.dialer import Dialer
from sparkmirror.pump.loop import Loop


class LongLine:
    """A stand-in for a connection to a broker that seems far, so that its round trip is measured once more."""

    round_trip_s = 0.05
    renewal_due = False

    def __init__(self, near: socket.socket) -> None:
        self.socket = near
        self.measured = 0

    def version(self, *_: object) -> int:
        return 13

    def ask_versions(self) -> None:
        """As a blocking request does."""
        self.socket.settimeout(10.0)
        self.measured += 1


@pytest.fixture
def loop() -> Iterator[Loop]:
    made = Loop()
    yield made
    made.close()


@pytest.mark.parametrize("side", ["source", "target"])
def test_the_loop_does_not_wait_for_a_broker_that_seems_far(loop: Loop, side: str) -> None:
    near, far = socket.socketpair()
    line = LongLine(near)
    client = cast("Any", SimpleNamespace(dial=lambda *_, **__: line, client_id="us"))
    source, target = (ClusterConfig(alias=alias, bootstrap_servers=("127.0.0.1:1",)) for alias in "AB")
    dialer = Dialer(FlowConfig(source=source, target=target), loop, client, client, FramePool(1 << 16, keep=1))
    made: list[object] = []
    connection = cast(
        "Any",
        SimpleNamespace(
            lane=SimpleNamespace(broker=1), broker=1, connected=lambda *given: made.extend(given), failed=made.append
        ),
    )
    (dialer.dial_source if side == "source" else dialer.dial_target)(connection)
    deadline = time.monotonic() + 10
    while not made and time.monotonic() < deadline:
        loop.turn(0.05)
    assert (line.measured, made[-1]) == (1, 0.05)
    assert near.gettimeout() == 0.0
    dialer.close()
    near.close()
    far.close()
