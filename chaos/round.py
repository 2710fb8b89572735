"""One round: a mirror under load and under the nemesis, then quiet, then the check."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from chaos import faults, meter
from chaos.arena import Arena
from chaos.checker import Findings, check
from chaos.expiry import ExpiryWatch, met
from chaos.history import read_history
from chaos.load import Load, LoadPlan, close_logs, last_name
from chaos.logs import read_logs
from chaos.meter import Meter, Sample, Stall, Watermarks
from chaos.mirror import RESTLESS, STEADY, Deployment, remote, write_properties
from chaos.nemesis import Happened, Nemesis, Pace, draw
from chaos.onlookers import Onlookers, Seen
from chaos.records import Isolation, last_names
from chaos.world import Aftermath, World
from sparkmirror.errors import CopyIncomplete

PARTITIONS = 4
START_TIMEOUT_S = 240.0
_GONE_S = 60.0
"""A JVM may take so long to end after its driver was killed."""
DRAIN_TIMEOUT_S = 180.0
_POLL_S = 0.5
_LOG_END = 2_000

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
    """Topics whose copies were deleted since the mirror could not go on behind them, and why."""
    log_end: str
    """The mirror's last words, if something is wrong."""

    @property
    def worst_stall_s(self) -> float:
        """The longest time in which there was something to copy and nothing was."""
        return max((stall.seconds for stall in self.stalls), default=0.0)

    @property
    def good(self) -> bool:
        return self.findings.clean and self.drained_s is not None and self.seen.good


def run_round(arena: Arena, plan: RoundPlan, spark: Mapping[str, str], say: Say) -> RoundResult:
    """Run it. Raises SetupError if a broker does not come back, CopyIncomplete if the mirror does not even start."""
    kinds = ["orders", *(["payments"] if plan.transactions else []), "archive", "drafts"]
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
        _meter(arena, topics["orders"]) as watch,
        Load(load_plan) as load,
        ExpiryWatch(arena.target.direct_servers, remote(topics["archive"]), PARTITIONS) as expiry,
        Deployment(properties, place / "mirror.log", rivals, RESTLESS if plan.restless else STEADY) as deployment,
        Onlookers(deployment.port) as onlookers,
    ):
        say("starts")
        if not watch.wait_for_progress(START_TIMEOUT_S):
            raise CopyIncomplete(f"the mirror copied nothing for {START_TIMEOUT_S:.0f} s; {_end_of(deployment)}")
        world = World(arena, deployment, watch, topics, PARTITIONS, plan.isolation)
        nemesis = Nemesis(world, draw(plan.seed, _lanes(plan), plan.faults, plan.pace))
        nemesis.run(plan.timeout_s, lambda: say(_describe(plan, nemesis, watch.latest())))
        say("all is made whole")
        arena.repair()
        load.stop()
        close_logs(arena.source.direct_servers, list(topics.values()), PARTITIONS)
        quiet = time.monotonic()
        say("copies the rest")
        drained = _wait_until_drained(arena, list(topics.values()))
        drained_s = time.monotonic() - quiet if drained else None
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
            log_end="",
        )
    say("is checked")
    result.findings, result.strangers = _check(arena, plan, topics, load_plan, world.aftermath)
    if not result.good:
        result.log_end = _end_of(deployment)
    return result


def _meter(arena: Arena, topic: str) -> Meter:
    source, target = (
        Watermarks([broker.port for broker in cluster.brokers], name, PARTITIONS)
        for cluster, name in ((arena.source, topic), (arena.target, remote(topic)))
    )
    return Meter(source, target)


def _lanes(plan: RoundPlan) -> dict[str, list[str]]:
    lanes = {lane: [kind for kind in kinds if kind in plan.kinds] for lane, kinds in faults.LANES.items()}
    impossible = {"executor kill", "executor pause"} if plan.spark == "local" else set()
    if not plan.transactions:  # what is measured is the other topic, where they would count as copied
        impossible.add("target stranger")
    lanes = {lane: [kind for kind in kinds if kind not in impossible] for lane, kinds in lanes.items()}
    return {lane: kinds for lane, kinds in lanes.items() if kinds}


def _wait_until_drained(arena: Arena, topics: list[str]) -> bool:
    """Wait until every partition of the target ends in the last record; False if nothing moves any more."""
    wanted = [{partition: last_name(partition) for partition in range(PARTITIONS)}] * len(topics)
    deadline, before = time.monotonic() + DRAIN_TIMEOUT_S, None
    while time.monotonic() < deadline:
        now = [last_names(arena.target.direct_servers, remote(topic), PARTITIONS) for topic in topics]
        if now == wanted:
            return True
        if now != before:
            deadline, before = time.monotonic() + DRAIN_TIMEOUT_S, now
        time.sleep(_POLL_S)
    return False


def _check(
    arena: Arena, plan: RoundPlan, topics: Mapping[str, str], load: LoadPlan, aftermath: Aftermath
) -> tuple[Findings, int]:
    """What was found, and how many records of strangers were left out."""
    history = read_history(load.history)
    findings = Findings()
    findings.merge(aftermath.findings)
    strangers = 0
    for kind, topic in topics.items():
        logs, foreign = read_logs(arena, kind, topic, PARTITIONS, aftermath.elections)
        strangers += foreign
        findings.merge(check(logs, plan.isolation, history))
    return findings, strangers


def _end_of(deployment: Deployment) -> str:
    return f"the mirror's log ends with:\n{deployment.log.read_text(errors='replace')[-_LOG_END:]}"


def _describe(plan: RoundPlan, nemesis: Nemesis, now: Sample) -> str:
    broken = "; ".join(dict(nemesis.current).values()) or "nothing is broken"
    done = f"fault {len(nemesis.happened)} of {plan.faults}"
    return f"{done}, {sum(now.target):,} records, {now.behind:,} behind: {broken}"
