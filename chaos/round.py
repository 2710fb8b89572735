"""One round: a mirror under load and under the nemesis, then quiet, then the check."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from chaos import faults, meter
from chaos.arena import Arena
from chaos.checker import Findings
from chaos.ending import check_topics, false_words, translated, troubles, united, wait_until_drained, wait_until_said
from chaos.expiry import ExpiryWatch, met
from chaos.history import History, read_history
from chaos.load import Load, LoadPlan, close_logs, end_transactions
from chaos.meter import Meter, Sample, Stall, Watermarks
from chaos.mirror import RESTLESS, STEADY, Deployment, remote, write_properties
from chaos.nemesis import Happened, Nemesis, Pace, draw
from chaos.onlookers import Onlookers, Seen
from chaos.records import Isolation
from chaos.scribe import Scribe
from chaos.words import FalseWords
from chaos.world import World
from sparkmirror.errors import CopyIncomplete

PARTITIONS = 4
START_TIMEOUT_S = 240.0
_GONE_S = 60.0
"""A JVM may take so long to end after its driver was killed."""
_POLL_S = 0.5
_LOG_END = 2_000
_WATCHED = ("orders", "archive", "notes")
"""Topics whose high watermarks are the same on both sides when all is copied; the first one is measured."""

Spark = Literal["local", "standalone"]
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class RoundPlan:
    """What is done in a round; `number` makes its topics' names."""

    number: int
    seed: int
    spark: Spark
    isolation: Isolation
    faults: int
    timeout_s: float
    """For the faults alone."""
    kinds: frozenset[str]
    transactions: bool = True
    restless: bool = False
    """Whether plans move partitions between tasks again and again."""
    pace: Pace = field(default_factory=Pace)


@dataclass(slots=True)
class RoundResult:
    """What became of it; times in seconds."""

    plan: RoundPlan
    findings: Findings
    happened: list[Happened]
    skipped: list[str]
    stalls: list[Stall]
    recoveries: list[float | None]
    """From the end of each fault until the target had all that the source had then; None: not within the round."""
    drained_s: float | None
    """From the end of load and faults until the target had everything; None: it never had."""
    mirror_starts: int
    mirror_exits: Counter[int]
    moves: int
    """How often a plan has moved partitions within a running round."""
    orphans: int
    strangers: int
    """Records in the copy that the nemesis wrote itself."""
    unguarded: int
    """Faults that came while the target was found to have forgotten the producer of the old records."""
    seen: Seen
    """What a scraper and a browser saw meanwhile."""
    copied_anew: list[str]
    """Topics whose copies were deleted since the mirror could not continue behind them, and why."""
    silences: list[str]
    """What the mirror never named."""
    false: FalseWords
    """What it said that was not so: to onlookers, to faults, in ledger and checkpoints."""
    troubles: list[str]
    """Lines of its log that no fault excuses."""
    log_end: str
    """The mirror's last words, if something is wrong."""

    @property
    def worst_stall_s(self) -> float:
        """The longest time in which there was something to copy and nothing was."""
        return max((stall.seconds for stall in self.stalls), default=0.0)

    @property
    def wrong(self) -> list[str]:
        """Return what is wrong, but for the records and what onlookers saw, in words."""
        return [
            *(
                ["the mirror never said that it had caught up, or never copied the rest"]
                if self.drained_s is None
                else []
            ),
            *(f"told wrong: {words}" for words in self.false.first),
            *(f"silence: {words}" for words in self.silences),
            *(f"the mirror ended {times} times by itself, with {code}" for code, times in self.mirror_exits.items()),
            *([f"{self.orphans} processes of killed drivers lived on to the end"] if self.orphans else []),
            *(f"in the mirror's log: {line}" for line in self.troubles),
        ]

    @property
    def good(self) -> bool:
        return self.findings.clean and self.seen.good and not self.wrong


def run_round(arena: Arena, plan: RoundPlan, spark: Mapping[str, str], say: Say) -> RoundResult:
    """Run it. Raises SetupError if a broker does not come back, CopyIncomplete if the mirror does not even start."""
    kinds = ["orders", *(["payments"] if plan.transactions else []), "archive", "drafts", "notes", "bills"]
    topics = {kind: f"round{plan.number}.{kind}" for kind in kinds}
    for topic in topics.values():
        arena.create_topic(arena.source, topic, PARTITIONS)
    place = arena.directory / f"round{plan.number}"
    place.mkdir()
    every = rf"round{plan.number}\..*"
    properties = write_properties(place / "mm2.properties", arena, every, plan.isolation, spark)
    # One live pump is the rule where no producer state holds off others, or the source takes records back.
    guarded = rf"round{plan.number}\.(orders|payments)"
    rivals = write_properties(place / "rival.properties", arena, guarded, plan.isolation, spark)
    load_plan = LoadPlan(
        arena.source.bootstrap_servers,
        place / "history",
        plan.seed,
        PARTITIONS,
        topics["orders"],
        topics.get("payments"),
        topics["archive"],
        topics["drafts"],
    )
    with (
        _meter(arena, [topics[kind] for kind in _WATCHED]) as watch,
        Load(load_plan) as load,
        ExpiryWatch(arena.target.direct_servers, remote(topics["archive"]), PARTITIONS) as expiry,
        Deployment(properties, place / "mirror.log", rivals, RESTLESS if plan.restless else STEADY) as deployment,
        Onlookers(deployment.port, watch.truth) as onlookers,
    ):
        say("starts")
        if not watch.wait_for_progress(START_TIMEOUT_S):
            raise CopyIncomplete(f"the mirror copied nothing for {START_TIMEOUT_S:.0f} s; {_end_of(deployment)}")
        scribe = Scribe(arena.source.direct_servers, load_plan.history)
        world = World(arena, deployment, watch, topics, PARTITIONS, plan.isolation, properties, scribe, load)
        nemesis = Nemesis(world, draw(plan.seed, _lanes(plan), plan.faults, plan.pace))

        def tick() -> None:
            load.leave_alone(_busy(len(nemesis.happened) / plan.faults))
            say(_describe(plan, nemesis, watch.latest()))

        nemesis.run(plan.timeout_s, tick)
        say("all is made whole")
        arena.repair()
        load.leave_alone(_busy(1.0))
        load.stop()
        end_transactions(arena.source.direct_servers)
        say("copies what there is")
        said_s = wait_until_said(world)
        as_they_are = Findings() if said_s is None else check_topics(world, History())[0]
        say("copies the rest")
        close_logs(arena.source.direct_servers, list(topics.values()), PARTITIONS)
        closed = time.monotonic()
        is_drained = wait_until_drained(arena, list(topics.values()), PARTITIONS)
        drained_s = said_s + time.monotonic() - closed if is_drained and said_s is not None else None
        say("translates offsets")
        checkpoints = translated(world, f"round{plan.number}", plan.seed) if is_drained else []
        time.sleep(2 * _POLL_S)  # samples of the end, and whatever comes too much
        gone_by = time.monotonic() + _GONE_S
        while deployment.orphans() and time.monotonic() < gone_by:
            time.sleep(_POLL_S)
        result = RoundResult(
            plan=plan,
            findings=Findings(),
            happened=sorted(nemesis.happened, key=lambda one: one.began),
            skipped=nemesis.skipped,
            stalls=meter.stalls(watch.samples),
            recoveries=[meter.recovery(watch.samples, one.ended) for one in nemesis.happened],
            drained_s=drained_s,
            mirror_starts=deployment.starts,
            mirror_exits=deployment.exits,
            moves=deployment.moves(),
            orphans=deployment.orphans(),
            strangers=0,
            unguarded=sum(met(expiry.forgotten, one.began, one.ended) for one in nemesis.happened),
            seen=onlookers.seen,
            copied_anew=world.aftermath.copied_anew,
            silences=world.aftermath.silences,
            false=world.aftermath.false,
            troubles=troubles(deployment),
            log_end="",
        )
    say("is checked")
    at_the_end, result.strangers, read = check_topics(world, read_history(load_plan.history))
    at_the_end.merge(world.aftermath.findings)
    result.findings = united(as_they_are, at_the_end)
    result.false.merge(false_words(world, read, checkpoints))
    if not result.good:
        result.log_end = _end_of(deployment)
    return result


def _meter(arena: Arena, topics: list[str]) -> Meter:
    source, target = (
        Watermarks([broker.port for broker in cluster.brokers], names, PARTITIONS)
        for cluster, names in ((arena.source, topics), (arena.target, [remote(topic) for topic in topics]))
    )
    return Meter(source, target)


def _busy(share: float) -> int:
    """Return how many partitions are written to when that share of the faults is over: in the end half of them."""
    return PARTITIONS - min(int(share * 3), PARTITIONS // 2)


def _lanes(plan: RoundPlan) -> dict[str, list[str]]:
    lanes = {lane: [kind for kind in kinds if kind in plan.kinds] for lane, kinds in faults.LANES.items()}
    impossible = {"executor kill", "executor pause"} if plan.spark == "local" else set()
    if not plan.transactions:  # what is measured is the other topic, where they would count as copied
        impossible.add("target stranger")
    lanes = {lane: [kind for kind in kinds if kind not in impossible] for lane, kinds in lanes.items()}
    return {lane: kinds for lane, kinds in lanes.items() if kinds}


def _end_of(deployment: Deployment) -> str:
    return f"the mirror's log ends with:\n{deployment.log.read_text(errors='replace')[-_LOG_END:]}"


def _describe(plan: RoundPlan, nemesis: Nemesis, now: Sample) -> str:
    broken = "; ".join(dict(nemesis.current).values()) or "nothing is broken"
    done = f"fault {len(nemesis.happened)} of {plan.faults}"
    return f"{done}, {sum(now.target):,} records, {now.behind:,} behind: {broken}"
