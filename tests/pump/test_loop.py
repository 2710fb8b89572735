"""A pump's event loop: who is called, when, and in what order."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from sparkmirror.clock import now_s
from sparkmirror.kafka.wire.answer_bounds import fetch_bound
from sparkmirror.kafka.wire.buffers import FramePool
from sparkmirror.kafka.wire.channel import Channel
from sparkmirror.pump.loop import SUSPENDED_S, Loop


class Clock:
    """The loop's clock, which a test may move."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return now_s() + self.ahead


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def loop(clock: Clock) -> Iterator[Loop]:
    made = Loop(clock)
    yield made
    made.close()


class Watching:
    """A channel, the peer's end of it, and what its owner is told."""

    def __init__(self, loop: Loop) -> None:
        self.told: list[str] = []
        ours, self.peer = socket.socketpair()
        self.channel = Channel(ours, FramePool(1, 0))
        self.channel.bound = fetch_bound(0, 1)
        loop.watch(self.channel, self)

    def on_readable(self) -> None:
        self.told.append("readable")
        for frame in self.channel.receive():
            frame.release()

    def on_writable(self) -> None:
        self.told.append("writable")

    def close(self) -> None:
        self.channel.close()
        self.peer.close()


@pytest.fixture
def watching(loop: Loop) -> Iterator[Watching]:
    made = Watching(loop)
    yield made
    made.close()


# --- sockets ------------------------------------------------------------------------------------------


def test_a_watcher_is_told_what_it_wants_to_know(loop: Loop, watching: Watching) -> None:
    loop.turn(0)
    assert watching.told == []
    watching.peer.sendall(b"\0")
    loop.turn(1)
    assert watching.told == ["readable"]
    loop.want_write(watching.channel, watching, True)
    loop.want_write(watching.channel, watching, True)
    loop.turn(1)
    assert watching.told == ["readable", "writable"]
    loop.want_write(watching.channel, watching, False)
    loop.turn(0)
    loop.unwatch(watching.channel)
    watching.peer.sendall(b"\0")
    loop.turn(0)
    assert watching.told == ["readable", "writable"]


# --- timers -------------------------------------------------------------------------------------------


def test_timers_go_off_in_order_and_not_before_their_time(loop: Loop, clock: Clock) -> None:
    told: list[str] = []
    soon = clock() + 1
    loop.at(soon + 0.1, lambda: told.append("third"))
    loop.at(soon, lambda: told.append("first"))
    loop.at(soon, lambda: told.append("second"))
    loop.turn(0)
    assert told == []
    clock.ahead += 1.05
    loop.turn(0)
    assert told == ["first", "second"]
    clock.ahead += 0.1
    loop.turn(0)
    assert told == ["first", "second", "third"]


def test_a_turn_waits_no_longer_than_the_next_timer(loop: Loop) -> None:
    told: list[float] = []
    loop.at(loop.now + 0.05, lambda: told.append(loop.now))
    started = time.monotonic()
    while not told:
        loop.turn(60)
    assert time.monotonic() - started < 50


# --- messages from other threads ----------------------------------------------------------------------


def test_a_message_wakes_the_loop(loop: Loop) -> None:
    told: list[int] = []
    thread = threading.Timer(0.05, lambda: loop.post(lambda: told.append(threading.get_ident())))
    thread.start()
    started = time.monotonic()
    while not told:
        loop.turn(60)
    thread.join()
    assert time.monotonic() - started < 50
    assert told == [threading.get_ident()]


def test_more_messages_than_the_pipe_holds(loop: Loop) -> None:
    told: list[int] = []
    count = (1 << 16) + 5000  # a byte each; a pipe holds 64 KiB
    for number in range(count):
        loop.post(lambda number=number: told.append(number))  # type: ignore[misc]
    loop.turn(60)  # it may have taken seconds, which is no suspension then
    assert told == list(range(count))


def test_a_message_may_send_another(loop: Loop) -> None:
    told: list[str] = []
    loop.post(lambda: loop.post(lambda: told.append("second")))
    loop.turn(0)
    assert told == ["second"]


def test_a_late_message_goes_nowhere() -> None:
    """A helper thread may finish after the loop is closed: it must not write into what has the pipe's number now."""
    loop = Loop()
    loop.close()
    pairs = [socket.socketpair() for _ in range(4)]
    loop.post(lambda: None)
    ends = [end for pair in pairs for end in pair]
    for end in ends:
        end.setblocking(False)
        with pytest.raises(BlockingIOError):
            end.recv(1)
    for end in ends:
        end.close()


# --- a process that was stopped (R6) ------------------------------------------------------------------


def test_a_turn_after_a_stop_only_tells_that_there_was_one(loop: Loop, clock: Clock, watching: Watching) -> None:
    told: list[str] = []
    loop.on_suspended.append(lambda busy: told.append(f"suspended {busy}"))
    loop.on_suspended.append(lambda busy: told.append("suspended too"))
    loop.at(loop.now, lambda: told.append("timer"))
    loop.post(lambda: told.append("message"))
    loop.want_write(watching.channel, watching, True)
    watching.peer.sendall(b"\0")
    clock.ahead += 0.2 + SUSPENDED_S
    loop.turn(0.1)
    assert told == ["suspended False", "suspended too"]
    assert watching.told == []
    loop.turn(0.1)
    assert told == ["suspended False", "suspended too", "message", "timer"]
    assert watching.told == ["writable", "readable"]


def test_a_turn_full_of_work_is_not_taken_for_a_stop(loop: Loop, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """One batch of many small records may take that long: what was sent before it is answered as ever."""
    told: list[bool | str] = []
    loop.on_suspended.append(told.append)
    loop.turn(0)
    used = time.process_time
    monkeypatch.setattr(time, "process_time", lambda: used() + 3)
    loop.post(lambda: told.append("message"))
    clock.ahead += 3 + SUSPENDED_S * 0.9
    loop.turn(0)
    assert told == [True, "message"]


def test_a_slow_turn_is_no_stop(loop: Loop, clock: Clock) -> None:
    told: list[str] = []
    loop.on_suspended.append(lambda busy: told.append("suspended"))
    loop.at(loop.now, lambda: told.append("timer"))
    clock.ahead += SUSPENDED_S * 0.9
    loop.turn(0.1)
    assert told == ["timer"]


def test_now_is_the_beginning_of_the_turn(loop: Loop, clock: Clock) -> None:
    before = loop.now
    clock.ahead += 1
    assert loop.now == before
    loop.turn(0)
    assert before + 1 <= loop.now <= clock()
