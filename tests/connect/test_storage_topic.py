"""A storage topic is followed whatever happens in between."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from tests.support import mirror_process as mp

from sparkmirror.config import ClusterConfig
from sparkmirror.connect import storage_topic
from sparkmirror.connect.storage_topic import StorageTopic
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.kafka.cluster.topic_log import LogEntry, LogUnavailable, TopicLog

if TYPE_CHECKING:
    from collections.abc import Iterable

_CLAIM = socket.socket()
_CLAIM.bind(("127.0.0.1", 0))
SERVER = f"127.0.0.1:{_CLAIM.getsockname()[1]}"
"""Taken, so that nobody else begins to listen there."""

CLUSTER = ClusterConfig(alias="away", bootstrap_servers=(SERVER,))


class EmptyAtFirst(TopicLog):
    """A log whose beginning is there, while nobody listens any more."""

    partitions = 1

    def read(self, partition: int, offset: int, *, wait_ms: int = 0) -> tuple[list[LogEntry], int]:
        return super().read(partition, offset, wait_ms=wait_ms) if wait_ms else ([], 0)


def _scripted(answers: Iterable[Exception | list[LogEntry]]) -> type[TopicLog]:
    """A log that answers so, and is empty after that."""
    rest = iter(answers)

    class Scripted(TopicLog):
        partitions = 1

        def read(self, partition: int, offset: int, *, wait_ms: int = 0) -> tuple[list[LogEntry], int]:
            answer = next(rest, [])
            if isinstance(answer, Exception):
                raise answer
            return answer, offset + len(answer)

    return Scripted


Open = Callable[[type[TopicLog]], tuple[StorageTopic, list[bytes | None]]]


@pytest.fixture
def open_topic(monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Open a topic over such a log; the topic, and what it takes."""
    monkeypatch.setattr(storage_topic, "_RETRY_S", 0.01)
    opened: list[StorageTopic] = []

    def topic(log: type[TopicLog]) -> tuple[StorageTopic, list[bytes | None]]:
        monkeypatch.setattr(storage_topic, "TopicLog", log)
        taken: list[bytes | None] = []
        opened.append(StorageTopic(CLUSTER, "configs", lambda key, *_: taken.append(key)))
        return opened[0], taken

    yield topic
    for one in opened:
        one.close()


def test_a_cluster_that_is_away_is_said_and_asked_again(open_topic: Open) -> None:
    topic, _ = open_topic(EmptyAtFirst)
    topic.start()
    mp.wait_for(lambda: SERVER in topic.trouble, 180, "it notices")


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (LogUnavailable("configs", "it isn't there", 3), "it isn't there"),
        (ClusterUnreachable("nobody answers"), "nobody answers"),
        (AssertionError("no codec"), "AssertionError: the log of this process has more"),
    ],
)
def test_what_comes_after_a_failure_is_taken(open_topic: Open, failure: Exception, said: str) -> None:
    troubles: list[str] = []

    def answers() -> Iterator[Exception | list[LogEntry]]:
        yield []
        yield failure
        troubles.append(topic.trouble)
        yield [LogEntry(0, b"later", b"")]

    topic, taken = open_topic(_scripted(answers()))
    topic.start()
    mp.wait_for(lambda: taken == [b"later"], 180, "it is taken")
    mp.wait_for(lambda: not topic.trouble, 180, "it is well again")
    assert len(troubles) == 1
    assert said in troubles[0]


def test_it_starts_though_the_cluster_comes_late(open_topic: Open) -> None:
    topic, taken = open_topic(_scripted([ClusterUnreachable("nobody answers"), [LogEntry(0, b"first", b"")]]))
    topic.start()
    assert taken == [b"first"]


def test_it_does_not_start_without_the_cluster(open_topic: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage_topic, "_CATCH_UP_S", 0.05)
    topic, _ = open_topic(TopicLog)
    with pytest.raises(ClusterUnreachable, match=SERVER) as caught:
        topic.start()
    assert str(caught.value).count("cluster away") == 1
