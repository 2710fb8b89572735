"""Which drivers a mirror has, while other flows are asked for: with drivers that only note what is done with them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from typing import cast

import pytest
from tests.support import mirror_process as mp

from sparkmirror.config import ClusterConfig, FlowConfig, MirrorConfig
from sparkmirror.errors import ClusterUnreachable, ConfigError
from sparkmirror.log_levels import asked_levels
from sparkmirror.mirror.engine import flow_registry as module
from sparkmirror.mirror.engine.duties import Duties, Schedule
from sparkmirror.mirror.engine.flow_driver import FlowDriver
from sparkmirror.mirror.engine.flow_registry import FlowRegistry
from sparkmirror.policy import DefaultReplicationPolicy


class StubDriver:
    """`fails`: why it can't be opened; `hold`: what its end waits for."""

    fails: dict[str, str] = {}  # noqa: RUF012 - the test's
    hold: threading.Event | None = None

    def __init__(self, flow: FlowConfig) -> None:
        self.flow = flow
        self.name = flow.name
        self.cluster_ids = {flow.source.alias: flow.source.alias, flow.target.alias: flow.target.alias}
        self.done: list[str] = []
        self.duties: Duties | None = None

    def open(self) -> None:
        if self.name in self.fails:
            raise ClusterUnreachable(self.fails[self.name])
        self.done.append("opened")

    def start(self, before: StubDriver | None = None) -> None:
        self.done.append("started with its lease" if before else "started")

    def close(self, duties_s: float = 0.0, *, keep_lease: bool = False) -> None:
        if self.duties is not None:
            self.duties.close(duties_s)
        if self.hold is not None:
            self.hold.wait(10)
        self.done.append("closed, its lease kept" if keep_lease else "closed")


registries: list[FlowRegistry] = []


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As no test has left it; what is still being opened is given up: it would warn until the end of the run."""
    monkeypatch.setattr(StubDriver, "fails", {})
    monkeypatch.setattr(StubDriver, "hold", None)
    monkeypatch.setattr(module, "REOPEN_S", 0.05)
    yield
    while registries:
        registries.pop().close(0)
    mp.wait_for(lambda: not any(one.name.startswith("open ") for one in threading.enumerate()), 5, "the openings' end")


def flow(name: str, topics: str = "t") -> FlowConfig:
    source, target = (ClusterConfig(alias=alias, bootstrap_servers=(f"{alias}:9092",)) for alias in name.split("->"))
    return FlowConfig(source=source, target=target, topics=(topics,))


def config(*flows: FlowConfig) -> MirrorConfig:
    return MirrorConfig(path="test", flows=flows)


def registry(*flows: FlowConfig, check: Callable[[FlowConfig], None] = lambda _: None) -> FlowRegistry:
    made = FlowRegistry(config(*flows), cast("Callable[[FlowConfig], FlowDriver]", StubDriver), check)
    registries.append(made)
    made.open()
    made.start()
    return made


def drivers(flows: FlowRegistry) -> dict[str, StubDriver]:
    return {driver.name: cast("StubDriver", driver) for driver in flows.drivers}


def settle(flows: FlowRegistry) -> None:
    """As the mirror does it between rounds."""

    def settled() -> bool:
        flows.exchange()
        return flows.is_up_to_date

    mp.wait_for(settled, 5, "all done")


def test_what_stays_is_left_alone_and_what_changes_keeps_its_lease() -> None:
    flows = registry(flow("a->b"), flow("b->a"), flow("a->c"))
    before = drivers(flows)
    flows.change(config(flow("a->b"), flow("b->a", "other")))
    settle(flows)
    after = drivers(flows)
    assert after.keys() == {"a->b", "b->a"}
    assert after["a->b"] is before["a->b"]
    assert before["a->b"].done == ["opened", "started"]
    assert before["b->a"].done[-1] == "closed, its lease kept"
    assert after["b->a"].done == ["opened", "started with its lease"]
    assert before["a->c"].done[-1] == "closed"


def test_an_ended_flows_log_levels_are_given_back() -> None:
    logger = logging.getLogger("sparkmirror.levels_of_this_test")
    flows = registry(flow("a->b"), flow("b->a"), flow("a->c"))
    for name, level in (("a->b", "DEBUG"), ("a->c", "ERROR"), ("b->a", "INFO")):
        asked_levels.follow(name, {logger.name: level})
    assert logger.level == logging.DEBUG
    flows.change(config(flow("b->a"), flow("a->c", "other")))
    settle(flows)
    assert logger.level == logging.ERROR, "a flow with other settings still asks"
    flows.change(config(flow("b->a")))
    settle(flows)
    assert logger.level == logging.INFO
    flows.close(0)
    assert logger.level == logging.NOTSET


def test_a_flow_at_another_cluster_gets_a_lease_of_its_own() -> None:
    flows = registry(flow("a->b"))
    moved = flow("a->b").model_copy(update={"target": ClusterConfig(alias="b", bootstrap_servers=("elsewhere:1",))})
    before = drivers(flows)["a->b"]
    flows.change(config(moved))
    settle(flows)
    assert before.done[-1] == "closed"
    assert drivers(flows)["a->b"].done == ["opened", "started"]


def test_what_cant_be_opened_is_tried_again_and_its_old_form_is_ended() -> None:
    flows = registry(flow("a->b"))
    before = drivers(flows)["a->b"]
    StubDriver.fails["a->b"] = "b is away"
    flows.change(config(flow("a->b", "other")))
    settle(flows)
    assert flows.failed == {"a->b": "b is away"}
    assert drivers(flows) == {}
    assert before.done[-1] == "closed"
    del StubDriver.fails["a->b"]
    mp.wait_for(lambda: flows.is_due, 5, "the next attempt")
    settle(flows)
    assert flows.failed == {}
    assert drivers(flows)["a->b"].flow.topics == ("other",)


def test_a_flow_changes_from_the_request_on_until_its_driver_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    flows = registry(flow("a->b"), flow("b->a"))
    assert not flows.is_changing("a->b")
    hold = threading.Event()
    monkeypatch.setattr(StubDriver, "hold", hold)
    flows.change(config(flow("b->a")))
    assert flows.is_changing("a->b"), "its driver is at work still"
    end = threading.Thread(target=flows.exchange)
    end.start()
    mp.wait_for(lambda: "a->b" not in drivers(flows), 5, "its driver is being closed")
    assert flows.is_changing("a->b")
    assert not flows.is_changing("b->a")
    hold.set()
    end.join(5)
    assert not flows.is_changing("a->b")


def test_a_flow_changes_until_a_late_last_turn_has_ended_and_its_failure_is_known() -> None:
    go_on = threading.Event()

    class Late:
        def run(self) -> None:
            go_on.wait(10)
            raise ConnectionError("the target is away")

        def close(self) -> None:
            pass

    flows = registry(flow("a->b"), flow("b->a"))
    schedule = Schedule(name="stores", interval_s=3600, make=Late, delayed=True, at_end=True)
    duties = drivers(flows)["a->b"].duties = Duties("a->b", [schedule], lambda: True)
    duties.start()
    flows.change(config(flow("b->a")))
    flows.exchange()
    assert drivers(flows).keys() == {"b->a"}
    assert flows.is_changing("a->b"), "its driver is closed, but the last turn continues"
    assert not flows.is_changing("b->a")
    go_on.set()
    mp.wait_for(lambda: not flows.is_changing("a->b"), 5, "the last turn's end")
    assert flows.last_failure("a->b", "stores") == "the target is away"
    assert flows.last_failure("a->b", "tells") == flows.last_failure("b->a", "stores") == ""
    flows.forget_ended("a->b")
    assert flows.last_failure("a->b", "stores") == ""


def test_a_flow_that_may_not_run_is_named() -> None:
    def check(asked: FlowConfig) -> None:
        if asked.name == "a->c":
            raise ConfigError("not so", origin="test")

    flows = registry(flow("a->b"), check=check)
    flows.change(config(flow("a->b"), flow("a->c")))
    settle(flows)
    assert flows.failed == {"a->c": "test: not so"}
    assert drivers(flows).keys() == {"a->b"}


def test_a_flow_that_is_wanted_again_while_it_is_ended() -> None:
    flows = registry(flow("a->b"))
    before = drivers(flows)["a->b"]
    StubDriver.hold = threading.Event()
    flows.change(config())
    ending = threading.Thread(target=flows.exchange)
    ending.start()
    mp.wait_for(lambda: not flows.drivers, 5, "its end")
    assert not flows.is_up_to_date, "its last words may come yet"
    flows.change(config(flow("a->b")))
    StubDriver.hold.set()
    ending.join(5)
    settle(flows)
    assert before.done[-1] == "closed"
    assert drivers(flows)["a->b"].done == ["opened", "started"]


def test_what_begins_again_does_so_once() -> None:
    flows = registry(flow("a->b"))
    before = drivers(flows)["a->b"]
    flows.change(config(flow("a->b")), restart=["a->b", "gone->b"])
    assert flows.is_restarting("a->b")
    assert not flows.is_restarting("gone->b")
    settle(flows)
    after = drivers(flows)["a->b"]
    assert after is not before
    flows.change(config(flow("a->b")))
    settle(flows)
    assert drivers(flows)["a->b"] is after


def test_a_pair_whose_heartbeats_can_not_be_sent_is_named_and_ends_nothing() -> None:
    """Its policy's class may be found when the connector is put, and gone or different later."""
    flows = registry(flow("a->b"))
    wrong = flow("b->a").model_copy(update={"replication_policy_class": "nowhere:Policy"})
    flows.change(config(flow("a->b")).model_copy(update={"beats": (wrong,)}))
    for _ in range(2):
        flows.exchange_beats()
    assert flows.failed.keys() == {"b->a"}
    assert "nowhere" in flows.failed["b->a"]
    flows.change(config(flow("a->b"), flow("b->a")).model_copy(update={"beats": (wrong,)}))
    settle(flows)
    flows.exchange_beats()
    assert flows.failed.keys() == {"b->a"}, "a flow of the same clusters, which can be opened"
    assert flows.is_up_to_date
    flows.change(config(flow("a->b")))
    flows.exchange_beats()
    settle(flows)
    assert flows.failed == {}
    assert flows.is_up_to_date
    assert drivers(flows).keys() == {"a->b"}


class RaisingPolicy(DefaultReplicationPolicy):
    """A policy of the user whose mistake shows only when it is asked."""

    asked = 0

    def heartbeats_topic(self) -> str:
        type(self).asked += 1
        raise KeyError("no such name")


def test_a_policy_that_raises_is_named_and_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    flows = registry(flow("a->b"))
    wrong = flow("b->a").model_copy(update={"replication_policy_class": f"{__name__}:RaisingPolicy"})
    asked = config(flow("a->b")).model_copy(update={"beats": (wrong,)})
    flows.change(asked)
    monkeypatch.setattr(RaisingPolicy, "asked", 0)
    monkeypatch.setattr(module, "REOPEN_S", 60)
    for _ in range(3):
        flows.exchange_beats()
    why = (
        f"flow b->a: replication.policy.class: {__name__}:RaisingPolicy can't tell the heartbeats topic: "
        "KeyError: 'no such name'"
    )
    assert (flows.failed, RaisingPolicy.asked) == ({"b->a": why}, 1)
    stands = [flows.is_up_to_date]
    flows.change(asked, restart=["b->a"])
    stands.append(flows.is_up_to_date)
    monkeypatch.setattr(module, "REOPEN_S", 0)
    for _ in range(3):
        flows.exchange_beats()
    stands.append(flows.is_up_to_date)
    assert (set(flows.failed), RaisingPolicy.asked, stands) == ({"b->a"}, 4, [True, False, True])
    assert len([entry for entry in caplog.records if "no such name" in entry.getMessage()]) == 2, "not each time"
