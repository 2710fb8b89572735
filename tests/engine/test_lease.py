"""The lease: one process works, the others stand by and take over."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaConsumer
from lab import KafkaCluster
from tests.support import mirror_process as mp
from tests.support.members import joined
from tests.support.started import started

from sparkmirror.config.model import ClusterConfig
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.mirror.engine.lease import HolderStays, Lease, LeaseClaim, choose_holder

SESSION_MS = 6000
"""The shortest that a broker allows by default."""

CHILD = """
import sys, time
from sparkmirror.config.model import ClusterConfig
from sparkmirror.mirror.engine.lease import Lease

servers, group, topic, session_ms = sys.argv[1:]
lease = Lease(ClusterConfig(alias="b", bootstrap_servers=(servers,)), group, topic, int(session_ms))
lease.start()
told = None
while True:
    held = lease.held()
    if held != told:
        told = held
        print("held" if held else "not held", flush=True)
    time.sleep(0.01)
"""


def test_the_holder_stays() -> None:
    assert choose_holder([LeaseClaim("a", None), LeaseClaim("b", 4), LeaseClaim("c", None)]) == "b"


def test_of_two_that_claim_the_lease_the_later_one_is_right() -> None:
    assert choose_holder([LeaseClaim("a", 3), LeaseClaim("b", 4)]) == "b"
    assert choose_holder([LeaseClaim("b", 4), LeaseClaim("a", 3)]) == "b"


def test_without_a_holder_all_agree_on_one() -> None:
    assert choose_holder([LeaseClaim("b", None), LeaseClaim("a", None)]) == "a"


def config_of(cluster: KafkaCluster) -> ClusterConfig:
    return ClusterConfig(alias="b", bootstrap_servers=tuple(cluster.bootstrap_servers.split(",")))


MakeLease = Callable[..., Lease]


@pytest.fixture
def make_lease(target_cluster: KafkaCluster, topic_name: str) -> Iterator[MakeLease]:
    """Make leases for one group; all are released at the end."""
    config = config_of(target_cluster)
    with ClusterAdmin.connect(config, "test", 10) as admin:
        admin.create_compacted_topic(topic_name, 1, 1)
    leases: list[Lease] = []

    def make(session_ms: int = SESSION_MS) -> Lease:
        lease = Lease(config, f"{topic_name}-mm2", topic_name, session_ms)
        leases.append(lease)
        lease.start()
        return lease

    yield make
    for lease in leases:
        lease.release()


@pytest.mark.broker
def test_newcomers_wait_and_take_over_at_once_when_it_is_released(make_lease: MakeLease) -> None:
    """Long before a session of 90 seconds would have run out."""
    first = make_lease(90_000)
    mp.wait_for(first.held, 180, "the lease")
    standbys = [make_lease(90_000), make_lease(90_000)]
    mp.wait_for(lambda: all(lease.elsewhere for lease in standbys), 180, "they have joined")
    watch_until = time.monotonic() + 3
    while time.monotonic() < watch_until:
        assert first.held()
        assert not any(lease.held() for lease in standbys)
        time.sleep(0.02)
    assert first.term == 1
    assert [lease.elsewhere for lease in (first, *standbys)] == [False, True, True]

    first.release()
    released = time.monotonic()
    assert not first.held()
    while not any(lease.held() for lease in standbys):
        assert time.monotonic() - released < 45
        time.sleep(0.02)
    time.sleep(1)
    assert sum(lease.held() for lease in standbys) == 1


@pytest.mark.broker
def test_a_holder_polls_seldom_and_is_proven_all_the_same(
    make_lease: MakeLease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each poll wakes several threads; the proof must not get late by fewer of them."""
    proofs: list[float] = []
    polls: list[float] = []
    poll, commit = KafkaConsumer.poll, KafkaConsumer.commit

    def counted_poll(self: KafkaConsumer, **given: Any) -> Any:
        polls.append(time.monotonic())
        return poll(self, **given)

    def counted_commit(self: KafkaConsumer, *given: Any, **more: Any) -> Any:
        proofs.append(time.monotonic())
        return commit(self, *given, **more)

    monkeypatch.setattr(KafkaConsumer, "poll", counted_poll)
    monkeypatch.setattr(KafkaConsumer, "commit", counted_commit)
    holder = make_lease()
    mp.wait_for(holder.held, 180, "the lease")
    time.sleep(2)
    polls.clear()
    proofs.clear()
    time.sleep(6)
    assert holder.held()
    assert 4 <= len(proofs) <= 7, "one a beat, which is a second here"
    assert len(polls) <= 18, "ten a second otherwise"


@pytest.mark.full
@pytest.mark.broker
def test_a_holder_whose_topic_changes_holds_on_though_its_machine_is_slow(
    target_cluster: KafkaCluster, make_lease: MakeLease, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It joins again for that, and no single poll sees the join from its beginning to its end."""
    holder = make_lease()
    mp.wait_for(holder.held, 180, "the lease")
    assign = HolderStays.assign

    def slow_assign(self: HolderStays, cluster: Any, members: Iterable[Any]) -> dict[str, Any]:
        time.sleep(0.3)
        return assign(self, cluster, members)

    monkeypatch.setattr(HolderStays, "assign", slow_assign)
    admin = KafkaAdminClient(bootstrap_servers=target_cluster.bootstrap_servers)
    admin.create_partitions({topic_name: 2})
    admin.close()
    standby = make_lease()  # the leader looks at the topic when somebody joins
    watch_until = time.monotonic() + 2 * SESSION_MS / 1000
    while time.monotonic() < watch_until:
        assert holder.held()
        assert not standby.held()
        time.sleep(0.02)
    assert holder.term == 1
    assert standby.elsewhere


def child(cluster: KafkaCluster, topic: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, cluster.bootstrap_servers, f"{topic}-mm2", topic, str(SESSION_MS)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def wait_for_line(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdout is not None
    for told in process.stdout:
        if told.strip() == line:
            return
    raise AssertionError(f"the process ended before it said {line!r}")


@pytest.mark.full
@pytest.mark.broker
def test_a_killed_and_a_frozen_holder_are_replaced(
    target_cluster: KafkaCluster, topic_name: str, make_lease: MakeLease
) -> None:
    """SIGKILL, then SIGSTOP of its successor: the frozen one must know that it lost when it continues."""
    killed = child(target_cluster, topic_name)
    try:
        wait_for_line(killed, "held")
        frozen = child(target_cluster, topic_name)
        wait_for_line(frozen, "not held")
        time.sleep(1)
        killed.kill()
        died = time.monotonic()
        wait_for_line(frozen, "held")
        assert time.monotonic() - died < SESSION_MS / 1000 + 60

        successor = make_lease()
        time.sleep(1)
        frozen.send_signal(signal.SIGSTOP)
        stopped = time.monotonic()
        assert not successor.held()
        mp.wait_for(successor.held, SESSION_MS / 1000 + 60, "the frozen one's successor")
        assert time.monotonic() - stopped > SESSION_MS / 1000 / 2
        frozen.send_signal(signal.SIGCONT)
        wait_for_line(frozen, "not held")
        for _ in range(100):
            assert successor.held()
            time.sleep(0.02)
        assert successor.term == 1
    finally:
        for process in (killed, frozen):
            process.kill()
            process.wait()


@pytest.mark.broker
def test_a_holder_that_no_broker_answers_lets_go_by_its_own_clock(tmp_path: Path) -> None:
    cluster = KafkaCluster(tmp_path)
    with started(cluster):
        config = config_of(cluster)
        with ClusterAdmin.connect(config, "test", 10) as admin:
            admin.create_compacted_topic("lease", 1, 1)
        lease = Lease(config, "a-mm2", "lease", SESSION_MS)
        lease.start()
        mp.wait_for(lease.held, 180, "the lease")
        cluster.brokers[0].pause()
        paused = time.monotonic()
        mp.wait_for(lambda: not lease.held(), SESSION_MS / 1000 + 0.5, "the lease lost")
        assert time.monotonic() - paused > SESSION_MS / 1000 / 2
        cluster.brokers[0].resume()
        mp.wait_for(lease.held, 180, "the lease again")
        assert lease.term == 2
        lease.release()


@pytest.mark.broker
def test_another_kind_of_group_is_named_and_then_waited_for(
    target_cluster: KafkaCluster, topic_name: str, make_lease: MakeLease
) -> None:
    other = joined(target_cluster.bootstrap_servers, f"{topic_name}-mm2", topic_name)
    stop = threading.Event()

    def take_part() -> None:
        while not stop.is_set():
            other.poll(timeout_ms=3000)

    member = threading.Thread(target=take_part)
    member.start()
    try:
        deadline = time.monotonic() + 60
        lease = make_lease()
        while not lease.refused:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert lease.refused == (
            f"a MirrorMaker 2 (or another Connect worker) still runs in group {topic_name}-mm2 "
            f"on cluster b; stop it first"
        )
        assert not lease.held()
    finally:
        stop.set()
        member.join()
        other.close()
    mp.wait_for(lease.held, 180, "the lease")
    assert lease.refused is None
