"""A full disk: a broker's write fails in the middle of a batch, and it takes the directory out of service.

No disk is filled. The broker may not make any file longer than its longest log is now (RLIMIT_FSIZE), so that its
next write there comes to an end after one byte (EFBIG, where a full disk says ENOSPC). For Kafka both are the same
I/O error: its partitions in that directory answer KAFKA_STORAGE_ERROR, their leaders move, and it
continues with its other directory; if that one fails too, it ends. Full is full until it is started again.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lab import Broker, KafkaCluster

from chaos.arena import NoVictim, wait_in_sync
from chaos.replicas import ask

try:
    from resource import RLIMIT_FSIZE, prlimit
except ImportError:  # Linux has it
    prlimit = None  # type: ignore[assignment]

_TIMEOUT_S = 20.0
_POLL_S = 0.002
_FAILING_S = 0.05
"""Between the last byte that fits and the error."""
_NOTICED_S = 10.0
_RECENT_S = 2.0
_STOP_TIMEOUT_S = 15.0
_STORAGE_ERROR = 56


class FullDisk:
    """One of a broker's directories is full; the broker is started again at the end."""

    lasts = True

    def __init__(self, cluster: KafkaCluster, chance: random.Random) -> None:
        self._cluster = cluster
        self.broker: Broker = chance.choice(cluster.brokers)
        self.victim = f"broker {self.broker.node_id}"

    def begin(self) -> None:
        if prlimit is None:
            raise NoVictim("only Linux can limit another process's files")
        log = _growing(self.broker)
        try:
            self._fill(log)
            full = self._noticed()
        except BaseException:
            self.end()
            raise
        everything = len(full) == len(self.broker.log_dirs)
        self.victim += ", which ended" if everything else f", {len(full)} of {len(self.broker.log_dirs)} directories"

    def end(self) -> None:
        self.broker.terminate(_STOP_TIMEOUT_S)
        self.broker.start()

    def settle(self) -> None:
        wait_in_sync(self._cluster)

    def out_of_service(self) -> Sequence[str]:
        """Return the directories that the broker has given up; all of them once it has ended."""
        whole = tuple(map(str, self.broker.log_dirs))
        if not self.broker.running:
            return whole

        def failed(admin: Any) -> Sequence[str]:
            if not self.broker.running:
                return whole
            (answer,) = admin.describe_log_dirs(brokers=[self.broker.node_id])
            return [one["log_dir"] for one in answer["log_dirs"] if one["error_code"] == _STORAGE_ERROR]

        return ask(self._cluster, failed)

    def _noticed(self) -> Sequence[str]:
        deadline = time.monotonic() + _NOTICED_S
        while not (full := self.out_of_service()):
            if time.monotonic() > deadline:
                raise NoVictim("the broker did not notice that its disk is full")
        return full

    def _fill(self, log: Path) -> None:
        """Let the longest log that is being written grow by one byte, and no file beyond; until a write has failed."""
        limit = log.stat().st_size + 1
        former = prlimit(self.broker.pid, RLIMIT_FSIZE, (limit, _hard(self.broker)))
        try:
            deadline = time.monotonic() + _TIMEOUT_S
            while log.stat().st_size < limit and self.broker.running:
                if time.monotonic() > deadline:
                    raise NoVictim("nothing was written to the disk that is full")
                time.sleep(_POLL_S)
            time.sleep(_FAILING_S)
        finally:
            with contextlib.suppress(ProcessLookupError):  # all its directories have failed: it has ended
                prlimit(self.broker.pid, RLIMIT_FSIZE, former)


def _hard(broker: Broker) -> int:
    return prlimit(broker.pid, RLIMIT_FSIZE)[1]


def _growing(broker: Broker) -> Path:
    """Return the longest log of records that was written to just now."""
    newest = time.time() - _RECENT_S
    found: list[tuple[int, Path]] = []
    for log_dir in broker.log_dirs:
        for log in log_dir.glob("*/*.log"):
            with contextlib.suppress(FileNotFoundError):
                status = log.stat()
                if status.st_mtime > newest and not log.parent.name.startswith("__"):
                    found.append((status.st_size, log))
    if not found:
        raise NoVictim("nothing is being written there")
    return max(found)[1]
