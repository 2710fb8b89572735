"""A real Spark standalone cluster on this machine: a master and workers.

The workers have a bare Python and another HOME.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
import venv
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

from sparkmirror.demo.java import java_home
from sparkmirror.demo.ports import free_ports
from sparkmirror.demo.spawn import spawn
from sparkmirror.errors import SetupError
from sparkmirror.mirror.engine.pack import settings_for, write_pack

WORKERS = 2
CORES = 2
START_S = 40.0
STOP_S = 20.0


@contextlib.contextmanager
def standalone_cluster(
    directory: Path,
    secret: str = "",
    *,
    home: Path | None = None,
    archive: Path | None = None,
    workers: int = WORKERS,
) -> Iterator[Mapping[str, str]]:
    """Start a cluster; yield the `spark.*` settings that a mirror needs there.

    The settings are those in `docs/spark.md`. With a `secret` the cluster authenticates all its connections by the
    secret, and encrypts them. The cluster's Spark is in `home`, by default this Python's own. Workers get `archive`, by
    default the pack that `pack` makes here. The processes die with this process. Raises SetupError if the master does
    not start.
    """
    guarded = {
        "spark.authenticate": "true",
        "spark.authenticate.secret": secret,
        "spark.network.crypto.enabled": "true",
        "spark.master.rest.enabled": "false",  # it asks for no secret
    }
    security = guarded if secret else {}
    file = directory / "spark-security.conf"
    file.touch(0o600)
    file.write_text("".join(f"{key} {value}\n" for key, value in security.items()))
    bare = directory / "bare"
    venv.create(bare, with_pip=False)
    python = bare / "bin" / "python"
    if archive is None:
        archive = directory / "sparkmirror.tar.gz"
        write_pack(archive)
    (master_port,) = free_ports(1)
    master = f"spark://127.0.0.1:{master_port}"
    common = ["--host", "127.0.0.1", "--webui-port", "0", "--properties-file", str(file)]
    home = home or _spark_home()
    running = []
    try:
        running.append(_spark(home, directory, "master", ["Master", *common, "--port", str(master_port)]))
        _wait_for_port(master_port)
        for number in range(workers):
            work = directory / f"worker{number}"
            work.mkdir()
            command = ["Worker", *common, "--cores", str(CORES), "--memory", "1g", "--work-dir", str(work), master]
            running.append(_spark(home, directory, f"worker{number}", command))
        yield {
            "spark.master": master,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.executor.memory": "512m",
            "spark.pyspark.python": str(python),
            **settings_for(archive),
            **security,
        }
    finally:
        for process in reversed(running):
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _spark(home: Path, directory: Path, name: str, command: list[str]) -> subprocess.Popen[bytes]:
    environment = {
        "HOME": str(directory / "home"),
        "PATH": os.defpath,
        "JAVA_HOME": str(java_home()),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "512m",
    }
    script, main = home / "bin" / "spark-class", f"org.apache.spark.deploy.{command[0].lower()}.{command[0]}"
    return spawn([str(script), main, *command[1:]], output=directory / f"{name}.log", environment=environment)


def _spark_home() -> Path:
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SetupError("PySpark is not installed: pip install 'sparkmirror[spark]' brings it")
    return Path(spec.origin).parent


def _wait_for_port(port: int) -> None:
    deadline = time.monotonic() + START_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise SetupError(f"the Spark master does not serve after {START_S:.0f} s") from None
            time.sleep(0.2)
