"""A broker's data directory, formatted as `kafka-storage.sh format` formats it.

The tool, a JVM, runs only once for each Kafka version; the feature levels that it wrote are kept in the cache. A
formatted directory's rest is four lines that name the cluster and the node.
"""

from __future__ import annotations

import base64
import shutil
import subprocess
import tempfile
import uuid
from pathlib import Path

from sparkmirror.demo.cache import locked
from sparkmirror.demo.jars import broker_jars, class_path, jar_directory
from sparkmirror.demo.java import java
from sparkmirror.errors import SetupError

_FEATURES = "features"
_IDENTITY = "meta.properties"


def new_id() -> str:
    """Return a random id as Kafka writes ids: 22 characters of URL-safe base64."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        if not text.startswith("-"):  # Kafka's tools would take such an id for an option
            return text


def format_storage(metadata: Path, logs: set[Path], *, cluster_id: str, node_id: int, version: str) -> None:
    """Make directories a node's empty storage; leave formatted ones alone.

    The Kafka `version`'s feature levels are next to the metadata. The version must be 3.3 or newer. Raises SetupError
    if there are no jars or no Java, or if Kafka's tool fails.
    """
    for directory in {metadata, *logs}:
        identity = directory / _IDENTITY
        if identity.exists():
            continue
        directory.mkdir(parents=True, exist_ok=True)
        if directory == metadata:
            shutil.copytree(_features(version), directory, dirs_exist_ok=True)
        identity.write_text(f"version=1\ncluster.id={cluster_id}\nnode.id={node_id}\ndirectory.id={new_id()}\n")


def _features(version: str) -> Path:
    """Return a directory with the feature levels that a new cluster starts from.

    The levels are in `bootstrap.checkpoint`, from Kafka 4.4 on in the metadata log's first snapshot (KIP-1170).
    """
    kept = jar_directory(broker_jars(version)) / _FEATURES
    if not kept.exists():
        with locked(kept):
            if not kept.exists():
                _run_format_tool(kept, version)
    return kept


def _run_format_tool(kept: Path, version: str) -> None:
    with tempfile.TemporaryDirectory(dir=kept.parent) as scratch:
        data, properties = Path(scratch, "data"), Path(scratch, "server.properties")
        properties.write_text(
            "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@127.0.0.1:9093\n"
            "listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093\n"
            f"controller.listener.names=CONTROLLER\nlog.dirs={data}\n"
        )
        tool = (java(), "-cp", class_path(broker_jars(version)), "kafka.tools.StorageTool")
        formatting = subprocess.run(
            [*tool, "format", "--cluster-id", new_id(), "--config", str(properties)],
            capture_output=True,
            text=True,
        )
        if formatting.returncode:
            raise SetupError(f"Kafka's storage tool failed: {(formatting.stderr or formatting.stdout).strip()}")
        (data / _IDENTITY).unlink()
        data.rename(kept)
