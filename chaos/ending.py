"""The end of a round: what the mirror says when nothing is broken any more, and whether logs and words are right.

The partitions are looked at twice. First as they are, once the mirror says that all is copied: no further record shows
it what it may believe wrongly of a partition at rest. Then each has got a last record, and must end in that.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Iterable, Mapping, Sequence
from http.client import HTTPException

from kafka import TopicPartition

from chaos.arena import Arena
from chaos.checker import Findings, TopicLogs, check
from chaos.copied_anew import copies_of
from chaos.history import History
from chaos.ledger import Caused, false_entries, read_losses
from chaos.load import last_name
from chaos.logs import read_logs
from chaos.mirror import Deployment, remote
from chaos.onlookers import fetched
from chaos.records import STRANGER, last_names, read_topic
from chaos.replicas import log_ends
from chaos.translated import commit, false_checkpoints, wait_for_checkpoints
from chaos.words import FalseWords, state_of
from chaos.world import World
from sparkmirror.exact.mm2.record_formats import Checkpoint
from sparkmirror.pump.quiet import LATE_S

PATIENCE_S = LATE_S + 60.0
"""For so long nothing may move.

Old records behind fresh ones rest for `LATE_S` after a kill.
"""
_SAID_S = 10.0
"""The mirror must say for so long that it has caught up, without a break."""
_POLL_S = 0.5
_TROUBLES = ("Traceback (most recent call last)", "ForbiddenEvent")
_MOST_LINES = 5


def wait_until_said(world: World) -> float | None:
    """Wait until the mirror has said for ten seconds that it has caught up, and return after how many seconds it
    began to; None if nothing moves any more."""
    since, first = int(time.time() * 1000), 0
    parts = copies_of(world)
    before: Mapping[TopicPartition, int] = {}
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError, HTTPException, ValueError, LookupError):
            state, at = state_of(fetched(world.deployment.port(), "/snapshot")[1])
            if state != "caught up" or at < since:
                first = 0
            elif not first:
                first = at
            elif at - first >= _SAID_S * 1000:
                return (first - since) / 1000
        now = log_ends(world.arena.target, parts)
        if now != before:
            deadline, before = time.monotonic() + PATIENCE_S, now
        time.sleep(_POLL_S)
    return None


def wait_until_drained(arena: Arena, topics: Sequence[str], partitions: int) -> bool:
    """Wait until every partition of the target ends in the last record; False if nothing moves any more."""
    wanted = [{partition: last_name(partition) for partition in range(partitions)}] * len(topics)
    deadline, before = time.monotonic() + PATIENCE_S, None
    while time.monotonic() < deadline:
        now = [last_names(arena.target.direct_servers, remote(topic), partitions) for topic in topics]
        if now == wanted:
            return True
        if now != before:
            deadline, before = time.monotonic() + PATIENCE_S, now
        time.sleep(_POLL_S)
    return False


def check_topics(world: World, history: History) -> tuple[Findings, int, dict[str, TopicLogs]]:
    """Return what was found, how many records of strangers were left out, and the logs by kind."""
    findings, strangers, read = Findings(), 0, {}
    for kind, topic in world.topics.items():
        logs, foreign = read_logs(world.arena, kind, topic, world.partitions, world.aftermath.elections)
        strangers += foreign
        findings.merge(check(logs, world.isolation, history))
        read[kind] = logs
    return findings, strangers, read


def united(as_they_were: Findings, at_the_end: Findings) -> Findings:
    """Return the findings of two looks at the same records: what both have found counts once."""
    both = Findings(
        at_the_end.records,
        as_they_were.counts | at_the_end.counts,
        taken_back=at_the_end.taken_back,
        disowned=at_the_end.disowned,
    )
    known = set(at_the_end.examples)
    healed = [
        f"{example} (when the mirror said that it had caught up)"
        for example in as_they_were.examples
        if example not in known
    ]
    both.examples = [*healed, *at_the_end.examples][: max(len(healed), len(at_the_end.examples), 20)]
    return both


def translated(world: World, prefix: str, seed: int) -> list[Checkpoint]:
    """Commit groups at the source, all over the topics that no election has cut; return what the mirror makes of it."""
    parts = [
        TopicPartition(topic, partition)
        for kind, topic in world.topics.items()
        if kind != "drafts"
        for partition in range(world.partitions)
    ]
    ends = log_ends(world.arena.source, parts)
    committed = commit(world.arena, prefix, ends, random.Random(f"groups {seed}"))
    found = wait_for_checkpoints(world.arena.target, committed)
    if len(found) < len(committed) and not world.aftermath.claims_lost:
        world.aftermath.silences.append(f"{len(committed) - len(found)} of {len(committed)} checkpoints never came")
    return found


def false_words(world: World, read: Mapping[str, TopicLogs], checkpoints: Iterable[Checkpoint]) -> FalseWords:
    """Return what ledger and checkpoints say that is not so."""
    false = FalseWords()
    truth, copies = {}, {}
    for kind, logs in read.items():
        losses, copy_id = read_losses(world.arena.target, logs.topic)
        false.merge(false_entries(losses, copy_id, _caused(world, kind, logs)))
        of_flow = logs.uncommitted if world.isolation == "read_uncommitted" else logs.committed
        for partition, log in of_flow.items():
            part = TopicPartition(remote(logs.topic), partition)
            truth[part], copies[part] = log, logs.copy[partition]
    false.merge(false_checkpoints(checkpoints, truth, copies, may_be_earlier=world.aftermath.claims_lost))
    return false


def _caused(world: World, kind: str, logs: TopicLogs) -> Caused:
    aftermath, topic = world.aftermath, logs.topic
    foreign = (
        read_topic(world.arena.target.direct_servers, remote(topic), world.partitions, "read_uncommitted")
        if kind == "payments"
        else {}
    )
    return Caused(
        source_cuts={part.partition for part in aftermath.elections if part.topic == topic},
        target_cuts={
            part.partition: cuts for part, cuts in aftermath.target_cuts.items() if part.topic == remote(topic)
        },
        copy_deleted=any(line.startswith(f"{topic}: ") for line in aftermath.copied_anew),
        strangers={
            partition: {record.offset for record in log if STRANGER in dict(record.headers)}
            for partition, log in foreign.items()
        },
        ours={partition: {record.offset for record in log} for partition, log in logs.copy.items()},
    )


def troubles(deployment: Deployment) -> list[str]:
    """Return the lines of the mirror's log that no fault excuses, the first few of them."""
    found: list[str] = []
    with deployment.log.open(errors="replace") as log:
        for line in log:
            if any(word in line for word in _TROUBLES) and len(found) < _MOST_LINES:
                found.append(line.strip()[:300])
    return found
