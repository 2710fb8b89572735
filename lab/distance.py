"""A line of any length on 127.0.0.1 before one or several servers.

    with DistanceProxy({near_port: broker.port}, Distance(round_trip_ms=100)) as proxy:
        proxy.become(Distance(round_trip_ms=250, bytes_per_s=50e6))

`relay` passes the bytes on in a separate process, whose CPU time is therefore separate. `proxy` breaks the network on
demand.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, Self

from lab import relay
from lab.relay import Distance
from sparkmirror.errors import SetupError

__all__ = ["Distance", "DistanceProxy", "Traffic"]

_STOP_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Traffic:
    """Reading of a line: open connections, bytes under way, bytes delivered."""

    connections: int
    in_flight: int
    passed: int


class DistanceProxy:
    """Process that listens on the keys in `routes` and connects to the values.

    Keys and values are ports. As a context the proxy runs, and is closed at the end; if this process ends, the proxy
    ends, too. All methods may be called from any thread.
    """

    def __init__(self, routes: Mapping[int, int], distance: Distance) -> None:
        self._routes = dict(routes)
        self._distance = distance
        self._child: subprocess.Popen[str] | None = None
        self._ordering = threading.Lock()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def ports(self) -> tuple[int, ...]:
        """Ports at the near end, in the order of `routes`."""
        return tuple(self._routes)

    @property
    def distance(self) -> Distance:
        """The line's present length and quality."""
        return self._distance

    @property
    def pid(self) -> int:
        """Process id; RuntimeError if the proxy does not run."""
        return self._running().pid

    def start(self) -> None:
        """Listen and pass on, unless the proxy runs.

        Raises SetupError if this machine can't: it takes Linux, and free ports.
        """
        if self._child is not None:
            return
        if not sys.platform.startswith("linux"):
            raise SetupError(f"a line of some length can be played on Linux only, and this is {sys.platform}")
        self._child = subprocess.Popen(
            [sys.executable, "-I", "-S", relay.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # a Ctrl-C at the terminal ends this process first, which ends the proxy
        )
        try:
            self._order({"routes": self._routes, "distance": asdict(self._distance)})
        except RuntimeError as error:
            self.close()
            ports = ", ".join(map(str, self._routes))
            raise SetupError(f"no line could be played on ports {ports}; its process says why") from error

    def close(self) -> None:
        """Reset all connections and stop listening.

        Does nothing if the proxy does not run.
        """
        if self._child is None:
            return
        with suppress(RuntimeError):
            self.lose_connections()
        child, self._child = self._child, None
        child.kill()
        child.communicate(timeout=_STOP_TIMEOUT_S)

    def become(self, distance: Distance) -> None:
        """Change length and quality for all later bytes."""
        self._order({"distance": asdict(distance)})
        self._distance = distance

    def lose_connections(self) -> None:
        """Reset all connections (RST) once, and drop the bytes under way.

        New connections are served."""
        self._order({"lose": True})

    def traffic(self) -> Traffic:
        """Return the line's reading."""
        return Traffic(**self._order({}))

    def _order(self, order: Mapping[str, object]) -> Any:
        """Have the process carry out an order, and return the answer.

        Raises RuntimeError if the process has ended.
        """
        with self._ordering:
            child = self._running()
            assert child.stdin is not None and child.stdout is not None  # noqa: S101, PT018 - they were asked for
            try:
                child.stdin.write(json.dumps(order) + "\n")
                child.stdin.flush()
            except BrokenPipeError:
                answer = ""
            else:
                answer = child.stdout.readline()
        if not answer:
            raise RuntimeError(f"the line's process ended with {child.wait(_STOP_TIMEOUT_S)}")
        return json.loads(answer)

    def _running(self) -> subprocess.Popen[str]:
        if self._child is None:
            raise RuntimeError("the line is not played")
        return self._child
