"""A terminal's Ctrl-C, or a supervisor's SIGTERM, goes to the whole process group: to Spark's JVM, too."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from lab import KafkaCluster
from py4j.protocol import Py4JJavaError
from tests.support import mirror_process as mp

from sparkmirror.mirror.engine.session import in_one_line


class _Gone:
    """A JVM's exception whose JVM is no more."""

    _target_id = "o1"

    @property
    def _gateway_client(self) -> object:
        raise ConnectionRefusedError("the JVM is gone")


def test_the_words_of_an_error_can_be_asked_for_when_the_jvm_is_gone() -> None:
    error = Py4JJavaError("An error occurred while calling o52.collect.", _Gone())
    with pytest.raises(ConnectionRefusedError):
        str(error)
    assert in_one_line(error) == "An error occurred while calling o52.collect"


@pytest.mark.broker
@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.full)], ids=["SIGTERM", "SIGINT"]
)
def test_a_signal_to_the_process_group_ends_it_in_order(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path, number: int
) -> None:
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 2)
    mp.produce(source_cluster.bootstrap_servers, topic_name, 2, 1_000)
    path = mp.write_properties(
        tmp_path / "mm2.properties", source_cluster.bootstrap_servers, target_cluster.bootstrap_servers, topic_name
    )
    with mp.MirrorProcess(path, tmp_path / "mirror.log") as mirror:
        mp.wait_for(
            lambda: sum(mp.end_offsets(target_cluster.bootstrap_servers, f"A.{topic_name}", 2)) == 1_000, 120, "copied"
        )
        os.killpg(mirror.process.pid, number)
        assert mirror.process.wait(60) == 0
    said = mirror.log.read_text()
    assert "Traceback" not in said
    assert "Py4J" not in said


@pytest.mark.broker
def test_once_ends_after_a_kill(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    """What the killed one has sent may still arrive for minutes, and all of it is there."""
    mp.create_topic(source_cluster.bootstrap_servers, topic_name, 2)
    mp.produce(source_cluster.bootstrap_servers, topic_name, 2, 1_000)
    path = mp.write_properties(
        tmp_path / "mm2.properties", source_cluster.bootstrap_servers, target_cluster.bootstrap_servers, topic_name
    )
    with mp.MirrorProcess(path, tmp_path / "mirror.log") as mirror:
        mp.wait_for(
            lambda: sum(mp.end_offsets(target_cluster.bootstrap_servers, f"A.{topic_name}", 2)) == 1_000, 120, "copied"
        )
        os.killpg(mirror.process.pid, signal.SIGKILL)
    with mp.MirrorProcess(path, tmp_path / "once.log", "--once") as once:
        assert once.process.wait(90) == 0
    assert once.log.read_text().count("epoch-started") <= 2
    assert sum(mp.end_offsets(target_cluster.bootstrap_servers, f"A.{topic_name}", 2)) == 1_000


_JVM_ENDS_FIRST = """
import os, threading, time, psutil
from sparkmirror.mirror.engine.session import start_spark
context = start_spark({}, 1)
assert context.parallelize([1]).map(str).collect() == ["1"]
(jvm,) = (child for child in psutil.Process().children(recursive=True) if "java" in child.name())
jvm.suspend()
told = threading.Thread(target=context._gateway._gateway_client.garbage_collect_object, args=("o1", False))
told.start()
time.sleep(1)
jvm.kill()
told.join()
time.sleep(3)
print("still here")
os._exit(0)
"""


@pytest.mark.full
def test_a_jvm_that_ends_after_a_round_leaves_no_traceback() -> None:
    """Two things of PySpark wait for the JVM then.

    Its accumulator server reads on from a connection that the JVM opened at the first round's end, and a thread of
    Py4J may be telling the JVM of an object that Python has dropped.
    """
    done = subprocess.run(
        [sys.executable, "-c", _JVM_ENDS_FIRST], capture_output=True, text=True, timeout=120, check=True
    )
    assert "still here" in done.stdout
    assert "Traceback" not in done.stderr
