"""`sparkmirror serve` as its users run it: a process of its own, spoken with over HTTP."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

from javaproperties import dumps
from lab import KafkaCluster
from tests.connect.serving import worker_settings
from tests.support import mirror_process as mp
from tests.support.connectors import quick_connectors

from sparkmirror.connect.connector_model import TargetState
from sparkmirror.demo.ports import free_ports

_VERBS = {TargetState.STARTED: "resume", TargetState.PAUSED: "pause", TargetState.STOPPED: "stop"}


class ServedWorker:
    """The same questions as `RunningWorker`'s, through the REST interface; a context manager."""

    def __init__(
        self,
        source: KafkaCluster,
        target: KafkaCluster,
        group: str,
        directory: Path,
        more: Mapping[str, str] | None = None,
    ) -> None:
        """`more`: what else is in the worker's file, or otherwise."""
        self.source, self.target = source.bootstrap_servers, target.bootstrap_servers
        settings = worker_settings(
            self.target, group, free_ports(1)[0], offset_flush_interval_ms="1000", session_timeout_ms="6000"
        )
        self.settings = settings = {**settings, **(more or {})}
        self.url, self.names = settings["listeners"], list[str]()
        self._file, self._log = directory / "connect-distributed.properties", directory / "serve.log"
        self._file.write_text(dumps(settings))
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> ServedWorker:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def start(self) -> None:
        """Start the process, and wait until it answers."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-c",
                    "from sparkmirror.cli import main; main()",
                    "serve",
                    str(self._file),
                    "-o",
                    "json",
                ],
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        mp.wait_for(self._answers, 90, f"{self.url} answers; {self._log}")

    def printed(self) -> list[dict[str, Any]]:
        """What `-o json` has printed, a line each."""
        return [json.loads(line) for line in self._log.read_text().splitlines() if line.startswith("{")]

    def logged(self) -> str:
        """All that it has written."""
        return self._log.read_text()

    def _answers(self) -> bool:
        try:
            return bool(self.ask("GET", "/")["kafka_cluster_id"])
        except OSError:
            return False

    def end(self, *, to_group: bool = False) -> None:
        """As an operator does it, or a supervisor to the whole group: SIGTERM, and it ends by itself."""
        if self._process is not None:
            if to_group:
                os.killpg(self._process.pid, signal.SIGTERM)
            else:
                self._process.terminate()
            assert self._process.wait(60) == 0, self._log.read_text()[-3000:]
            self._process = None

    def kill(self) -> None:
        """SIGKILL; what it started has nobody to hear from."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self._process = None

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """The answer's JSON, None if it has none; what is refused raises, with the answer's own words."""
        request = urllib.request.Request(  # noqa: S310 - http
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
                content = answer.read()
        except HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.code} {error.read().decode()}") from None
        return json.loads(content) if content else None

    def put(self, name: str, config: Mapping[str, str]) -> None:
        self.ask("PUT", f"/connectors/{name}/config", {**config, "name": name})
        self.names = list(dict.fromkeys([*self.names, name]))

    def change(self, name: str, **settings: str) -> None:
        config = self.ask("GET", f"/connectors/{name}/config")
        self.put(name, {**config, **{key.replace("_", "."): value for key, value in settings.items()}})

    def to(self, state: TargetState, *names: str) -> None:
        for name in names:
            self.ask("PUT", f"/connectors/{name}/{_VERBS[state]}")

    def delete(self, *names: str) -> None:
        for name in names:
            self.ask("DELETE", f"/connectors/{name}")
            self.names.remove(name)

    def wait_for(self, name: str, state: str, timeout_s: float = 90.0) -> None:
        path = f"/connectors/{name}/status"
        mp.wait_for(lambda: self.ask("GET", path)["connector"]["state"] == state, timeout_s, f"{name} {state}")

    def connectors(self, topics: str, alias: str, policy: str = "") -> dict[str, dict[str, str]]:
        """The three of one flow, by name."""
        return quick_connectors(self.source, self.target, topics, alias, policy)

    def copied(self, topic: str, partitions: int = 2) -> int:
        return sum(mp.end_offsets(self.target, topic, partitions))
