"""The schedule of duties: their rate, what happens when they fail, and who does them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.receipts import receipt

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.mirror.engine import flow_driver
from sparkmirror.mirror.engine.assignment import PartitionKey
from sparkmirror.mirror.engine.duties import Duties, DutyTurns, Schedule
from sparkmirror.mirror.engine.flow_driver import FlowDriver
from sparkmirror.mirror.engine.flow_view import PartitionView


class Counted:
    """A duty that fails as often as it is told to."""

    def __init__(self, failures: int = 0, failure: Exception | None = None) -> None:
        self.failure = failure or ConnectionError("the cluster is away")
        self.runs = 0
        self.closed = 0
        self.failures = failures
        self.threads: set[int] = set()

    def run(self) -> None:
        self.threads.add(threading.get_ident())
        self.runs += 1
        if self.runs <= self.failures:
            raise self.failure

    def close(self) -> None:
        self.threads.add(threading.get_ident())
        self.closed += 1


class Writing(Counted):
    """A duty that writes two records a turn."""

    written = 2


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def duties(duty: DutyTurns, interval_s: float, held: Callable[[], bool] = lambda: True, **options: bool) -> Duties:
    return Duties("a->b", [Schedule(name="count", interval_s=interval_s, make=lambda: duty, **options)], held)


def cluster(alias: str) -> ClusterConfig:
    return ClusterConfig(alias=alias, bootstrap_servers=("127.0.0.1:1",))


def test_a_duty_is_done_again_and_again_in_one_thread() -> None:
    duty = Counted()
    running = duties(duty, 0.01)
    running.start()
    until(lambda: duty.runs >= 5)
    running.close()
    assert duty.closed == 1
    assert len(duty.threads) == 1
    assert duty.threads.isdisjoint({threading.get_ident()})


@pytest.mark.parametrize(
    ("failure", "makes", "why"),
    [(ConnectionError("the cluster is away"), 1, "the cluster is away"), (KeyError("x"), 4, "KeyError('x')")],
)
def test_what_fails_is_said_once_and_tried_again(
    failure: Exception, makes: int, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    duty = Counted(3, failure)
    made: list[DutyTurns] = []

    def make() -> DutyTurns:
        made.append(duty)
        return duty

    running = Duties("a->b", [Schedule(name="count", interval_s=0.01, make=make)], lambda: True)
    with caplog.at_level("INFO"):
        running.start()
        until(lambda: "count" in running.failing or duty.runs > 3)
        until(lambda: duty.runs >= 5)
        running.close()
    assert len(made) == makes, "after what nobody thought of the duty is closed, and a new one made"
    assert running.failing == {}
    ours = [record for record in caplog.records if record.name == "sparkmirror.mirror.engine.duties"]
    assert [record.message for record in ours] == [
        f"flow a->b: count: {why}",
        "flow a->b: count: works again",
    ]


def test_records_of_good_turns_are_counted_where_a_duty_writes_any() -> None:
    writing, other = Writing(failures=2), Counted()
    running = [duties(duty, 0.01) for duty in (writing, other)]
    for each in running:
        each.start()
    until(lambda: writing.runs >= 5 and other.runs >= 3)
    for each in running:
        each.close()
    assert running[0].record("count").written == 2 * (writing.runs - 2)
    assert running[1].record("count").written is None


def test_a_duty_that_could_not_be_made_is_tried_again() -> None:
    tries: list[int] = []

    def make() -> DutyTurns:
        tries.append(1)
        raise KeyError("no such thing")

    running = Duties("a->b", [Schedule(name="count", interval_s=0.01, make=make)], lambda: True)
    running.start()
    until(lambda: len(tries) >= 3)
    assert running.failing == {"count": "KeyError('no such thing')"}
    running.close()


def test_only_the_holder_of_the_lease_does_it() -> None:
    duty = Counted()
    holding = threading.Event()
    running = duties(duty, 0.01, holding.is_set)
    running.start()
    time.sleep(0.1)
    assert duty.runs == 0
    holding.set()
    until(lambda: duty.runs >= 2)
    holding.clear()
    until(lambda: duty.closed == 1)
    running.close()


@pytest.mark.parametrize(("held", "runs"), [(True, 1), (False, 0)])
def test_the_last_turn(held: bool, runs: int) -> None:
    duty = Counted()
    running = duties(duty, 3600.0, lambda: held, delayed=True, at_end=True)
    running.start()
    time.sleep(0.05)
    assert duty.runs == 0
    running.close()
    assert duty.runs == runs


def test_a_late_turn_is_not_made_up_for_many_times() -> None:
    slow = threading.Event()

    began: list[float] = []

    class Slow(Counted):
        def run(self) -> None:
            super().run()
            began.append(time.monotonic())
            if self.runs == 1:
                slow.wait(0.5)

    duty = Slow()
    running = duties(duty, 0.1)
    running.start()
    until(lambda: len(began) >= 4)
    running.close()
    assert began[3] - began[1] > 0.1, "not five at once"


def test_last_turns_come_in_order_and_may_be_special() -> None:
    said: list[str] = []

    class Finishing(Counted):
        def finish(self) -> None:
            time.sleep(0.2)
            said.append("finished")

    class Plain(Counted):
        def run(self) -> None:
            said.append("run")

    schedules = [
        Schedule(name="first", interval_s=3600, make=Finishing, delayed=True, at_end=True),
        Schedule(name="second", interval_s=3600, make=Plain, delayed=True, at_end=True),
    ]
    running = Duties("a->b", schedules, lambda: True)
    running.start()
    running.close()
    assert said == ["finished", "run"]


def test_a_last_turn_that_takes_long_keeps_the_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who gets the lease next finds all that the turn stores."""
    go_on, kept = threading.Event(), [True]

    class Slow(Counted):
        def run(self) -> None:
            go_on.wait(20)
            super().run()

    slow = Slow()
    driver = FlowDriver(FlowConfig(source=cluster("a"), target=cluster("b")), "me", use_lease=False, once=False)
    monkeypatch.setattr(driver.leadership, "release", kept.clear)
    running = duties(slow, 60.0, lambda: bool(kept), delayed=True, at_end=True)
    running.start()
    running.close(0.1)
    driver._release_after(running)  # noqa: SLF001 - the end of `close`, without clusters
    time.sleep(0.1)
    assert kept
    go_on.set()
    until(lambda: not kept)
    assert slow.runs == 1


@pytest.fixture
def leased(monkeypatch: pytest.MonkeyPatch) -> tuple[FlowDriver, Any]:
    """A driver without clusters that knows its topics, and its lease."""
    driver = FlowDriver(FlowConfig(source=cluster("A"), target=cluster("B")), "me", use_lease=True, once=False)
    lease: Any = SimpleNamespace(is_held=True, term=1, held=lambda: lease.is_held)
    driver.topics.synced, driver.leadership.lease, driver.cluster_ids = True, lease, {"A": "a"}
    driver.leadership.start(driver.leadership)
    monkeypatch.setattr(driver.leadership, "announce", lambda: SimpleNamespace(unclean=False))
    monkeypatch.setattr(driver.leadership, "agree", lambda *_: None)
    monkeypatch.setattr(driver.reports.loss_watch, "start", lambda: None)
    monkeypatch.setattr(driver.predecessors, "begin", lambda *_, **__: None)
    monkeypatch.setattr(flow_driver, "ProgressLog", lambda _: None)
    return driver, lease


def test_duties_see_no_receipts_of_a_former_term(leased: tuple[FlowDriver, Any]) -> None:
    """Another process has copied on meanwhile: groups and noted progress would go back."""
    driver, lease = leased
    driver.become_active()
    driver.view.partitions[PartitionKey("A->B", "t", 0)] = PartitionView(receipt=receipt(source_topic="t"))
    seen: list[int] = []

    class Looking(Counted):
        def run(self) -> None:
            super().run()
            seen.append(len(driver.view.receipts))

    looking = Looking()
    running = duties(looking, 0.001, driver.acts)
    running.start()
    until(lambda: looking.runs > 0)
    lease.is_held = False
    until(lambda: looking.closed == 1)
    seen.clear()
    lease.is_held, lease.term = True, 2
    time.sleep(0.6)
    assert seen == []
    driver.become_active()
    until(lambda: len(seen) > 1)
    running.close()
    assert set(seen) == {0}


def test_a_pump_that_has_ended_early_stops_no_duty(leased: tuple[FlowDriver, Any]) -> None:
    """Its driver becomes active again in the same term."""
    driver, lease = leased
    assert not driver.acts()
    driver.become_active()
    driver.leadership.announce_again()
    driver.view.partitions[PartitionKey("A->B", "t", 0)] = PartitionView(receipt=receipt(source_topic="t"))
    assert driver.acts()
    driver.become_active()
    assert driver.view.receipts == []
    lease.is_held = False
    assert not driver.acts()
