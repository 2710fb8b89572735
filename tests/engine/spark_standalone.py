"""A real Spark standalone cluster: a master and two workers as processes of a bare Python and another HOME."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
import venv
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyspark

from sparkmirror.demo.java import java_home
from sparkmirror.demo.ports import free_ports
from sparkmirror.engine.pack import settings_for, write_pack

WORKERS = 2
CORES = 2
START_S = 40.0


@contextlib.contextmanager
def standalone_cluster(directory: Path) -> Iterator[Mapping[str, str]]:
    """Start it; gives the `spark.*` settings that a mirror needs to run there, as `docs/spark.md` says."""
    bare = directory / "bare"
    venv.create(bare, with_pip=False)
    python = bare / "bin" / "python"
    assert subprocess.run([python, "-c", "import sparkmirror"], capture_output=True, check=False).returncode != 0
    archive = directory / "sparkmirror.tar.gz"
    write_pack(archive)
    (master_port,) = free_ports(1)
    master = f"spark://127.0.0.1:{master_port}"
    common = ["--host", "127.0.0.1", "--webui-port", "0"]
    running = []
    try:
        running.append(_spark(directory, "master", ["Master", *common, "--port", str(master_port)]))
        _wait_for_port(master_port)
        for number in range(WORKERS):
            work = directory / f"worker{number}"
            work.mkdir()
            command = ["Worker", *common, "--cores", str(CORES), "--memory", "1g", "--work-dir", str(work), master]
            running.append(_spark(directory, f"worker{number}", command))
        yield {
            "spark.master": master,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.executor.memory": "512m",
            "spark.pyspark.python": str(python),
            **settings_for(archive),
        }
    finally:
        for process in reversed(running):
            process.terminate()
            process.wait(20)


def _spark(directory: Path, name: str, command: list[str]) -> subprocess.Popen[bytes]:
    home = Path(pyspark.__file__).parent
    arguments = [
        str(home / "bin" / "spark-class"),
        f"org.apache.spark.deploy.{command[0].lower()}.{command[0]}",
        *command[1:],
    ]
    environment = {
        "HOME": str(directory / "home"),
        "PATH": os.defpath,
        "JAVA_HOME": str(java_home()),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "512m",
    }
    with (directory / f"{name}.log").open("wb") as log:
        return subprocess.Popen(arguments, stdout=log, stderr=subprocess.STDOUT, env=environment, cwd=directory)


def _wait_for_port(port: int) -> None:
    deadline = time.monotonic() + START_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            assert time.monotonic() < deadline, "the Spark master did not start"
            time.sleep(0.2)
