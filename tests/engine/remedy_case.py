"""A mirror of a file on real clusters, and what the doctor finds in it by two looks."""

from __future__ import annotations

import re
import shlex
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab import KafkaCluster
from pyspark.sql import SparkSession
from tests.support import mirror_process as mp
from tests.support.kafka_scripts import write_scripts
from tests.support.mirror_thread import run_mirror
from typer.testing import CliRunner

from sparkmirror.cli.app import app
from sparkmirror.look.doctor.findings import Finding, diagnose
from sparkmirror.mirror.engine.mirror import Mirror

APART_S = 6.0


class Case:
    """A mirror of a file, and what the doctor finds in it by two looks."""

    def __init__(self, source: KafkaCluster, target: KafkaCluster, topic: str, directory: Path, spark: SparkSession):
        self.source, self.target, self.topic, self.directory, self.spark = source, target, topic, directory, spark
        self.file = directory / "mm2.properties"

    def write(self, topics: str = "", **settings: str) -> None:
        servers = self.source.bootstrap_servers, self.target.bootstrap_servers
        settings = {name.replace("_", "."): value for name, value in settings.items()}
        mp.write_properties(
            self.file, *servers, topics or self.topic, {"refresh.topics.interval.seconds": "1", **settings}
        )

    @contextmanager
    def running(self) -> Iterator[Mirror]:
        with run_mirror(self.file, self.spark) as mirror:
            mp.wait_for(lambda: bool(mirror.observer.snapshot().flows), 90, "begun")
            yield mirror

    def copied(self, topic: str = "", partitions: int = 1) -> int:
        return sum(mp.end_offsets(self.target.bootstrap_servers, f"A.{topic or self.topic}", partitions))

    def run(self, told: str, **names: str) -> str:
        """Run the command of a text as it stands there, with these words for its names in capitals; its output."""
        (command,) = re.findall(r"`?(kafka-[\w-]+\.sh [^`]+)`?", told)
        script, *words = shlex.split(re.sub(r"\b[A-Z]+\b", lambda name: names.get(name[0], name[0]), command))
        path = write_scripts(self.directory / "bin") / script
        done = subprocess.run([path, *words], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Error" not in done.stdout + done.stderr, done.stdout + done.stderr
        return done.stdout

    def say(self, verb: str, *words: str) -> str:
        done = CliRunner().invoke(app, [*verb.split(), str(self.file), *words])
        assert done.exit_code == 0, done.output
        return done.output


def found(mirror: Mirror, rule: str) -> Finding | None:
    """The doctor's finding between two looks."""
    before = mirror.observer.snapshot()
    time.sleep(APART_S)
    findings = diagnose(mirror.observer.snapshot(), [before])
    return next((one for one in findings if one.rule == rule), None)


def wait_for_finding(mirror: Mirror, rule: str) -> Finding:
    seen: list[Finding] = []

    def is_found() -> bool:
        finding = found(mirror, rule)
        seen.extend([finding] if finding is not None else [])
        return finding is not None

    mp.wait_for(is_found, 90, f"the doctor finds {rule}")
    return seen[-1]


def wait_until_gone(mirror: Mirror, rule: str) -> None:
    mp.wait_for(lambda: found(mirror, rule) is None, 90, f"{rule} is gone")
