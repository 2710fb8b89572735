"""Streaming queries into Kafka with kills in the middle of batches, and what is in the topics afterwards."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil
from chaos.replicas import place, replicas
from kafka import KafkaConsumer, TopicPartition
from lab import KafkaCluster
from tests.support import mirror_process as mp

JOB = Path(__file__).with_name("sink_job.py")
FILES, LINES = 20, 120
KILLS = 10
PARTITIONS = 4
LONGEST_S = 600
EVERYTHING = ("worker", "worker", "driver", "jvm", "broker")

Seen = Counter[tuple[bytes, bytes, str]]


class Job:
    """The query's process, started again whenever it was killed."""

    def __init__(self, face: str, servers: str, topic: str, directory: Path, settings: Mapping[str, str]) -> None:
        words = [f"{key}={value}" for key, value in settings.items()]
        self._words = [face, servers, topic, str(directory / "in"), str(directory / "ck"), *words]
        self._directory = directory
        self.log = directory / "job.log"
        self.process = self._start()
        self.starts = 1

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, str(JOB), *self._words],
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=self.log.open("ab"),
        )

    @property
    def batches(self) -> int:
        """Number of committed batches."""
        return self._files("commits")

    def is_in_a_batch(self) -> bool:
        """True if one is under way; waits a moment for one."""
        until = time.monotonic() + 4
        while self._files("offsets") <= self.batches and time.monotonic() < until:
            time.sleep(0.02)
        return self._files("offsets") > self.batches

    def _files(self, log: str) -> int:
        return len(list((self._directory / "ck" / log).glob("[0-9]*")))

    def jvms(self) -> list[psutil.Process]:
        return [one for one in self._family() if one.name() == "java"]

    def workers(self) -> list[psutil.Process]:
        """The Python workers of its tasks; waits a moment for some."""
        until = time.monotonic() + 4
        while not (workers := mp.workers_of(self._family())) and time.monotonic() < until:
            time.sleep(0.02)
        return workers

    def _family(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def has_ended(self) -> bool:
        """Start it again if it failed; True once all its files are read."""
        code = self.process.poll()
        if code is None:
            return False
        if code != 0:
            self.process = self._start()
            self.starts += 1
        return code == 0


def executors() -> list[psutil.Process]:
    """Executor JVMs of the standalone cluster that this process started."""
    children = psutil.Process().children(recursive=True)
    return [one for one in children if "CoarseGrainedExecutorBackend" in mp.command_line(one)]


def move_a_leader(cluster: KafkaCluster, topics: Sequence[str], chance: random.Random) -> None:
    """Have a partition's two replicas on the brokers that don't lead it; returns when another one leads."""
    at = TopicPartition(chance.choice(topics), chance.randrange(PARTITIONS))
    leader = replicas(cluster, topics)[at].leader
    others = [broker.node_id for broker in cluster.brokers if broker.node_id != leader]
    place(cluster, {at: chance.sample(others, 2)})
    mp.wait_for(lambda: replicas(cluster, topics)[at].leader not in (leader, -1), 30, "another leader")


def wreck(job: Job, what: str, cluster: KafkaCluster, topics: Sequence[str], chance: random.Random) -> bool:
    """Kill or move something in the middle of a batch; False if no batch is under way."""
    if not job.is_in_a_batch():
        return False
    time.sleep(chance.uniform(0.5, 3))
    try:
        if what == "worker":
            chance.choice(job.workers()).kill()
        elif what == "jvm":
            chance.choice(job.jvms()).kill()
        elif what == "executor":
            chance.choice(executors()).kill()
        elif what == "driver":
            job.kill()
        elif what == "leader":
            move_a_leader(cluster, topics, chance)
        else:
            broker = chance.choice(cluster.brokers)
            broker.kill()
            time.sleep(chance.uniform(0.5, 4))
            broker.restart()
    except (psutil.NoSuchProcess, IndexError):
        return False
    return True


def run_killed(
    seed: int,
    cluster: KafkaCluster,
    topic: str,
    directory: Path,
    *,
    face: str = "each",
    kinds: Sequence[str] = EVERYTHING,
    settings: Mapping[str, str] | None = None,
    longest_s: float = LONGEST_S,
) -> Counter[str]:
    """Run the query with kills until it has read all its files; return the kills by what they hit."""
    topics = (topic, f"{topic}-b")
    for name in topics:
        mp.create_topic(cluster.bootstrap_servers, name, PARTITIONS, replication_factor=2)
    (directory / "in").mkdir(parents=True)
    for number in range(FILES):
        lines = [f"{'ab'[line % 2]}-{number}-{line}\n" for line in range(LINES)] * 2
        (directory / "in" / f"{number:03}.txt").write_text("".join(lines))
    chance, kills = random.Random(seed), Counter[str]()
    job = Job(face, cluster.bootstrap_servers, topic, directory, settings or {})
    until = time.monotonic() + longest_s
    try:
        while not job.has_ended():
            assert time.monotonic() < until, (kills, job.starts, job.log.read_text()[-2000:])
            time.sleep(chance.uniform(0.5, 3))
            if kills.total() < KILLS and job.batches:
                what = chance.choice(kinds)
                kills[what] += wreck(job, what, cluster, topics, chance)
    finally:
        if job.process.poll() is None:
            job.kill()
    print(f"{face}, seed {seed}: {dict(kills)}, {job.batches} batches, {job.starts} starts")
    return +kills


def read(cluster: KafkaCluster, topic: str) -> Seen:
    """Key, value and header of each record, with its count."""
    consumer = KafkaConsumer(bootstrap_servers=cluster.bootstrap_servers, enable_auto_commit=False)
    partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    consumer.assign(partitions)
    consumer.seek_to_beginning()
    ends = consumer.end_offsets(partitions)
    seen: Seen = Counter()
    while any(consumer.position(at) < ends[at] for at in partitions):
        for found in consumer.poll(1000).values():
            seen.update((record.key, record.value, str(record.headers)) for record in found)
    consumer.close()
    return seen


def expected(letter: str) -> Seen:
    values = [
        b"%s-%d-%d" % (letter.encode(), number, line)
        for number in range(FILES)
        for line in range(LINES)
        if "ab"[line % 2] == letter
    ]
    return Counter((value, value, str([("n", value)])) for value in values)


def compared(cluster: KafkaCluster, topic: str) -> tuple[int, int]:
    """Number of records that are there too often, and of those that are missing."""
    twice = lost = 0
    for letter, name in (("a", topic), ("b", f"{topic}-b")):
        seen = read(cluster, name)
        twice += (seen - expected(letter)).total()
        lost += (expected(letter) - seen).total()
    return twice, lost
