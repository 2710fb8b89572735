"""One round: load, a migration by the real command line, perhaps a way back, and the check."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from chaos.switches.arena import BILLING, SHOP, SOURCE, STRANGER, TARGET, Arena
from chaos.switches.check import Found, Topic, check, strays_at
from chaos.switches.jvm import LoadJvm
from chaos.switches.pauses import Pause, pauses
from chaos.switches.plan import Names, Plan, Window
from chaos.switches.records import read_dump, read_history
from chaos.switches.tool import COMMAND, Hooks, Tool
from sparkmirror.migrate.evidence import evidence_topic

PARTITIONS = 3
_KEYS = 7
_WRITE_S = 3.0
"""Seconds of load between two steps of a round."""
_COPIED_S = 240.0
_SETTLED_S = 60.0
_POLL_S = 0.3
_STEPS = ("consumers", "producers", "fence", "publish", "drain", "arm", "open", "empty", "position")

Say = Callable[[str], None]


@dataclass(slots=True)
class Result:
    """What became of a round."""

    plan: Plan
    wrong: list[str]
    pauses: list[Pause]
    own_s: list[float]
    """Seconds that the tool has needed itself, for each switch that was not killed."""
    kills: int
    records: int = 0
    reads: int = 0
    named: int = 0
    """Stragglers that stay where they were written, and are named."""
    copied: int = 0
    """Stragglers that were copied after all."""
    said: str = ""
    """What the tool printed, if something is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A consumer group of the round."""

    name: str
    topics: list[Topic]
    protocol: str = "classic"
    isolation: str = "read_uncommitted"
    members: int = 1


class Producer(NamedTuple):
    """A producer of the round."""

    kind: str
    topic: Topic
    rate: float
    """Records a second."""


class Round:
    """One round on clusters and a mirror that run already."""

    def __init__(self, arena: Arena, jvm: LoadJvm, mirror_file: Path, plan: Plan, hooks: Hooks, say: Say) -> None:
        self._arena, self._jvm, self._mirror_file = arena, jvm, mirror_file
        self._plan, self._hooks, self._say = plan, hooks, say
        self._directory = arena.directory / f"round-{plan.number}"
        self._prefix = f"r{plan.number}-"
        self._topics = self._make_topics()
        orders, payments, stock = self._topics
        modern = "consumer" if arena.knows_new_groups() else "classic"
        self._groups = [
            Group(name=f"{self._prefix}billing", topics=[orders, stock], members=2),
            Group(name=f"{self._prefix}ledger", topics=[payments], isolation="read_committed"),
            Group(name=f"{self._prefix}search", topics=[orders], protocol=modern),
        ]
        self._producers = {
            f"{self._prefix}web": Producer("idempotent", orders, 40.0),
            f"{self._prefix}batch": Producer("acks1", orders, 20.0),
            f"{self._prefix}pay": Producer("transactional", payments, 25.0),
            f"{self._prefix}wares": Producer("idempotent", stock, 30.0),
        }
        self._tool = Tool(self._directory / f"{self._prefix}migration.yaml")
        self._kills = 0
        self._pending: list[Window] = sorted(plan.strays)
        self._pool = ThreadPoolExecutor(4)
        self._wrong: list[str] = []
        self._switches: list[tuple[str, str, int]] = []
        """Who left which cluster, and when, in ms."""

    def run(self) -> Result:
        """Run it to its end; raises `SparkMirrorError`s where the machine fails."""
        self._directory.mkdir()
        self._write_migration()
        self._jvm.begin_round(self._directory / "history")
        self._create()
        self._produce(SOURCE)
        self._consume(SOURCE)
        self._wait_until_copied()
        self._live(_WRITE_S)
        self._switch(SOURCE, TARGET)
        self._back_and_forth()
        self._jvm.stop_producers(list(self._producers))
        result = self._check()
        self._jvm.stop_consumers([group.name for group in self._groups])
        if not result.wrong:
            self._delete()
        self._pool.shutdown()
        return result

    def failed(self, why: str) -> Result:
        """End all clients, and return a result for a round that could not be run to its end."""
        self._hooks.asked = lambda when, step: None
        self._jvm.stop_producers(list(self._producers))
        self._jvm.stop_consumers([group.name for group in self._groups])
        self._pool.shutdown()
        return Result(
            plan=self._plan, wrong=[*self._wrong, why], pauses=[], own_s=[], kills=self._kills, said=self._said()
        )

    def _said(self) -> str:
        return "\n".join(f"$ sparkmirror migration {run.words}\n{run.text}" for run in self._tool.runs)

    def _back_and_forth(self) -> None:
        self._plant(Window.LATER, SOURCE)
        self._live(_WRITE_S)
        if self._plan.turns >= 2:
            self._switch(TARGET, SOURCE)
            self._live(_WRITE_S)
        if self._plan.turns >= 3:
            self._switch(SOURCE, TARGET)
            self._live(_WRITE_S)

    # --- what there is ----------------------------------------------------------------------------

    def _make_topics(self) -> tuple[Topic, Topic, Topic]:
        def topic(short: str, **more: Any) -> Topic:
            name = self._prefix + short
            renamed = self._plan.names is Names.RENAMED
            copies = {alias: f"{alias}.{name}" if renamed else name for alias in (SOURCE, TARGET)}
            return Topic(name=name, partitions=PARTITIONS, keys=_KEYS, copies=copies, **more)

        return topic("orders"), topic("payments", transactional=True), topic("stock", compacted=True)

    def _write_migration(self) -> None:
        content: dict[str, Any] = {
            "mirror": str(self._mirror_file),
            "flow": f"{SOURCE}->{TARGET}",
            "type": self._plan.type,
            "sets": [
                {
                    "name": "shop",
                    "topics": [topic.name for topic in self._topics],
                    "groups": [group.name for group in self._groups],
                }
            ],
            "policies": {"fence": "60 s", "drain": "60 s", "empty": "60 s"},
        }
        if self._plan.kill or {Window.PUBLISH, Window.ARM} & self._plan.strays:
            asked = {step: [self._hooks.url] for step in _STEPS}
            content["hooks"] = {"before": asked, "after": asked}
            self._hooks.asked = self._on_hook
        self._migration_file.write_text(yaml.safe_dump(content))

    @property
    def _migration_file(self) -> Path:
        return self._directory / f"{self._prefix}migration.yaml"

    def _create(self) -> None:
        compacted = {"cleanup.policy": "compact", "segment.ms": "1000", "min.cleanable.dirty.ratio": "0.01"}
        there = {topic.name: compacted if topic.compacted else {} for topic in self._topics}
        self._arena.create_topics(SOURCE, there, PARTITIONS)
        self._arena.let_write(SOURCE, literal=self._topics[0].name, prefix=self._prefix)
        if self._plan.names is Names.RENAMED:
            self._arena.create_topics(TARGET, there, PARTITIONS)

    def _delete(self) -> None:
        for alias in (SOURCE, TARGET):
            names = {name for topic in self._topics for name in topic.places(alias).values()}
            self._arena.delete_topics(alias, sorted(names))

    # --- load -------------------------------------------------------------------------------------

    def _produce(self, alias: str) -> None:
        for name, what in self._producers.items():
            self._jvm.produce(
                f"{SHOP} at {alias}",
                kind=what.kind,
                topic=what.topic.name,
                partitions=PARTITIONS,
                rate=what.rate,
                keys=_KEYS,
                name=name,
            )

    def _consume(self, alias: str) -> None:
        for group in self._groups:
            names = [name for topic in group.topics for name in dict.fromkeys(topic.places(alias).values())]
            self._jvm.consume(
                f"{BILLING} at {alias}",
                group=group.name,
                protocol=group.protocol,
                isolation=group.isolation,
                members=group.members,
                topics=names,
            )

    def _live(self, seconds: float) -> None:
        """Let clients work until each producer has written that long, and each group has read something new."""
        self._say(f"{seconds:g} s of load")
        time.sleep(seconds)
        before = self._reads()
        self._wait(lambda: all(self._reads().get(name, 0) > before.get(name, 0) for name in before), "reads")

    def _reads(self) -> dict[str, int]:
        counts = dict.fromkeys((group.name for group in self._groups), 0)
        for what, count in self._jvm.counts().items():
            kind, _, rest = what.partition(" ")
            if kind == "read":
                counts[rest.rpartition(" ")[2]] = counts.get(rest.rpartition(" ")[2], 0) + count
        return counts

    def _wait_until_copied(self) -> None:
        self._say("waiting for copies")
        self._wait(self._is_copied, "each topic has a copy with records")

    def _is_copied(self) -> bool:
        try:
            return all(any(self._dump(TARGET, topic.copies[SOURCE]).values()) for topic in self._topics)
        except LookupError:
            return False

    def _wait(self, condition: Callable[[], bool], what: str, timeout_s: float = _COPIED_S) -> None:
        deadline = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > deadline:
                raise NotSeen(f"not within {timeout_s:g} s: {what}")
            time.sleep(_POLL_S)

    def _dump(self, alias: str, topic: str) -> Any:
        file = self._directory / f"{topic}.at-{alias}"
        self._jvm.dump(STRANGER + alias, topic, file)
        return read_dump(file)

    # --- switches ---------------------------------------------------------------------------------

    def _switch(self, leaving: str, arriving: str) -> None:
        verb = ("switch",) if arriving == TARGET else ("reverse",)
        parts: tuple[str, ...]
        if self._plan.type == "all-at-once":
            parts = ("all",)
        elif (self._plan.type == "consumers-first") == (arriving == TARGET):
            parts = ("consumers", "producers")
        else:
            parts = ("producers", "consumers")
        for who in parts:
            command = (*verb, who, "--yes") if arriving == TARGET else (*verb, "--who", who, "--yes")
            self._move(command, who, leaving, arriving)

    def _move(self, command: tuple[str, ...], who: str, leaving: str, arriving: str) -> None:
        self._say(" ".join(command))
        moves_groups, moves_producers = who in ("consumers", "all"), who in ("producers", "all")
        stopping: list[Future[None]] = []

        def on_line(line: str) -> None:
            self._say(f"  {line.rstrip()}")
            if stopping or ("wait until" not in line and "deny WRITE" not in line):
                return
            if moves_groups and "have no members" in line:
                stopping.append(self._pool.submit(self._jvm.stop_consumers, [group.name for group in self._groups]))
            if moves_producers and (self._plan.halts or (who == "producers" and self._plan.halts)):
                stopping.append(self._pool.submit(self._jvm.stop_producers, list(self._producers)))

        began_ms = int(time.time() * 1000)
        run = self._tool.run(*command, on_line=on_line)
        tries = 0
        while run.code and tries < 3:
            tries += 1
            if run.code > 0:
                self._wrong.append(f"{run.words}: exit code {run.code}: {run.lines[-1][1] if run.lines else ''}")
            else:
                self._arena.delete_topics(TARGET, [evidence_topic(self._migration_file.stem)])
            run = self._tool.run(*command, on_line=on_line)
        for each in stopping:
            each.result()
        if moves_producers:
            self._jvm.stop_producers(list(self._producers))
            if arriving == TARGET:
                self._plant(Window.FIRST, SOURCE)
            self._produce(arriving)
        if moves_groups:
            self._consume(arriving)
        self._switches.append((who, leaving, began_ms))

    def _on_hook(self, when: str, step: str) -> None:
        kill = self._plan.kill
        if kill and not self._kills and (when, step) == (kill.when, kill.step):
            self._kills += 1
            self._tool.kill(kill.delay_s)
        if (when, step) == ("before", "publish"):
            self._plant(Window.PUBLISH, SOURCE)
        if (when, step) == ("before", "arm"):
            self._plant(Window.ARM, SOURCE)

    def _plant(self, window: Window, alias: str) -> None:
        if window in self._pending:
            self._pending.remove(window)
            topic = self._topics[0]
            offset = self._jvm.stray(STRANGER + alias, topic.name, 0)
            self._say(f"a straggler {window}: offset {offset} of {topic.name}-0 at {alias}")

    # --- the check --------------------------------------------------------------------------------

    def _check(self) -> Result:
        self._say("checking")
        deadline = time.monotonic() + _SETTLED_S
        found = self._look()
        while any(each.may_pass for each in found) and time.monotonic() < deadline:
            time.sleep(1.0)
            found = self._look()
        history = read_history(self._directory / "history")
        wrong = [*self._wrong, *map(str, found), *(f"group: {trouble}" for trouble in history.troubles)]
        named, copied = 0, 0
        ledger, late = self._ledger(), self._late()
        for topic in self._topics:
            for ack, here, there in strays_at(history, topic, self._dumps):
                is_named = (
                    any(
                        each["source_topic"] == topic.name
                        and each["partition"] == ack.partition
                        and each["first"] <= ack.offset < each["end"]
                        for each in ledger
                    )
                    or (ack.alias, topic.name) in late
                )
                named, copied = named + (there == 0), copied + (there == 1)
                if here != 1 or there > 1 or (there == 0 and not is_named):
                    wrong.append(
                        f"straggler {ack.value} at offset {ack.offset} of {topic.name}-{ack.partition} at {ack.alias}:"
                        f" {here} times there, {there} times at the other side, {'' if is_named else 'not '}named"
                    )
        strays = {(ack.topic, ack.partition, ack.offset) for ack in history.acks if ack.producer == "stray"}
        for each in ledger:
            offsets = {(each["source_topic"], each["partition"], at) for at in range(each["first"], each["end"])}
            if each["action"] != "expected" and not offsets <= strays:
                wrong.append(f"ledger: {each['flow']}: {each['words']}")
        return Result(
            plan=self._plan,
            wrong=wrong,
            pauses=pauses(history, self._switches),
            own_s=[run.own_s for run in self._tool.runs if run.code == 0 and run.own_s],
            kills=self._kills,
            records=len(history.committed()),
            reads=len(history.reads),
            named=named,
            copied=copied,
            said=self._said() if wrong else "",
        )

    def _look(self) -> list[Found]:
        self._dumps = {
            (alias, name): self._dump(alias, name)
            for topic in self._topics
            for alias in (SOURCE, TARGET)
            for name in dict.fromkeys(topic.places(alias).values())
        }
        groups = {group.name: group.topics for group in self._groups}
        return check(read_history(self._directory / "history"), self._topics, self._dumps, groups)

    def _ledger(self) -> list[dict[str, Any]]:
        command = [COMMAND, "losses", "list", str(self._mirror_file), "-o", "json"]
        told = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        return [each for each in told if each["source_topic"].startswith(self._prefix)]

    def _late(self) -> set[tuple[str, str]]:
        """Return clusters and topics with records that a mirror's status calls late: these are counted by partition."""
        command = [COMMAND, "topics", "list", str(self._mirror_file), "-o", "json"]
        told = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        return {(each["flow"].split("->")[0], each["topic"]) for each in told if each["late"]}


class NotSeen(Exception):
    """What a round waits for did not come."""
