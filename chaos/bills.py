"""`topics done` in the midst of writing, then `topics undo`: what is said of the records that came too late.

One thread writes tiny records to `bills` all the time, as a writer does that was forgotten. The word is given, and the
writing ends some seconds later. Of the copy and of the lag, then, these must be true:

- What came to the source long after the word is not in the copy.
- The number of late records is that of the source's which the copy lacks.
- With late records the flow has not caught up, whatever other topics do.
"""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
import threading
import time
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any, NamedTuple

from kafka import TopicPartition

from chaos.arena import NoVictim
from chaos.history import BILL
from chaos.mirror import STEADY, remote
from chaos.onlookers import fetched
from chaos.replicas import log_ends, replicas
from chaos.words import FLOW, FalseWords
from chaos.world import World

_BEFORE_S = 5.0
_HEARD_S = 15.0
"""So long after the word a record may come that is copied all the same."""
_LONG_AFTER_S = 4.0
"""For so long it is written on then."""
_COMMAND_TIMEOUT_S = 60.0
_COPIED_TIMEOUT_S = 120.0
_SAID_TIMEOUT_S = 120.0
_REPORTED_S = 40.0
_POLL_S = 0.5
_NOTHING_MATCHES = 2


class Sides(NamedTuple):
    """Ends by partition: as noted by the word, of the copy, and of the source."""

    noted: Mapping[int, int]
    copy: Mapping[int, int]
    source: Mapping[int, int]

    def late(self) -> dict[int, int]:
        """Return how many records came after the word and were not copied, by partition."""
        return {
            partition: late
            for partition, end in self.source.items()
            if (late := end - max(self.noted[partition], self.copy[partition])) > 0
        }


class Told(NamedTuple):
    """What a snapshot says of the flow and the topic."""

    at_ms: int
    state: str
    released: bool
    late: Mapping[int, int]


class DoneInTheMidst:
    """The writers of `bills` are said to have moved while one writes."""

    lasts = False

    def __init__(self, world: World, _: random.Random) -> None:
        self._world = world
        self._topic = world.topics["bills"]
        self.victim = self._topic
        self._partitions = range(world.partitions)
        self._ended = threading.Event()
        self._trouble: list[NoVictim] = []

    def begin(self) -> None:
        for partition in self._partitions:
            self._world.scribe.write(self._topic, BILL, partition, 1)
        self._wait_until_copied()
        try:
            noted, heard = self._say_done()
            self._look(noted, heard)
        finally:
            self._command("undo")

    def _say_done(self) -> tuple[dict[int, int], dict[int, int]]:
        """Give the word while a thread writes; returns the ends that were noted, and those when it must be known."""
        writer = threading.Thread(target=self._write, name="bills", daemon=True)
        writer.start()
        try:
            time.sleep(_BEFORE_S)
            noted = self._command("done")
            time.sleep(_HEARD_S)
            heard = self._ends(source=True)
            time.sleep(_LONG_AFTER_S)
        finally:
            self._ended.set()
            writer.join()
        if self._trouble:
            raise self._trouble[0]
        return noted, heard

    def end(self) -> None:
        pass

    def settle(self) -> None:
        """Wait until the rest is copied; what never is, the check at the end finds."""
        deadline = time.monotonic() + _COPIED_TIMEOUT_S
        while self._ends(source=False) != self._ends(source=True) and time.monotonic() < deadline:
            time.sleep(_POLL_S)

    def _look(self, noted: Mapping[int, int], heard: Mapping[int, int]) -> None:
        source = self._ends(source=True)
        since_ms, deadline = int(time.time() * 1000), time.monotonic() + _SAID_TIMEOUT_S
        told = None
        while told is None or not told.released or told.at_ms < since_ms + _REPORTED_S * 1000:
            if time.monotonic() > deadline:
                self.victim += f": it was not said to be released in {_SAID_TIMEOUT_S:.0f} s"
                return
            time.sleep(_POLL_S)
            with contextlib.suppress(OSError, HTTPException, ValueError, LookupError):
                told = told_of(fetched(self._world.deployment.port(), "/snapshot")[1], self._topic)
        sides = Sides(noted, self._ends(source=False), source)
        self.victim += f": {sum(sides.late().values())} records came too late"
        self._world.aftermath.false.merge(judged(self._topic, told, sides, heard))

    def _wait_until_copied(self) -> None:
        deadline = time.monotonic() + _COPIED_TIMEOUT_S
        while not all(self._ends(source=False).values()):
            if time.monotonic() > deadline:
                raise NoVictim("nothing is copied yet")
            time.sleep(_POLL_S)

    def _write(self) -> None:
        try:
            self._world.scribe.write_while(
                self._topic, BILL, list(self._partitions), lambda: not self._ended.wait(0.005)
            )
        except NoVictim as trouble:
            self._trouble.append(trouble)

    def _ends(self, *, source: bool) -> dict[int, int]:
        cluster, topic = (
            (self._world.arena.source, self._topic) if source else (self._world.arena.target, remote(self._topic))
        )
        parts = [TopicPartition(topic, partition) for partition in self._partitions]
        if not replicas(cluster, [topic]).keys() >= set(parts):
            return dict.fromkeys(self._partitions, 0)
        return {part.partition: end for part, end in log_ends(cluster, parts).items()}

    def _command(self, verb: str) -> dict[int, int]:
        """Have the mirror told; returns the ends that were noted. Raises NoVictim if that fails for a minute."""
        command = [*STEADY, "topics", verb, str(self._world.properties), "--topics", self._topic.replace(".", r"\.")]
        deadline = time.monotonic() + _COMMAND_TIMEOUT_S
        while True:
            done = subprocess.run(
                [*command, "-o", "json"], capture_output=True, text=True, check=False, timeout=_COMMAND_TIMEOUT_S
            )
            if not done.returncode:
                return _noted(done.stdout)
            if verb == "undo" and done.returncode == _NOTHING_MATCHES:
                return {}
            if time.monotonic() > deadline:
                raise NoVictim(f"topics {verb} fails: {done.stderr[-300:]}")
            time.sleep(_POLL_S)


def _noted(printed: str) -> dict[int, int]:
    (row,) = json.loads(printed)
    return {int(partition): end for partition, end in row.get("ends", {}).items()}


def told_of(text: str, topic: str) -> Told | None:
    """Return what a snapshot says; None if its process does not work on the flow. Raises ValueError, LookupError."""
    flow: Any = next((one for one in json.loads(text)["flows"] if one["flow"] == FLOW), None)
    if flow is None or flow["role"] != "leader":
        return None
    found: Any = next((one for one in flow.get("topics", ()) if one["topic"] == topic), {})
    late = {int(partition): int(count) for partition, count in found.get("late_in", {}).items()}
    return Told(flow["at_ms"], flow["state"], bool(found.get("released")), late)


def judged(topic: str, told: Told, sides: Sides, heard: Mapping[int, int]) -> FalseWords:
    """Compare what was said with what is so; `heard` are the source's ends when the word must have been heard."""
    false = FalseWords()
    for partition, end in sorted(sides.copy.items()):
        if end > max(sides.noted[partition], heard.get(partition, end)):
            false.add(
                f"topics done: {topic}-{partition} is done at {sides.noted[partition]}, and was copied up to {end}: "
                f"{end - heard[partition]} of these records came long after the word"
            )
    late = sides.late()
    for partition in sorted(late.keys() | told.late.keys()):
        so, said = late.get(partition, 0), told.late.get(partition, 0)
        if so != said:
            false.add(f"topics done: {topic}-{partition}: {said} records are said to be late and not copied, {so} are")
    if late and told.state == "caught up":
        false.add(
            f"topics done: {FLOW} is said to have caught up, next to {sum(late.values())} late records of {topic}"
        )
    return false
