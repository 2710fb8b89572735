"""Passwords that stand in the file itself, and the places where Spark and the system show what runs."""

from __future__ import annotations

import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from lab import Authority, KafkaCluster
from tests.support import mirror_process as mp
from tests.support.loaded_flow import PARTITIONS, assert_copied
from tests.support.secure_clusters import of_cluster, plain_settings, scram_settings, scram_user

from sparkmirror.demo.ports import free_ports

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

PLAIN_PASSWORD = "hunter2-plain"
SCRAM_PASSWORD = "hunter2-of-scram"
SPARK_SECRET = "hunter2-of-spark"
PAGES = ("environment", "jobs", "stages", "executors", "executors/threadDump/?executorId=driver", "SQL", "storage")
DATA = ("environment", "jobs", "stages?details=true", "allexecutors", "sql?details=true")


def test_sparks_pages_and_its_event_log_do_not_have_them(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, authority: Authority, topic_name: str, tmp_path: Path
) -> None:
    """Another user of the machine can read all of these: pages, their REST twins, event logs and command lines."""
    here, there = source_cluster.bootstrap_servers, target_cluster.bootstrap_servers
    mp.create_topic(here, topic_name, PARTITIONS)
    scram_user(target_cluster, "scribe", SCRAM_PASSWORD)
    (port,) = free_ports(1)
    events = tmp_path / "events"
    events.mkdir()
    path = mp.write_properties(
        tmp_path / "mm2.properties",
        source_cluster.servers("PLAIN"),
        target_cluster.servers("SCRAM"),
        topic_name,
        {
            **of_cluster("A", plain_settings("mirror", PLAIN_PASSWORD)),
            **of_cluster("B", scram_settings(authority, "scribe", SCRAM_PASSWORD)),
            "spark.ui.enabled": "true",
            "spark.ui.port": str(port),
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": events.as_uri(),
            "spark.eventLog.compress": "false",
            "spark.authenticate.secret": SPARK_SECRET,
        },
    )
    log = tmp_path / "mirror.log"
    with mp.load(here, topic_name, PARTITIONS, per_s=200), mp.MirrorProcess(path, log, "--verbose") as mirror:
        mp.wait_for(lambda: sum(mp.end_offsets(there, f"A.{topic_name}", PARTITIONS)) > 1000, 120, "records")
        root = f"http://127.0.0.1:{port}"
        application = _read(f"{root}/api/v1/applications").partition('"id" : "')[2].partition('"')[0]
        shown = {page: _read(f"{root}/{page}") for page in PAGES}
        shown |= {f"api {data}": _read(f"{root}/api/v1/applications/{application}/{data}") for data in DATA}
        shown["command lines"] = "\n".join(map(mp.command_line, mirror.family()))
        assert mirror.terminate() == 0
    shown["log"] = log.read_text()
    written = [file for file in events.rglob("*") if file.is_file() and file.stat().st_size]
    shown |= {file.name: file.read_text(errors="replace") for file in written}
    assert written
    assert "spark.eventLog.dir" in shown["environment"]
    assert any("SparkListenerTaskEnd" in text for text in shown.values())
    for place, text in shown.items():
        assert len(text) > 1, place
        for secret in (PLAIN_PASSWORD, SCRAM_PASSWORD, SPARK_SECRET):
            assert secret not in text, place
    with mp.MirrorProcess(path, log, "--once") as last:
        assert last.process.wait(120) == 0, log.read_text()[-3000:]
    assert_copied(source_cluster, target_cluster, {topic_name: f"A.{topic_name}"})
    verified = subprocess.run([mp.COMMAND, "verify", str(path)], capture_output=True, text=True, timeout=120)
    assert verified.returncode == 0, verified.stdout + verified.stderr


def _read(url: str) -> str:
    """A page, as soon as the application is known there."""
    pages: list[str] = []

    def found() -> bool:
        try:
            with urllib.request.urlopen(url, timeout=20) as answer:  # noqa: S310
                pages.append(answer.read().decode())
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
        return bool(pages)

    mp.wait_for(found, 20, url)
    return pages[0]
