"""The chart's Spark cluster: its containers' own arguments and environment, run as processes, and a job on them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.deploy.charts import only, rendered, settings
from tests.support import mirror_process as mp

from sparkmirror.demo.java import java_home
from sparkmirror.demo.ports import free_ports
from sparkmirror.demo.spawn import spawn

pytestmark = [pytest.mark.spark, pytest.mark.full]

HERE = "127.0.0.1"
SECRET = "hunter2-of-spark"
SOURCES = str(Path(__file__).parents[2] / "src")
RECOVERY = "/var/lib/sparkmirror/recovery"
_JOB = """
import json, sys
from pyspark import SparkConf, SparkContext
with SparkContext(conf=SparkConf().setAll(list(json.loads(sys.argv[1]).items()))) as spark:
    print("sum", spark.parallelize(range(100), 4).sum())
    # The driver is one of them.
    print("executors", spark._jsc.sc().getExecutorMemoryStatus().size() - 1)
"""


@pytest.fixture(scope="module")
def objects() -> list[dict[str, Any]]:
    return rendered("--set", "workers.max=2,workers.min=2,workers.secret=spark,spark.executor.cores=2")


def container(objects: list[dict[str, Any]], kind: str, name: str) -> dict[str, Any]:
    (found,) = only(objects, kind, name)["spec"]["template"]["spec"]["containers"]
    return dict(found)


def environment(made: Mapping[str, Any], directory: Path) -> dict[str, str]:
    """The variables of a container, its Secret's value, and directories of this machine."""
    plain = {each["name"]: str(each["value"]) for each in made["env"] if "value" in each}
    secret = {each["name"] for each in made["env"] if "secretKeyRef" in each.get("valueFrom", {})}
    told = {name: value.replace(RECOVERY, str(directory / "recovery")) for name, value in plain.items()}
    own = {"PATH": os.defpath, "JAVA_HOME": str(java_home()), "SPARK_LOCAL_IP": HERE, "PYTHONPATH": SOURCES}
    return {**own, "SPARK_WORKER_DIR": str(directory / "work"), **told, **dict.fromkeys(secret, SECRET)}


@contextmanager
def running(made: Mapping[str, Any], directory: Path, master: int, *more: str) -> Iterator[Path]:
    """A container's process, with the master at another port; yields its log."""
    words = [word.replace("$(SPARKMIRROR_POD_IP)", HERE) for word in made["args"]]
    words = [f"spark://{HERE}:{master}" if word.startswith("spark://") else word for word in words]
    log = directory / f"{made['name']}.log"
    command = [sys.executable, "-m", "sparkmirror.mirror.engine.standalone", *words, "--webui-port", "0", *more]
    process = spawn(command, output=log, environment=environment(made, directory))
    try:
        yield log
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def job(told: Mapping[str, str], secret: str) -> str:
    """Run one as the mirror's driver would; what it prints."""
    ports = {"spark.driver.port": "0", "spark.driver.blockManager.port": "0", "spark.ui.enabled": "false"}
    here = {"spark.driver.host": HERE, "spark.driver.bindAddress": HERE, "spark.authenticate.secret": secret}
    given = json.dumps({**told, **ports, **here, "spark.app.name": "job", "spark.pyspark.python": sys.executable})
    done = subprocess.run(
        [sys.executable, "-c", _JOB, given],
        env={**os.environ, "JAVA_HOME": str(java_home())},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    return done.stdout if done.returncode == 0 else done.stderr


def test_a_job_runs_on_the_workers(objects: list[dict[str, Any]], tmp_path: Path) -> None:
    """Of who has the secret; the executors fit into the workers, and the workers' memory is theirs."""
    (port,) = free_ports(1)
    told = settings(container(objects, "Deployment", "ours-sparkmirror")["args"]) | {
        "spark.master": f"spark://{HERE}:{port}"
    }
    master = container(objects, "StatefulSet", "ours-sparkmirror-master")
    worker = container(objects, "Deployment", "ours-sparkmirror-worker")
    with running(master, tmp_path, port, "--port", str(port)) as log:
        mp.wait_for(lambda: "I have been elected leader" in log.read_text(), 60, "the master is at work")
        with running(worker, tmp_path, port):
            mp.wait_for(lambda: "Registering worker" in log.read_text(), 60, "the worker is known")
            assert "with 2 cores, 512.0 MiB RAM" in log.read_text()
            said = job(told, SECRET)
            assert "sum 4950\nexecutors 1\n" in said, said
            assert "sum 4950" not in job(told, "a guess")
            assert list((tmp_path / "recovery").iterdir()), "what a master that replaces this one reads"
