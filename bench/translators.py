"""Both mirrors copy all cases between one pair of clusters, and each is asked for offsets in its own way."""

from __future__ import annotations

import gc
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Mapping
from pathlib import Path

from kafka import KafkaAdminClient, OffsetAndMetadata, TopicPartition
from kafka.errors import CoordinatorLoadInProgressError, CoordinatorNotAvailableError, NoError, NotCoordinatorError
from lab import KafkaCluster, RealMirrorMaker

from bench.offset_topics import CASES, Case, bounds, remote
from sparkmirror.config import ClusterConfig
from sparkmirror.errors import SparkMirrorError
from sparkmirror.exact.maps.offset_map import OffsetMap
from sparkmirror.exact.mm2.record_formats import Checkpoint
from sparkmirror.frames.claims import FlowClaims
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.cluster.topic_log import LogUnavailable, TopicLog
from sparkmirror.pump.messages.orders import Receipt
from sparkmirror.pump.messages.receipts import read_reports, receipts_topic

GROUPS = 50
"""Of each kind, on each topic."""

COPY_TIMEOUT_S = 600.0
GROUPS_TIMEOUT_S = 60.0
SETTLED_S = 20.0
"""MirrorMaker 2 has said all when no checkpoint has changed for so long; it flushes delayed syncs every 5 s."""

EARLY, LATE, OURS_LATE = "early", "late", "ours-late"
"""Groups committed before a mirror starts, and when it has caught up; the last of these are for sparkmirror."""


class TranslationFailed(SparkMirrorError):
    """A copy is wrong or did not get done, so nothing can be measured."""


def group_offsets(start: int, end: int) -> list[int]:
    """Where the groups of a topic stand: spread evenly, the last one at the log's end."""
    return [start + (end - start) * number // GROUPS for number in range(1, GROUPS + 1)]


def _flows(aliases: Mapping[str, str], source: KafkaCluster, target: KafkaCluster) -> dict[str, str]:
    """Flows into B from the source under these aliases, `read_committed` where one ends in C; each has its topics."""
    settings = {
        "clusters": ", ".join([*aliases, "B"]),
        "B.bootstrap.servers": target.bootstrap_servers,
        "replication.factor": "1",
    }
    for alias, topics in aliases.items():
        settings |= {
            f"{alias}.bootstrap.servers": source.bootstrap_servers,
            f"{alias}->B.enabled": "true",
            f"{alias}->B.topics": topics,
        }
        if alias.endswith("C"):
            settings[f"{alias}.consumer.isolation.level"] = "read_committed"
    return settings


def _topics(which: Callable[[Case], str]) -> dict[str, str]:
    aliases = {which(case) for case in CASES}
    return {alias: ", ".join(case.topic.name for case in CASES if which(case) == alias) for alias in sorted(aliases)}


def copy_ours(source: KafkaCluster, target: KafkaCluster, directory: Path) -> None:
    """Copy with groups that stand somewhere, commit others, and have those translated, too; once a flow.

    One alias after the other: in one file, two aliases of one cluster are refused.
    """
    _commit(source, EARLY)
    _run_ours(source, target, directory)
    _commit(source, OURS_LATE)
    _run_ours(source, target, directory)


def _run_ours(source: KafkaCluster, target: KafkaCluster, directory: Path) -> None:
    for alias, topics in _topics(lambda case: case.ours).items():
        file = directory / f"ours-{alias}.properties"
        settings = _flows({alias: topics}, source, target) | {
            "checkpoints.topic.replication.factor": "1",
            "offset-syncs.topic.replication.factor": "1",
            "offset.storage.replication.factor": "1",
            "sync.group.offsets.enabled": "true",
        }
        file.write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))
        command = [str(Path(sys.executable).with_name("sparkmirror")), "run", str(file), "--once"]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=COPY_TIMEOUT_S)
        if ended.returncode:
            raise TranslationFailed(f"sparkmirror ended with {ended.returncode}:\n{ended.stderr[-2000:]}")


def our_answers(target: KafkaCluster, case: Case, when: str) -> list[int | None]:
    """Where the groups of one time stand at the target; None: nowhere."""
    where = TopicPartition(remote(case, case.ours), 0)
    admin = KafkaAdminClient(bootstrap_servers=target.bootstrap_servers)
    try:
        found = [admin.list_group_offsets({f"{when}-{number}": [where]}) for number in range(GROUPS)]
        stands = [next(iter(one.values())).get(where) for one in found]
        return [one.offset if one is not None and one.offset >= 0 else None for one in stands]
    finally:
        admin.close()


def our_map(target: KafkaCluster, case: Case) -> tuple[OffsetMap, int]:
    """As anybody can build it from the target alone; and the memory that it holds."""
    config = ClusterConfig(alias="B", bootstrap_servers=(target.bootstrap_servers,))
    client = ClusterClient(config, "bench-translation")
    topic = remote(case, case.ours)
    try:
        claims = FlowClaims(client, case.ours)
        found = client.metadata([topic])[topic]
        where, leader = (topic, 0), found.partitions[0].leader
        read_claims = {where: claims.read([(found.topic_id, 0)])[found.topic_id, 0]}
        logs = {where: bounds(target.bootstrap_servers, topic)}

        def build() -> OffsetMap:
            return claims.maps(leader, {topic: found.topic_id}, logs, read_claims)[where].offsets

        build().close()  # what only the first one leaves behind is not the map's
        tracemalloc.start()
        try:
            offsets = build()
            gc.collect()
            held, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        receipt = _receipt(client, case)
        offsets.pass_over(receipt.upstream, receipt.downstream)
        return offsets, held
    finally:
        client.close()


def _receipt(client: ClusterClient, case: Case) -> Receipt:
    """The newest: it knows that nothing but markers follows what was copied."""
    entries, _ = TopicLog(client, receipts_topic(case.ours)).read(0, 0)
    receipts = [receipt for report in read_reports(entries) for receipt in report.receipts]
    return [receipt for receipt in receipts if receipt.source_topic == case.topic.name][-1]


# --- theirs -------------------------------------------------------------------------------------


Checkpoints = dict[tuple[str, str, str], tuple[int, int]]
"""Source alias, group and target topic; upstream and downstream offset."""


def their_answers(
    source: KafkaCluster, target: KafkaCluster, directory: Path, say: Callable[[str], None]
) -> Checkpoints:
    settings = _flows(_topics(lambda case: case.theirs), source, target) | {
        f"{what}.replication.factor": "1"
        for what in ("checkpoints.topic", "offset-syncs.topic", "offset.storage", "status.storage", "config.storage")
    }
    settings |= {
        "offset-syncs.topic.location": "target",  # at the source both flows would write into one topic
        "emit.heartbeats.enabled": "false",
        "emit.checkpoints.interval.seconds": "1",
        "refresh.groups.interval.seconds": "1",
        "B.offset.flush.interval.ms": "5000",
        "sync.topic.acls.enabled": "false",
    }
    with RealMirrorMaker(settings, directory / "mm2"):
        _wait(lambda: all(_copied(target, case) for case in CASES), "MirrorMaker 2 has not copied everything")
        say("MirrorMaker 2 has copied everything")
        _settled(target)
        _commit(source, LATE)
        return _settled(target)


def _commit(source: KafkaCluster, when: str) -> None:
    """A group for each place, the same one on every topic."""
    places: dict[str, list[int]] = {}
    for case in CASES:
        places[case.topic.name] = group_offsets(*bounds(source.bootstrap_servers, case.topic.name))
    admin = KafkaAdminClient(bootstrap_servers=source.bootstrap_servers)
    try:
        for number in range(GROUPS):
            offsets = {
                TopicPartition(topic, 0): OffsetAndMetadata(of_topic[number], "", -1)
                for topic, of_topic in places.items()
            }
            _patiently(lambda: _set(admin, f"{when}-{number}", offsets))  # noqa: B023
    finally:
        admin.close()


def _set(admin: KafkaAdminClient, group: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
    """Raises what one partition was refused with: the answer has it."""
    for error in admin.alter_group_offsets(group, dict(offsets)).values():
        if error is not NoError:
            raise error


def _patiently(do: Callable[[], object]) -> None:
    """Repeat it while a broker that never had a group makes the topic for them."""
    deadline = time.monotonic() + GROUPS_TIMEOUT_S
    while True:
        try:
            do()
            return
        except (CoordinatorNotAvailableError, NotCoordinatorError, CoordinatorLoadInProgressError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def _copied(target: KafkaCluster, case: Case) -> bool:
    wanted = bounds(target.bootstrap_servers, remote(case, case.ours))
    try:
        found = bounds(target.bootstrap_servers, remote(case, case.theirs))
    except Exception:  # not created yet
        return False
    return found[1] - found[0] >= wanted[1] - wanted[0]


def _settled(target: KafkaCluster) -> Checkpoints:
    """The newest checkpoints, when they change no more."""
    seen: Checkpoints = {}
    since = time.monotonic()
    deadline = since + COPY_TIMEOUT_S
    while not seen or time.monotonic() - since < SETTLED_S:
        if time.monotonic() > deadline:
            raise TranslationFailed("MirrorMaker 2's checkpoints do not come to rest")
        time.sleep(1)
        found = _checkpoints(target)
        if found != seen:
            seen, since = found, time.monotonic()
    return seen


def _checkpoints(target: KafkaCluster) -> Checkpoints:
    client = ClusterClient(ClusterConfig(alias="B", bootstrap_servers=(target.bootstrap_servers,)), "bench-checkpoints")
    found: Checkpoints = {}
    try:
        for alias in sorted({case.theirs for case in CASES}):
            for _, key, value in TopicLog(client, f"{alias}.checkpoints.internal").read(0, 0)[0]:
                one = Checkpoint.read(key, value)
                found[alias, one.group, one.topic] = one.upstream, one.downstream
    except LogUnavailable:
        return {}  # not created yet
    finally:
        client.close()
    return found


def _wait(condition: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + COPY_TIMEOUT_S
    while not condition():
        if time.monotonic() > deadline:
            raise TranslationFailed(otherwise)
        time.sleep(0.5)
