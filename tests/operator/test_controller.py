"""Who has a turn when."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import closing

from sparkmirror.operator.controller import Controller
from sparkmirror.operator.kube import KubeRefused
from sparkmirror.operator.names import Key
from sparkmirror.operator.turn_settings import Memory

A, B = Key("x", "a"), Key("y", "b")


def until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + 10
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_a_slow_one_holds_up_no_other() -> None:
    hold, taken = threading.Event(), []

    def take(key: Key, _: Memory) -> bool:
        if key == A:
            hold.wait(10)
        taken.append(key)
        return True

    with closing(Controller(take)) as controller:
        controller.due(A)
        controller.due(B)
        until(lambda: B in taken)
        assert A not in taken
        hold.set()


def test_turns_come_again_sooner_where_something_is_wrong() -> None:
    counts = {A: 0, B: 0}

    def take(key: Key, _: Memory) -> bool:
        counts[key] += 1
        return key == A

    with closing(Controller(take, calm_s=60, busy_s=0.01)) as controller:
        controller.due(A)
        controller.due(B)
        until(lambda: counts[B] > 3)
        assert counts[A] == 1
        controller.due(A)
        until(lambda: counts[A] == 2)
        controller.forget(B)
        time.sleep(0.05)
        so_far = counts[B]
        time.sleep(0.05)
        assert counts[B] == so_far


def test_it_continues_after_failures_and_counts_them() -> None:
    errors = [KubeRefused(500, "away"), RuntimeError("bug")]

    def take(key: Key, _: Memory) -> bool:
        if errors:
            raise errors.pop()
        done.set()
        return True

    done = threading.Event()
    with closing(Controller(take, busy_s=0.01)) as controller:
        controller.due(A)
        assert done.wait(10)
        until(lambda: controller.counts == (3, 2))
