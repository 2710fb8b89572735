"""Search for many partitions' ends: several threads with own connections.

Each thread has its own `LastCopiedReader`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeAlias

from sparkmirror.config import ClusterConfig
from sparkmirror.exact.mm2.record_formats import OffsetSync
from sparkmirror.exact.position.cause import Cause
from sparkmirror.exact.position.target_reading import Unserved
from sparkmirror.kafka.cluster.client import ClusterClient
from sparkmirror.kafka.wire.rpc import BrokerUnreachable
from sparkmirror.mirror.takeover.last_copied import LastCopied, LastCopiedReader, OurEnd, Untold
from sparkmirror.mirror.takeover.log_bounds import BothLogs, Bounds

Answer: TypeAlias = LastCopied | Untold | Unserved

READERS = 8
"""Number of threads, which wait for brokers most of the time."""


class Unread(NamedTuple):
    """A partition whose logs have to be read."""

    pair: BothLogs
    bounds: Bounds
    stored: int
    sync: OffsetSync | None
    ours: OurEnd | None = None
    doubted: bool = False


class LastCopiedOfMany:
    """Reader for one flow; `role` goes into the client's id."""

    def __init__(self, source: ClusterConfig, target: ClusterConfig, role: str, *, read_committed: bool) -> None:
        self._source = source
        self._target = target
        self._role = role
        self._read_committed = read_committed

    def find(self, unread: Sequence[Unread]) -> list[Answer]:
        """Return an answer for each partition, in order. Raises `ClusterUnreachable`."""
        todo = deque(range(len(unread)))
        answers: list[Answer] = [Unserved("not looked at")] * len(unread)
        down: dict[tuple[int, int], str] = {}
        threads = min(READERS, len(unread))
        if threads:
            with ThreadPoolExecutor(threads, "takeover") as pool:
                for ended in [pool.submit(self._read, unread, todo, answers, down) for _ in range(threads)]:
                    ended.result()
        return answers

    def _read(
        self, unread: Sequence[Unread], todo: deque[int], answers: list[Answer], down: dict[tuple[int, int], str]
    ) -> None:
        """Do one thread's part: read the next partition, until no partition is left.

        `down` holds pairs of a source and a target leader if either did not answer: the pair's further partitions need
        not wait.
        """
        source, target = ClusterClient(self._source, self._role), ClusterClient(self._target, self._role)
        try:
            source.metadata([])
            target.metadata([])
            reader = LastCopiedReader(source, target, read_committed=self._read_committed)
            while True:
                try:
                    index = todo.popleft()
                except IndexError:
                    return
                answers[index] = _find(reader, unread[index], down)
        finally:
            source.close()
            target.close()


def _find(reader: LastCopiedReader, question: Unread, down: dict[tuple[int, int], str]) -> Answer:
    leaders = question.pair.source_leader, question.pair.target_leader
    if leaders in down:
        return Unserved(down[leaders], Cause.UNREACHABLE)
    try:
        return reader.find(*question)
    except Untold as untold:
        return untold
    except ConnectionError as error:
        if isinstance(error, BrokerUnreachable):
            down[leaders] = str(error)
        return Unserved(str(error))
