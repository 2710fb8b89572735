"""Nothing is pumped before it was looked at whether somebody else has copied it meanwhile."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from lab import KafkaCluster
from test_rival_views import driver_of
from tests.support import mirror_process as mp

from sparkmirror.config import ClusterConfig, FlowConfig, MirrorConfig
from sparkmirror.mirror.engine.flow_driver import FlowDriver
from sparkmirror.mirror.engine.mirror import Mirror
from sparkmirror.mirror.engine.predecessors import Predecessors
from sparkmirror.pump.messages.control import ControlState
from sparkmirror.pump.quiet import GRACE_S


class StubDriver:
    """Notes what a mirror has it do before a round."""

    name = "a->b"

    def __init__(self, flow: FlowConfig) -> None:
        self.flow = flow
        self.topics = SimpleNamespace(
            waits=False,
            done_topics=SimpleNamespace(changed=False),
            turns=SimpleNamespace(changed=False),
            checked=False,
            newest=SimpleNamespace(wait_s=0.0),
        )
        self.reports = SimpleNamespace(heard=ControlState())
        self.control = SimpleNamespace(say=lambda round_number, phase: self.done.append(phase))
        self.away = False
        self.done: list[str] = []
        self.reached = 0

    def become_active(self) -> None:
        self.done.append("active")

    def reach(self) -> None:
        """Both clusters answer."""
        self.reached += 1

    def sync_topics(self) -> bool:
        self.topics.checked = False
        if self.away:
            raise ConnectionError("away")
        self.topics.checked = True
        self.done.append("looked")
        return False

    def partitions(self) -> dict[str, int]:
        return {"t-0": 1}

    pumped = partitions


def test_a_mirror_looks_before_each_round_if_the_last_look_came_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the next one would not be due."""
    source, target = (ClusterConfig(alias=alias, bootstrap_servers=(f"{alias}:1",)) for alias in "ab")
    flow = FlowConfig(source=source, target=target, refresh_topics_enabled=False)
    mirror, stub = Mirror(MirrorConfig(path="test", flows=(flow,)), use_lease=False), StubDriver(flow)
    monkeypatch.setattr(mirror, "_fail_or_wait", lambda error: None)
    driver = cast("FlowDriver", stub)
    looked = ["active", "looked", "running"]

    def prepared() -> list[str]:
        stub.done.clear()
        mirror._prepare([driver])  # noqa: SLF001 - one turn of it
        return stub.done.copy()

    stub.away = True
    assert [prepared(), prepared()] == [["active"]] * 2
    stub.away = False
    assert prepared() == looked
    reached = stub.reached
    assert prepared() == ["active", "running"]
    assert stub.reached == reached, "an idle mirror asks no cluster between two looks"
    stub.topics.checked = False  # the lease was lost, and got again
    assert prepared() == looked


def test_flows_whose_clusters_hang_delay_each_other_and_others_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """All clusters are asked at the same time; topics are looked at flow by flow."""
    clusters = {alias: ClusterConfig(alias=alias, bootstrap_servers=(f"{alias}:1",)) for alias in "abcd"}
    flows = [FlowConfig(source=clusters[alias], target=clusters["d"]) for alias in "abc"]
    mirror = Mirror(MirrorConfig(path="test", flows=tuple(flows)), use_lease=False)
    stubs = [StubDriver(flow) for flow in flows]
    together = threading.Barrier(3, timeout=10)
    looking = threading.Semaphore(1)

    def reach(stub: StubDriver) -> None:
        together.wait()
        if stub is stubs[0]:
            raise ConnectionError("away")

    def look(stub: StubDriver, look: Callable[[], bool]) -> bool:
        assert looking.acquire(blocking=False), "another flow's look is under way"
        time.sleep(0.05)
        looking.release()
        return look()

    for stub in stubs:
        stub.name = stub.flow.name
        stub.away = stub is stubs[2]
        monkeypatch.setattr(stub, "reach", functools.partial(reach, stub))
        monkeypatch.setattr(stub, "sync_topics", functools.partial(look, stub, stub.sync_topics))
    ready = mirror._prepare([cast("FlowDriver", stub) for stub in stubs])  # noqa: SLF001 - one turn of it
    assert [driver.name for driver in ready] == [flows[1].name]
    assert mirror.troubles == {flows[0].name: "away", flows[2].name: "away"}


@pytest.mark.broker
def test_what_a_turn_that_failed_has_found_the_next_one_tells(
    source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    first, second = f"{topic_name}-1", f"{topic_name}-2"
    mp.create_topic(source_cluster.bootstrap_servers, first, 1)
    with driver_of(source_cluster, target_cluster, f"{topic_name}.*", tmp_path) as driver:

        def checked() -> bool:
            return driver.topics.checked

        assert checked()
        mp.create_topic(source_cluster.bootstrap_servers, second, 1)
        with pytest.MonkeyPatch.context() as patch:

            def fail(*_: object, **__: object) -> None:
                raise ConnectionError("away")

            patch.setattr(driver.topics.takeover, "look", fail)
            with pytest.raises(ConnectionError):
                driver.sync_topics()
        assert not checked()
        assert driver.sync_topics(), "another topic"
        assert checked()
        assert not driver.sync_topics()
        assert {key.topic for key in driver.partitions()} == {first, second}
        driver.leadership.announce_again()
        driver.become_active()
        assert not checked()


def test_who_was_feared_alive_is_until_the_quiet_rules_wait_is_over() -> None:
    """A round that ends in order within it has waited for nobody (R5)."""
    now = 100.0
    predecessors = Predecessors(lambda: now)

    def feared_after(seconds: float, *, unclean: bool) -> bool:
        nonlocal now
        now += seconds
        predecessors.note_end(unclean=unclean)
        return predecessors.unclean

    assert not feared_after(0, unclean=False)
    assert feared_after(0, unclean=True)
    assert feared_after(GRACE_S - 1, unclean=False)
    assert not feared_after(1, unclean=False)
