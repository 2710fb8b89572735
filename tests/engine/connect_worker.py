"""A real Kafka Connect worker, in distributed mode, asked through its REST interface."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from javaproperties import dumps
from lab import KafkaCluster

from sparkmirror.demo.jars import MIRROR_MAKER, class_path
from sparkmirror.demo.jvm import QUICK_START, Jvm
from sparkmirror.demo.ports import free_ports

PACKAGE = "org.apache.kafka.connect.mirror"
SOURCE, CHECKPOINT = f"{PACKAGE}.MirrorSourceConnector", f"{PACKAGE}.MirrorCheckpointConnector"
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
REBALANCING = 409
_START_S, _STOP_S, _ANSWER_S = 120.0, 30.0, 60.0


class ConnectWorker:
    """One worker on `cluster`, which runs for the length of a `with`; `group` names it and its topics.

    `settings` go over the ones here: offsets are stored each five seconds, and the topics have one replica.
    """

    def __init__(
        self, cluster: KafkaCluster, group: str, directory: Path, settings: Mapping[str, str] | None = None
    ) -> None:
        (port,) = free_ports(1)
        self.offsets_topic = f"connect-offsets-{group}"
        self._url = f"http://127.0.0.1:{port}"
        self._directory = directory
        self._settings = {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": group,
            "config.storage.topic": f"connect-configs-{group}",
            "offset.storage.topic": self.offsets_topic,
            "status.storage.topic": f"connect-status-{group}",
            **dict.fromkeys([f"{name}.storage.replication.factor" for name in ("config", "offset", "status")], "1"),
            **dict.fromkeys(["key.converter", "value.converter", "header.converter"], BYTES),
            "listeners": self._url,
            "offset.flush.interval.ms": "5000",
            "scheduled.rebalance.max.delay.ms": "0",
            **(settings or {}),
        }

    def __enter__(self) -> Self:
        self._directory.mkdir(parents=True, exist_ok=True)
        file = self._directory / "worker.properties"
        file.write_text(dumps(self._settings))
        self.jvm = Jvm(
            self._directory,
            main_class="org.apache.kafka.connect.cli.ConnectDistributed",
            arguments=[str(file)],
            class_path=class_path(MIRROR_MAKER),
            heap_mb=512,
            options=QUICK_START,
        )
        self.jvm.start()
        deadline = time.monotonic() + _START_S
        while True:
            try:
                self._ask("GET", "/connectors")
            except OSError:
                assert self.jvm.running, self.jvm.last_lines()
                assert time.monotonic() < deadline, self.jvm.last_lines()
                time.sleep(0.3)
            else:
                return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.jvm.terminate(_STOP_S)
        if kind is not None:
            print(self.jvm.last_lines(60))

    def put(self, name: str, config: Mapping[str, str]) -> None:
        """Create a connector, or change it; wait until its task runs."""
        self._ask("PUT", f"/connectors/{quote(name)}/config", dict(config))
        self._wait(name, "RUNNING", tasks=True)

    def stop(self, name: str) -> None:
        """End its tasks, as an administrator does before its offsets are touched; wait until it has ended."""
        self._ask("PUT", f"/connectors/{quote(name)}/stop")
        self._wait(name, "STOPPED", tasks=False)

    def resume(self, name: str) -> None:
        """Let it continue."""
        self._ask("PUT", f"/connectors/{quote(name)}/resume")
        self._wait(name, "RUNNING", tasks=True)

    def offsets(self, name: str) -> dict[tuple[str, int], int]:
        """What the worker has stored for a source connector, by topic and partition."""
        return {
            (one["partition"]["topic"], one["partition"]["partition"]): one["offset"]["offset"]
            for one in self._ask("GET", f"/connectors/{quote(name)}/offsets")["offsets"]
        }

    def _wait(self, name: str, state: str, *, tasks: bool) -> None:
        deadline = time.monotonic() + _START_S
        while True:
            found: Any = None
            try:
                found = self._ask("GET", f"/connectors/{quote(name)}/status")
            except urllib.error.HTTPError as error:
                if error.code != 404:  # it is not there at once
                    raise
            if found:
                states = {one["state"] for one in found["tasks"]}
                assert "FAILED" not in states | {found["connector"]["state"]}, found
                if found["connector"]["state"] == state and states == ({state} if tasks else set()):
                    return
            assert time.monotonic() < deadline, f"{name}: {found}"
            time.sleep(0.2)

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        request = urllib.request.Request(  # noqa: S310 - the worker's own address
            self._url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        deadline = time.monotonic() + _ANSWER_S
        while True:
            try:
                with urllib.request.urlopen(request, timeout=_ANSWER_S) as answer:  # noqa: S310
                    return json.loads(answer.read() or b"null")
            except urllib.error.HTTPError as error:
                if error.code != REBALANCING or time.monotonic() > deadline:
                    raise
                time.sleep(0.3)


def source_connector(
    source: KafkaCluster, target: KafkaCluster, alias: str, topics: str, settings: Mapping[str, str] | None = None
) -> dict[str, str]:
    """What a source connector needs; the target is called B."""
    return {
        "connector.class": SOURCE,
        "source.cluster.alias": alias,
        "target.cluster.alias": "B",
        "source.cluster.bootstrap.servers": source.bootstrap_servers,
        "target.cluster.bootstrap.servers": target.bootstrap_servers,
        "topics": topics,
        "tasks.max": "2",
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "heartbeats.replication.enabled": "false",
        "refresh.topics.interval.seconds": "2",
        "sync.topic.acls.enabled": "false",
        **(settings or {}),
    }
