"""The Sparks that people have: flows, kills and `verify` on the newest PySpark of minor versions in the range."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tarfile
import time
import venv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from lab import KafkaCluster
from lab.spark_cluster import standalone_cluster
from tests.support import mirror_process as mp
from tests.support.loaded_flow import PARTITIONS, LoadedFlow, assert_copied

from sparkmirror.demo.cache import cache_root, locked

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full]

ROOT = Path(__file__).parents[2]
CANCELLED_ROUND = ROOT / "tests" / "engine" / "cancelled_round.py"
VERSIONS = ("3.5", "4.0", "4.3")
INSTALL_S = 900
PROGRAM_S = 400
EXECUTORS_S = 240.0
"""An executor unpacks 350 MB before it begins, of which a busy machine takes long."""
END_S = 60.0
"""An executor that has just been killed may hold up the end of a round until it is cancelled."""
BACKLOG = 8_000
ROWS = """
import json, sys
import pyspark_sparkmirror
from pyspark.sql import SparkSession
from sparkmirror.source.frames import read_records

options, copies, directory = json.loads(sys.argv[1]), sys.argv[2:4], sys.argv[4]
servers = {"kafka.bootstrap.servers": options["kafka.bootstrap.servers"]}
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
spark = builder.config("spark.driver.host", "127.0.0.1").getOrCreate()
counts = [read_records(spark, options).count(), read_records(spark, options, ["key", "offset"]).count()]
if hasattr(pyspark_sparkmirror, "DefaultSource"):
    counts.append(spark.read.format("sparkmirror").options(**options).load().count())
    stream = spark.readStream.format("sparkmirror").options(**options, startingOffsets="earliest").load()
    writer = stream.writeStream.format("parquet").option("checkpointLocation", directory + "/checkpoint")
    query = writer.trigger(availableNow=True).start(directory + "/rows")
    query.awaitTermination()
    counts.append(spark.read.parquet(directory + "/rows").count())
    columns = ["key", "value", "headers", "partition", "timestamp"]
    rows = spark.read.format("sparkmirror").options(**options).load().select(columns)
    rows.write.format("sparkmirror").options(**servers, topic=copies[0]).mode("append").save()
    writer = stream.select(columns).writeStream.format("sparkmirror").options(**servers, topic=copies[1])
    query = writer.option("checkpointLocation", directory + "/copied").trigger(availableNow=True).start()
    query.awaitTermination()
    counts += [read_records(spark, servers | {"subscribe": name}).count() for name in copies]
print(json.dumps(counts))
spark.stop()
"""
HOME_OF = "import pyspark; print(pyspark.__path__[0], pyspark.__version__)"


@dataclass(frozen=True)
class Installed:
    """A Python environment with this checkout and a Spark."""

    bin: Path
    spark_home: Path

    def run(self, *command: str, variables: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment to its end."""
        path, environment = str(self.bin / command[0]), own_environment() | dict(variables or {})
        return subprocess.run([path, *command[1:]], capture_output=True, text=True, timeout=PROGRAM_S, env=environment)


class FlowOn(LoadedFlow):
    """A loaded flow whose processes run on another Spark."""

    def __init__(
        self, installed: Installed, source: KafkaCluster, target: KafkaCluster, topic: str, directory: Path
    ) -> None:
        super().__init__(source, target, topic, directory)
        self.installed = installed

    def start(self, *arguments: str, log: str = "mirror", properties: Path | None = None) -> mp.MirrorProcess:
        """One more process of that Spark's environment."""
        command = (str(self.installed.bin / "sparkmirror"), "run")
        path = properties or self.properties
        return mp.MirrorProcess(path, self.directory / f"{log}.log", *arguments, command=command)

    def verify(self, properties: Path | None = None) -> None:
        """Compare source and target by `sparkmirror verify` of that Spark."""
        verified = self.installed.run("sparkmirror", "verify", str(properties or self.properties))
        assert verified.returncode == 0, verified.stdout + verified.stderr
        assert "equal" in verified.stdout


def own_environment() -> dict[str, str]:
    """What programs get: not the Python that a session of the tests' own has set for its workers."""
    return {key: value for key, value in os.environ.items() if key != "PYSPARK_PYTHON"}


@pytest.fixture(scope="module", params=VERSIONS)
def installed(request: pytest.FixtureRequest) -> Iterator[Installed]:
    """An environment with one of the Sparks."""
    with environment(request.param, "--editable", f"{ROOT}[spark]", f"pyspark=={request.param}.*") as programs:
        told = subprocess.run([programs / "python", "-c", HOME_OF], capture_output=True, text=True, check=True)
        home, version = told.stdout.split()
        assert version.startswith(f"{request.param}.")
        yield Installed(programs, Path(home))


@pytest.fixture(scope="module")
def without_spark() -> Iterator[Path]:
    """The programs of an environment that has what `pip install sparkmirror` brings, which is no Spark."""
    with environment("none", "--editable", str(ROOT)) as programs:
        yield programs


@contextlib.contextmanager
def environment(name: str, *packages: str) -> Iterator[Path]:
    """Make it in the cache, once for each state of pyproject.toml; nobody else changes it meanwhile."""
    directory = cache_root() / "sparks" / name
    asked = (ROOT / "pyproject.toml").read_bytes() + repr((packages, sys.version)).encode()
    stamp, mark = directory / "sparkmirror-stamp", hashlib.sha256(asked).hexdigest()
    with locked(directory):
        if not stamp.exists() or stamp.read_text() != mark:
            stamp.unlink(missing_ok=True)
            venv.create(directory, with_pip=True)
            command = [str(directory / "bin" / "python"), "-m", "pip", "install", "--quiet", *packages]
            subprocess.run(command, check=True, timeout=INSTALL_S, stdin=subprocess.DEVNULL)
            stamp.write_text(mark)
        yield directory / "bin"


@pytest.fixture
def flow(
    installed: Installed, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> FlowOn:
    """A flow with a backlog that has headers, nulls and tombstones."""
    made = FlowOn(installed, source_cluster, target_cluster, topic_name.replace("[", "-"), tmp_path)
    mp.produce(source_cluster.bootstrap_servers, made.topic, PARTITIONS, BACKLOG)
    return made


def jvms(mirror: mp.MirrorProcess) -> list[psutil.Process]:
    """The JVMs that a mirror has started."""
    return [one for one in mirror.family() if "org.apache.spark.deploy.SparkSubmit" in mp.command_line(one)]


def test_records_are_rows(installed: Installed, source_cluster: KafkaCluster, topic_name: str, tmp_path: Path) -> None:
    """By the function on each Spark, and by the data source, batch and stream, and written, where Spark has such."""
    topic = topic_name.replace("[", "-").replace("]", "")
    copies = [f"{topic}-{kind}" for kind in ("batch", "stream")]
    for name in (topic, *copies):
        mp.create_topic(source_cluster.bootstrap_servers, name, 2)
    mp.produce(source_cluster.bootstrap_servers, topic, 2, 300)
    options = {
        "kafka.bootstrap.servers": source_cluster.bootstrap_servers,
        "subscribe": topic,
        "includeHeaders": "true",
    }
    worker = {"PYSPARK_PYTHON": str(installed.bin / "python")}
    done = installed.run("python", "-c", ROWS, json.dumps(options), *copies, str(tmp_path), variables=worker)
    assert done.returncode == 0, done.stderr[-3000:]
    counts = json.loads(done.stdout.splitlines()[-1])
    assert len(counts) in (2, 6)
    assert set(counts) == {300}


def test_workers_and_the_jvm_are_killed_under_load(flow: FlowOn) -> None:
    with flow.load():
        with flow.start() as mirror:
            for _ in range(3):
                flow.wait_for_progress()
                workers = mirror.workers()
                assert workers, "no Python worker is running"
                random.choice(workers).send_signal(signal.SIGKILL)
                time.sleep(1.0)
            flow.wait_for_progress()
            (jvm,) = jvms(mirror)
            jvm.send_signal(signal.SIGKILL)
            assert mirror.process.wait(60) == 3
            said = [line for line in mirror.log.read_text().splitlines() if line.startswith("sparkmirror: ")]
            assert len(said) == 1, said
            assert "Spark has ended" in said[0]
            assert "Traceback" not in mirror.log.read_text()
        with flow.start(log="again") as mirror:
            flow.wait_for_progress()
            assert mirror.terminate() == 0
    flow.finish()
    flow.verify()


def test_executors_are_killed_under_load(flow: FlowOn, tmp_path: Path) -> None:
    """On a cluster of that Spark, with the archive that `pack` of its environment writes."""
    archive = tmp_path / "packed.tar.gz"
    packed = flow.installed.run("sparkmirror", "pack", str(archive))
    assert packed.returncode == 0, packed.stderr
    with tarfile.open(archive) as files:
        packages = {name.partition("/")[0] for name in files.getnames()}
    assert {"sparkmirror", "pyarrow", "kafka"} <= packages
    assert not packages & {"pyspark", "py4j"}
    with standalone_cluster(tmp_path, home=flow.installed.spark_home, archive=archive) as settings:
        properties = flow.write_properties("standalone.properties", flow.target.bootstrap_servers, settings)
        with flow.load(), flow.start(properties=properties) as mirror:
            for _ in range(2):
                flow.wait_for_progress(EXECUTORS_S)
                random.choice(executors()).send_signal(signal.SIGKILL)
                time.sleep(2)
            flow.wait_for_progress(EXECUTORS_S)
            assert mirror.terminate(END_S) == 0
        flow.finish(properties, EXECUTORS_S)
        flow.verify(properties)


def executors() -> list[psutil.Process]:
    """Executor JVMs of the clusters that this process started."""
    children = psutil.Process().children(recursive=True)
    return [one for one in children if "CoarseGrainedExecutorBackend" in mp.command_line(one)]


def test_a_round_is_cancelled_with_its_tasks(installed: Installed) -> None:
    ran = installed.run("python", str(CANCELLED_ROUND))
    assert ran.returncode == 0, ran.stderr
    outcome = json.loads(ran.stdout.splitlines()[-1])
    assert outcome["ended_s"] is not None
    assert outcome["worker_gone_s"] is not None
    assert outcome["other_goes_on"]


def test_the_spark_of_spark_home(flow: FlowOn, without_spark: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Python without PySpark takes the one that is unpacked there, as on images that bring a Spark."""
    home = flow.installed.spark_home
    flow.installed = Installed(without_spark, home)
    refused = flow.installed.run("sparkmirror", "verify", str(flow.properties))
    assert refused.returncode == 3
    assert "PySpark is needed and can't be imported" in refused.stderr
    monkeypatch.setenv("SPARK_HOME", str(home))
    flow.finish()
    flow.verify()


def test_a_job_of_spark_submit(flow: FlowOn, tmp_path: Path) -> None:
    """The verbs in a file, for those who can only submit one (docs/spark.md)."""
    job = tmp_path / "job.py"
    job.write_text("from sparkmirror.cli import main\n\nmain()\n")
    python = {"PYSPARK_PYTHON": str(flow.installed.bin / "python")}
    command = ["spark-submit", str(job), "run", str(flow.properties), "--once"]
    ran = flow.installed.run(*command, variables=python)
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert_copied(flow.source, flow.target, {flow.topic: f"A.{flow.topic}"}, BACKLOG)
