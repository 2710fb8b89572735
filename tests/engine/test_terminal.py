"""What `status`, `top`, `groups`, `topics list` and `explain` print of a mirror at work between real clusters."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from lab import KafkaCluster
from pyspark.sql import SparkSession
from test_observer import commit
from test_verify import plain, write
from tests.support import mirror_process as mp
from tests.support.loss_tools import acknowledge_all
from tests.support.mirror_thread import run_mirror
from typer.testing import CliRunner

from sparkmirror.cli.app import app
from sparkmirror.errors import ClusterUnreachable

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

COUNT = 300


class Terminal:
    """The verbs, on one file."""

    def __init__(self, file: Path) -> None:
        self._file = str(file)

    def say(self, verb: str, *arguments: str) -> tuple[int, str]:
        """Exit code and what is printed."""
        done = CliRunner().invoke(app, [*verb.split(), self._file, *arguments])
        if isinstance(done.exception, ClusterUnreachable):
            return done.exception.exit_code, str(done.exception)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done.exit_code, done.stdout

    def json(self, verb: str, *arguments: str) -> Any:
        """What `-o json` has; nothing while nothing is published."""
        code, text = self.say(verb, *arguments, "-o", "json")
        return [] if code == ClusterUnreachable.exit_code else json.loads(text)

    def explain(self, name: str, *arguments: str) -> tuple[bool, str | None]:
        """Whether it is mirrored, and the reason of the check that decided."""
        (told,) = self.json("explain", name, *arguments)
        return told["mirrored"], told["checks"][-1]["reason"]


def test_the_verbs_tell_what_is_so(
    spark: SparkSession, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    group, tight, late = f"{topic_name}-group", f"{topic_name}-tight", f"{topic_name}-late"
    servers = source_cluster.bootstrap_servers, target_cluster.bootstrap_servers
    acknowledge_all(target_cluster)
    for topic, partitions in ((topic_name, 2), (f"{topic_name}-out", 1), (f"B.{topic_name}", 1)):
        mp.create_topic(servers[0], topic, partitions)
    write(source_cluster, topic_name, plain(range(COUNT)))
    commit(source_cluster, group, topic_name, 200)
    commit(source_cluster, f"{topic_name}-other", topic_name, 100)
    mp.create_topic(servers[0], tight, 1)
    mp.create_topic(servers[1], f"A.{tight}", 1, {"max.message.bytes": "1000"})
    write(source_cluster, tight, [(None, os.urandom(20_000), plain(range(1))[0][2])])
    settings = {
        "topics.exclude": f"{topic_name}-out",
        "sync.topic.configs.enabled": "false",  # the copy keeps its limit
        "groups": group,
        "emit.checkpoints.interval.seconds": "1",
        "sync.group.offsets.enabled": "true",
        "sync.group.offsets.interval.seconds": "1",
    }
    topics = f"{topic_name},{topic_name}-.*,B.{topic_name}"
    terminal = Terminal(mp.write_properties(tmp_path / "mm2.properties", *servers, topics, settings))
    with run_mirror(tmp_path / "mm2.properties", spark):

        def settled() -> bool:
            rows = {row["topic"]: row for row in terminal.json("topics list")}
            groups = terminal.json("groups")
            return (
                rows.get(topic_name, {}).get("lag") == 0
                and rows.get(tight, {}).get("state") == "parked"
                and any(row["reread"] == 0 for row in groups)
            )

        mp.wait_for(settled, 120, "all is published")
        (status,) = terminal.json("status")
        assert (status["flow"], status["state"], status["healthy"]) == ("A->B", "held up", False)
        assert (status["records"], status["lag"], status["parked"], status["losses"]) == (COUNT, 1, 1, 0)
        assert status["progress"] == COUNT / (COUNT + 1)
        assert status["age_s"] < 20
        assert terminal.say("status", "--check")[0] == 1
        assert terminal.say("status")[0] == 0

        rows = {row["topic"]: row for row in terminal.json("topics list")}
        assert rows.keys() == {topic_name, tight}
        assert (rows[topic_name]["target_topic"], rows[topic_name]["partitions"]) == (f"A.{topic_name}", 2)
        assert (rows[topic_name]["state"], rows[tight]["parked"]) == ("running", 1)
        (at,) = [row for row in terminal.json("groups") if row["topic"] is not None]
        assert (at["group"], at["topic"], at["source_offset"], at["target_offset"]) == (group, topic_name, 200, 200)
        assert (at["source_lag"], at["target_lag"], at["state"]) == (COUNT - 200, COUNT - 200, "synced")
        (shown,) = terminal.json("top")
        assert [row["partition"] for row in shown["worst_partitions"]] == [f"{tight}-0"]
        assert sum(row["partitions"] for row in shown["tasks"]) == 3
        assert f"A.{topic_name}" in terminal.say("topics list")[1]

        assert terminal.explain(topic_name) == (True, None)
        assert terminal.explain(f"{topic_name}:1") == (True, None)
        assert terminal.explain(f"{topic_name}:7") == (False, "not_at_source")
        assert terminal.explain(tight) == (False, "parked")
        assert terminal.explain(f"{topic_name}-out") == (False, "excluded")
        assert terminal.explain(f"B.{topic_name}") == (False, "cycle")
        assert terminal.explain("mm2-offset-syncs.B.internal") == (False, "not_listed")
        assert terminal.explain(group) == (True, None)
        assert terminal.explain(f"{topic_name}-other") == (False, "not_listed")
        nowhere = terminal.json("explain", f"{topic_name}-nowhere")
        assert [(told["kind"], told["checks"][-1]["reason"]) for told in nowhere] == [
            ("topic", "not_at_source"),
            ("group", "not_listed"),
        ]

        terminal.say("pause", "--topics", topic_name)
        assert terminal.explain(topic_name) == (False, "paused")
        terminal.say("resume")
        mp.wait_for(lambda: terminal.explain(topic_name) == (True, None), 30, "it continues")
        terminal.say("throttle", "5M")
        (told,) = terminal.json("explain", topic_name)
        assert (told["mirrored"], told["checks"][-2]["reason"]) == (True, "capped")
        terminal.say("throttle", "off")

        mp.create_topic(servers[0], late, 1)
        mp.wait_for(lambda: terminal.explain(late) == (True, None), 60, "the new topic is mirrored")
        mp.alter_topic(servers[1], f"A.{tight}", {"max.message.bytes": "100000"})
        mp.wait_for(lambda: terminal.say("status", "--check")[0] == 0, 90, "it is healthy")

        with subprocess.Popen(
            [mp.COMMAND, "status", str(tmp_path / "mm2.properties"), "--watch"], stdout=subprocess.PIPE, text=True
        ) as watching:
            assert watching.stdout is not None
            lines = [watching.stdout.readline() for _ in range(2)]
            watching.terminate()
        assert all(line.startswith("A->B: caught up; ") for line in lines), lines
        terminal.say("topics done", "--topics", late)
        mp.wait_for(lambda: terminal.explain(late) == (False, "released"), 60, "the topic is left alone")
    mp.wait_for(lambda: terminal.say("status", "--stale", "1")[0] == 3, 10, "the status is old")
    assert terminal.explain(topic_name, "--stale", "1") == (False, "nobody_works")
    assert terminal.explain(group, "--stale", "1") == (False, "nobody_works")
