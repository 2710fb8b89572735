"""The load's JVM: compiled, started, and told what to do."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from sparkmirror.demo.jars import BROKER, class_path
from sparkmirror.demo.java import java
from sparkmirror.errors import SetupError

_SOURCE = Path(__file__).with_name("MigrationLoad.java")
_COMPILER = ("org.eclipse.jdt:ecj:3.38.0",)
"""A Java compiler that needs no JDK."""


class LoadJvm:
    """The program, running for the length of a `with`; commands may come from any thread, one after the other."""

    def __init__(self, directory: Path, clients: Mapping[str, Mapping[str, str]]) -> None:
        self._directory = directory
        self._clients = clients
        self._turn = threading.Lock()

    def __enter__(self) -> Self:
        jars = class_path(BROKER)
        subprocess.run(
            [
                *(java(), "-cp", class_path(_COMPILER), "org.eclipse.jdt.internal.compiler.batch.Main"),
                *("-17", "-proc:none", "-nowarn", "-cp", jars, "-d", str(self._directory), str(_SOURCE)),
            ],
            check=True,
        )
        self._log = (self._directory / "load.log").open("wb")
        self._process = subprocess.Popen(
            [
                *(java(), "-Xmx256m", "-XX:TieredStopAtLevel=1"),
                *("-cp", f"{self._directory}:{jars}", "MigrationLoad"),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            encoding="utf-8",
        )
        for name, settings in self._clients.items():
            self.tell("cluster", name, *(f"{key}={value}" for key, value in settings.items()))
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
        self._log.close()

    def tell(self, *command: object) -> Any:
        """Return the command's answer; raises SetupError if it fails."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None  # noqa: S101 - both are pipes
        assert stdout is not None  # noqa: S101
        with self._turn:
            stdin.write("\t".join(map(str, command)) + "\n")
            stdin.flush()
            line = stdout.readline()
        if not line:
            raise SetupError(f"the load's JVM has ended: {self._directory / 'load.log'}")
        answer = json.loads(line)
        if "failed" in answer:
            raise SetupError(f"the load: {answer['failed']}")
        return answer["ok"]

    def begin_round(self, history: Path) -> None:
        """Write another history, and count from zero again."""
        self.tell("round", history)

    def produce(
        self, client: str, *, kind: str, topic: str, partitions: int, rate: float, keys: int, name: str
    ) -> None:
        """Start a producer, which continues its numbers; `kind` is idempotent, acks1 or transactional."""
        self.tell("produce", client, kind, topic, partitions, rate, keys, name)

    def stop_producers(self, names: Sequence[str]) -> None:
        """Stop producers: all that they have sent is answered."""
        self.tell("stop-producers", ",".join(names))

    def consume(
        self, client: str, *, group: str, protocol: str, isolation: str, members: int, topics: Sequence[str]
    ) -> None:
        """Start a group's members; `protocol` is classic or consumer."""
        self.tell("consume", client, group, protocol, isolation, members, ",".join(topics))

    def stop_consumers(self, groups: Sequence[str]) -> None:
        """Stop all members of groups."""
        self.tell("stop-consumers", ",".join(groups))

    def stray(self, client: str, topic: str, partition: int) -> int:
        """Write one record as somebody whom no ACL holds; return its offset."""
        return int(self.tell("stray", client, topic, partition))

    def dump(self, client: str, topic: str, file: Path) -> None:
        """Write a topic's committed records to a file."""
        self.tell("dump", client, "read_committed", topic, file)

    def counts(self) -> dict[str, int]:
        """Return the history's number of lines, by kind, client's cluster and name."""
        return dict(self.tell("counts"))
