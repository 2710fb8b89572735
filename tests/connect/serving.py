"""One process' part of `sparkmirror serve`, in this process, with a worker in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from javaproperties import dumps
from tests.support.in_memory_worker import InMemoryWorker

from sparkmirror.connect.basic_auth import Users
from sparkmirror.connect.server import ConnectServer
from sparkmirror.connect.worker_properties import WorkerConfig, read_worker_properties
from sparkmirror.demo.ports import free_ports


def worker_settings(bootstrap_servers: str, group: str, port: int, **more: str) -> dict[str, str]:
    """A worker's own file, as the AWS kit has it: the same for a real worker and for ours."""
    return {
        "bootstrap.servers": bootstrap_servers,
        "group.id": group,
        "listeners": f"http://127.0.0.1:{port}",
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "config.storage.topic": f"connect-configs-{group}",
        "offset.storage.topic": f"connect-offsets-{group}",
        "status.storage.topic": f"connect-status-{group}",
        "config.storage.replication.factor": "1",
        "offset.storage.replication.factor": "1",
        "status.storage.replication.factor": "1",
        "offset.flush.interval.ms": "10000",
        "connector.client.config.override.policy": "All",
        **{key.replace("_", "."): value for key, value in more.items()},
    }


def worker_config(directory: Path, settings: dict[str, str]) -> WorkerConfig:
    """The file, written and read."""
    file = directory / f"connect-{settings['listeners'].rpartition(':')[2]}.properties"
    file.write_text(dumps(settings))
    return read_worker_properties(str(file))


@contextmanager
def serving(
    directory: Path,
    bootstrap_servers: str,
    group: str,
    users: Users | None = None,
    *,
    secure: bool = False,
    **more: str,
) -> Iterator[tuple[str, InMemoryWorker]]:
    """Its URL and its worker; `secure` is over https."""
    settings = worker_settings(bootstrap_servers, group, free_ports(1)[0], **more)
    if secure:
        settings["listeners"] = settings["listeners"].replace("http:", "https:")
    config = worker_config(directory, settings)
    worker = InMemoryWorker(config.worker_id)
    with ConnectServer(config, worker, users):
        yield config.url, worker
