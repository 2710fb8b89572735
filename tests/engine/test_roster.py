"""Which drivers a mirror has, while other flows are asked for: with drivers that only note what is done with them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import cast

import mirror_process as mp
import pytest

from sparkmirror.config import ClusterConfig, FlowConfig, MirrorConfig
from sparkmirror.engine import roster as module
from sparkmirror.engine.flow_driver import FlowDriver
from sparkmirror.engine.roster import Roster
from sparkmirror.errors import ClusterUnreachable, ConfigError


class StubDriver:
    """`fails`: why it can't be opened; `hold`: what its end waits for."""

    fails: dict[str, str] = {}  # noqa: RUF012 - the test's
    hold: threading.Event | None = None

    def __init__(self, flow: FlowConfig) -> None:
        self.flow = flow
        self.name = flow.name
        self.cluster_ids = {flow.source.alias: flow.source.alias, flow.target.alias: flow.target.alias}
        self.done: list[str] = []

    def open(self) -> None:
        if self.name in self.fails:
            raise ClusterUnreachable(self.fails[self.name])
        self.done.append("opened")

    def start(self, before: StubDriver | None = None) -> None:
        self.done.append("started with its lease" if before else "started")

    def close(self, duties_s: float = 0.0, *, keep_lease: bool = False) -> None:
        if self.hold is not None:
            self.hold.wait(10)
        self.done.append("closed, its lease kept" if keep_lease else "closed")


rosters: list[Roster] = []


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As no test has left it; what is still being opened is given up: it would warn until the end of the run."""
    monkeypatch.setattr(StubDriver, "fails", {})
    monkeypatch.setattr(StubDriver, "hold", None)
    monkeypatch.setattr(module, "REOPEN_S", 0.05)
    yield
    while rosters:
        rosters.pop().close(0)
    mp.wait_for(lambda: not any(one.name.startswith("open ") for one in threading.enumerate()), 5, "the openings' end")


def flow(name: str, topics: str = "t") -> FlowConfig:
    source, target = (ClusterConfig(alias=alias, bootstrap_servers=(f"{alias}:9092",)) for alias in name.split("->"))
    return FlowConfig(source=source, target=target, topics=(topics,))


def config(*flows: FlowConfig) -> MirrorConfig:
    return MirrorConfig(path="test", flows=flows)


def roster(*flows: FlowConfig, check: Callable[[FlowConfig], None] = lambda _: None) -> Roster:
    found = Roster(config(*flows), cast("Callable[[FlowConfig], FlowDriver]", StubDriver), check)
    rosters.append(found)
    found.open()
    found.start()
    return found


def drivers(found: Roster) -> dict[str, StubDriver]:
    return {driver.name: cast("StubDriver", driver) for driver in found.drivers}


def settle(found: Roster) -> None:
    """As the mirror does it between epochs."""

    def settled() -> bool:
        found.exchange()
        return found.is_settled

    mp.wait_for(settled, 5, "all done")


def test_what_stays_is_left_alone_and_what_changes_keeps_its_lease() -> None:
    found = roster(flow("a->b"), flow("b->a"), flow("a->c"))
    before = drivers(found)
    found.change(config(flow("a->b"), flow("b->a", "other")))
    settle(found)
    after = drivers(found)
    assert after.keys() == {"a->b", "b->a"}
    assert after["a->b"] is before["a->b"]
    assert before["a->b"].done == ["opened", "started"]
    assert before["b->a"].done[-1] == "closed, its lease kept"
    assert after["b->a"].done == ["opened", "started with its lease"]
    assert before["a->c"].done[-1] == "closed"


def test_a_flow_at_another_cluster_gets_a_lease_of_its_own() -> None:
    found = roster(flow("a->b"))
    moved = flow("a->b").model_copy(update={"target": ClusterConfig(alias="b", bootstrap_servers=("elsewhere:1",))})
    before = drivers(found)["a->b"]
    found.change(config(moved))
    settle(found)
    assert before.done[-1] == "closed"
    assert drivers(found)["a->b"].done == ["opened", "started"]


def test_what_cant_be_opened_is_tried_again_and_its_old_form_is_ended() -> None:
    found = roster(flow("a->b"))
    before = drivers(found)["a->b"]
    StubDriver.fails["a->b"] = "b is away"
    found.change(config(flow("a->b", "other")))
    settle(found)
    assert found.failed == {"a->b": "b is away"}
    assert drivers(found) == {}
    assert before.done[-1] == "closed"
    del StubDriver.fails["a->b"]
    mp.wait_for(lambda: found.is_due, 5, "the next attempt")
    settle(found)
    assert found.failed == {}
    assert drivers(found)["a->b"].flow.topics == ("other",)


def test_a_flow_that_may_not_run_is_named() -> None:
    def check(asked: FlowConfig) -> None:
        if asked.name == "a->c":
            raise ConfigError("not so", origin="test")

    found = roster(flow("a->b"), check=check)
    found.change(config(flow("a->b"), flow("a->c")))
    settle(found)
    assert found.failed == {"a->c": "test: not so"}
    assert drivers(found).keys() == {"a->b"}


def test_a_flow_that_is_wanted_again_while_it_is_ended() -> None:
    found = roster(flow("a->b"))
    before = drivers(found)["a->b"]
    StubDriver.hold = threading.Event()
    found.change(config())
    ending = threading.Thread(target=found.exchange)
    ending.start()
    mp.wait_for(lambda: not found.drivers, 5, "its end")
    assert not found.is_settled, "its last words may come yet"
    found.change(config(flow("a->b")))
    StubDriver.hold.set()
    ending.join(5)
    settle(found)
    assert before.done[-1] == "closed"
    assert drivers(found)["a->b"].done == ["opened", "started"]


def test_what_begins_anew_does_so_once() -> None:
    found = roster(flow("a->b"))
    before = drivers(found)["a->b"]
    found.change(config(flow("a->b")), anew=["a->b", "gone->b"])
    assert found.is_restarting("a->b")
    assert not found.is_restarting("gone->b")
    settle(found)
    after = drivers(found)["a->b"]
    assert after is not before
    found.change(config(flow("a->b")))
    settle(found)
    assert drivers(found)["a->b"] is after
