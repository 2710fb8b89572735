"""Whatever is killed, each transformed record is at the target once, in order: in pumps and in queries."""

from __future__ import annotations

import contextlib
import random
import signal
import time
from bisect import bisect_left
from pathlib import Path

import pytest
from lab import KafkaCluster
from test_transforms_on_the_way import CONNECT, Seen, records_of
from tests.support import mirror_process as mp

import sparkmirror as sm

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

PARTITIONS = 2
PUMPED = {
    "A->B.transforms": "odd, seen",
    "A->B.transforms.odd.type": f"{CONNECT}Filter",
    "A->B.transforms.odd.predicate": "isMarked",
    "A->B.transforms.seen.type": f"{CONNECT}InsertHeader",
    "A->B.transforms.seen.header": "seen",
    "A->B.transforms.seen.value.literal": "once",
    "A->B.transforms.seen.predicate": "isPumped",
    "A->B.predicates": "isMarked, isPumped",
    "A->B.predicates.isMarked.type": f"{CONNECT}predicates.RecordIsTombstone",
    "A->B.predicates.isPumped.type": f"{CONNECT}predicates.TopicNameMatches",
    "A->B.predicates.isPumped.pattern": ".*-pumped",
}
SQL = "SELECT topic, partition, offset, timestamp, key, reverse(value) AS value FROM records WHERE offset % 3 > 0"


@pytest.mark.parametrize("seed", [1, 2])
def test_processes_and_workers_are_killed_under_load(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path, seed: int
) -> None:
    """Kill the process with all it has started, or a worker, at random moments; another process continues."""
    pumped, queried = f"{topic_name}-pumped", f"{topic_name}-queried"
    for topic in (pumped, queried):
        mp.create_topic(source_cluster.bootstrap_servers, topic, PARTITIONS)
    path = mp.write_properties(
        tmp_path / "mm2.properties",
        source_cluster.bootstrap_servers,
        target_cluster.bootstrap_servers,
        f"{topic_name}-.*",
        PUMPED | {"A->B.transform.q.topics": ".*-queried", "A->B.transform.q.sql": SQL},
    )
    pauses = random.Random(seed)

    def copied(topic: str) -> int:
        return sum(mp.end_offsets(target_cluster.bootstrap_servers, f"A.{topic}", PARTITIONS))

    with contextlib.ExitStack() as stack:
        for topic in (pumped, queried):
            stack.enter_context(mp.load(source_cluster.bootstrap_servers, topic, PARTITIONS, per_s=1000))
        for number in range(8):
            with mp.MirrorProcess(path, tmp_path / f"{number}.log") as mirror:
                before = {topic: copied(topic) if number else 0 for topic in (pumped, queried)}
                for topic, known in before.items():
                    mp.wait_for(lambda topic=topic, known=known: copied(topic) > known, 120, f"{topic} is copied")  # type: ignore[misc] # bound by default
                time.sleep(3 * pauses.random())
                if number % 2:
                    for worker in mirror.workers():
                        worker.send_signal(signal.SIGKILL)
                    time.sleep(3 * pauses.random())
                mirror.kill_all()
    with mp.MirrorProcess(path, tmp_path / "last.log", "--once") as mirror:
        assert mirror.process.wait(240) == 0, mirror.log.read_text()[-3000:]
    for partition in range(PARTITIONS):
        originals = records_of(source_cluster, pumped, partition)
        copies = records_of(target_cluster, f"A.{pumped}", partition)
        assert without_offsets(copies) == [
            (each.timestamp, each.key, each.value, (("seen", b"once"),)) for each in originals
        ]
        originals = records_of(source_cluster, queried, partition)
        copies = records_of(target_cluster, f"A.{queried}", partition)
        assert len(copies) > 1000
        kept = [each.offset for each in originals if each.offset % 3]
        with sm.Translator(path) as translator:
            for offset in range(0, len(originals), 11):
                translated = translator.translate(queried, partition, offset)
                assert translated.offset == bisect_left(kept, offset), translated
                back = translator.translate(f"A.{queried}", partition, translated.offset, reverse=True)
                # Behind the last kept record the copy has no record whose original would tell.
                assert translated.offset == len(kept) or back.offset == kept[translated.offset], back
        assert without_offsets(copies) == [
            (each.timestamp, each.key, (each.value or b"")[::-1], ()) for each in originals if each.offset % 3
        ]


def without_offsets(records: list[Seen]) -> list[tuple[object, ...]]:
    return [each[1:] for each in records]
