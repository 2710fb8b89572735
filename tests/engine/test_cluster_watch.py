"""Whether a cluster answers: at once where nobody listens, soon where somebody does and says nothing."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from lab import KafkaCluster

from sparkmirror.config import ClusterConfig
from sparkmirror.demo.ports import free_ports
from sparkmirror.mirror.engine import cluster_watch
from sparkmirror.mirror.engine.cluster_watch import AWAY_S, FORGET_S, ClusterWatch


def watch_over(*servers: str) -> ClusterWatch:
    return ClusterWatch(ClusterConfig(alias="A", bootstrap_servers=servers), "test-watch")


@pytest.fixture
def silent() -> Iterator[str]:
    """As a stopped broker: the system takes connections for it."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def test_nobody_is_away_who_was_not_asked() -> None:
    assert watch_over("127.0.0.1:1").away is None


def test_who_refuses_connections_is_away_at_once() -> None:
    (port,) = free_ports(1)
    watch = watch_over(f"127.0.0.1:{port}")
    before = time.time()
    watch.ask()
    away = watch.away
    assert away is not None
    assert before <= away.since_s <= time.time()
    assert away.words.startswith("cluster A has not answered since 20")
    assert away.words.endswith(f"127.0.0.1:{port}: Connection refused")
    watch.ask()
    assert watch.away == away, "since the first question"


def test_who_takes_a_connection_and_says_nothing_is_away(silent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_watch, "ANSWER_S", 0.1)
    watch = watch_over(silent)
    watch.ask()
    assert watch.away is not None
    assert "timed out" in watch.away.words


def test_a_question_without_an_answer_tells_by_itself(silent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """While it waits, whatever it waits for."""
    now = [0.0]
    watch = ClusterWatch(ClusterConfig(alias="A", bootstrap_servers=(silent,)), "test-watch", clock=lambda: now[0])
    monkeypatch.setattr(cluster_watch, "ANSWER_S", 30.0)
    asking = threading.Thread(target=watch.ask, daemon=True)
    asking.start()
    while watch._silence is None:  # noqa: SLF001
        time.sleep(0.01)
    now[0] = AWAY_S
    assert watch.away is None
    now[0] = AWAY_S + 0.1
    assert watch.away is not None


@pytest.mark.broker
def test_one_broker_that_answers_is_enough(
    source_cluster: KafkaCluster, silent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_watch, "ANSWER_S", 6.0)
    (port,) = free_ports(1)
    watch = watch_over(f"127.0.0.1:{port}", silent, source_cluster.bootstrap_servers)
    watch.ask()
    assert watch.away is None
    kept = watch._connection  # noqa: SLF001
    began = time.monotonic()
    watch.ask()
    assert time.monotonic() - began < 5.0, "who has answered is asked first"
    assert watch._connection is kept is not None  # noqa: SLF001
    kept.close()
    watch.ask()
    assert watch.away is None, "another connection is made"


@pytest.mark.broker
def test_brokers_that_were_known_and_are_up(source_cluster: KafkaCluster) -> None:
    watch = watch_over(source_cluster.bootstrap_servers)
    before = watch.brokers
    watch.ask()
    known = watch.brokers
    assert before is None
    assert known is not None
    assert (known.up, known.known) == (1, 1)
    assert re.fullmatch(r"[3-9]\.\d+", known.release)
    now = watch._clock()  # noqa: SLF001
    watch._seen |= {77: now, 78: now - FORGET_S - 1}  # noqa: SLF001
    watch.ask()
    assert watch.brokers == known._replace(known=2), "one has been down for less than a day, one was removed"


@pytest.mark.broker
def test_it_is_logged_once(source_cluster: KafkaCluster, lines: Callable[[], list[str]]) -> None:
    (port,) = free_ports(1)
    watch = watch_over(f"127.0.0.1:{port}")
    lines()
    watch.ask()
    watch.ask()
    (line,) = lines()
    assert "cluster A has not answered since" in line
    watch._config = ClusterConfig(alias="A", bootstrap_servers=(source_cluster.bootstrap_servers,))  # noqa: SLF001
    watch.ask()
    watch.ask()
    (line,) = lines()
    assert "cluster A answers again" in line
