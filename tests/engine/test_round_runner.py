"""When a round ends, with a job that does not end."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.mirror.engine import left_out_flows, round_runner
from sparkmirror.mirror.engine.assignment import PartitionKey
from sparkmirror.mirror.engine.end_reason import EndReason
from sparkmirror.mirror.engine.planner import Growth
from sparkmirror.mirror.engine.round_runner import RoundRunner
from sparkmirror.pump.messages.orders import FlowEnd, Receipt


def test_a_round_ends_a_day_after_it_began(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its pumps end by themselves then, but for those that Spark began again later: they would continue alone."""
    turns = iter(range(3))
    nothing: Any = SimpleNamespace(
        wait=lambda _: next(turns) < 0,
        has_failed=False,
        exchange_beats=lambda: None,
        is_due=False,
        show=lambda: None,
    )
    runner = RoundRunner(nothing, nothing, nothing, nothing, nothing, list, nothing.show, threading.Event())
    monkeypatch.setattr(round_runner, "ROUND_S", -1.0)
    assert runner._wait_for_end(nothing, nothing, [], []) is EndReason.PLANNED  # noqa: SLF001 - its loop alone


def test_a_round_ends_if_the_lease_was_lost_and_got_back_between_two_looks() -> None:
    """Its driver has to become active in the new term; until then its duties rest."""
    turns = iter(range(3))
    nothing: Any = SimpleNamespace(
        wait=lambda _: next(turns) == 1, has_failed=False, exchange_beats=lambda: None, is_due=False, show=lambda: None
    )
    driver: Any = SimpleNamespace(name="a->b", leadership=SimpleNamespace(is_active=lambda: False))
    runner = RoundRunner(nothing, nothing, nothing, nothing, nothing, lambda: [driver], nothing.show, threading.Event())
    assert runner._wait_for_end(nothing, nothing, [driver], [driver]) is EndReason.FLOWS  # noqa: SLF001 - its loop


def test_a_round_ends_for_a_shorter_lifetime_though_the_look_at_topics_fails() -> None:
    """The lifetime was asked for before the failure, and the next look finds nothing new (R4)."""

    def fail(_: object) -> bool:
        raise ConnectionError("away")

    taken: Any = SimpleNamespace(take_in=lambda *_: Growth.IMPOSSIBLE)
    failing: Any = SimpleNamespace(refresh=fail)
    nothing: Any = SimpleNamespace(is_under_way=False, show=None)
    runner = RoundRunner(taken, nothing, failing, nothing, nothing, list, nothing.show, threading.Event())
    driver: Any = SimpleNamespace(name="a->b", orders=SimpleNamespace(is_outlived=False))
    assert runner._refreshed(driver, [driver], nothing)  # noqa: SLF001 - one turn of its loop
    driver.orders.is_outlived = True
    assert not runner._refreshed(driver, [driver], nothing)  # noqa: SLF001


def test_a_round_continues_until_the_clusters_of_a_flow_left_out_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ending it for a flow that is still away would hold up all others for nothing."""
    answers = iter([False, False, True])
    monkeypatch.setattr(left_out_flows, "PAUSE_S", 0.01)
    monkeypatch.setattr(left_out_flows, "_answers", lambda cluster: cluster.alias == "b" or next(answers))
    source, target = (ClusterConfig(alias=alias, bootstrap_servers=(f"{alias}:1",)) for alias in "ab")
    with left_out_flows.LeftOutFlows([FlowConfig(source=source, target=target)], 0.01) as left_out:
        deadline = time.monotonic() + 10
        while not left_out.is_back:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert next(answers, None) is None
    with left_out_flows.LeftOutFlows([], 0.0) as nobody:
        time.sleep(0.05)
    assert not nobody.is_back


@pytest.mark.parametrize(
    ("end", "complete", "unclean"),
    [
        ({}, True, False),
        ({"in_doubt": True}, True, True),
        ({"in_doubt": True, "has_rival": True}, False, True),
    ],
)
def test_work_is_complete_though_an_earlier_pumps_requests_may_still_arrive(
    end: dict[str, bool], complete: bool, unclean: bool
) -> None:
    """Else `run --once` would begin rounds without end after a kill: each new round waits from its own start on."""
    done = Receipt.model_construct(
        flow="a->b", source_topic="t", partition=0, state="done", released=False, upstream=7, in_doubt=False
    )
    noted: list[bool] = []
    driver: Any = SimpleNamespace(
        name="a->b",
        pumped=lambda: {PartitionKey("a->b", "t", 0): None},
        reports=SimpleNamespace(take_receipts=lambda *_: None),
        predecessors=SimpleNamespace(note_end=lambda *, unclean: noted.append(unclean), unclean=unclean),
        control=SimpleNamespace(say=lambda *_: None),
    )
    nothing: Any = SimpleNamespace(show=None)
    runner = RoundRunner(nothing, nothing, nothing, nothing, nothing, list, nothing.show, threading.Event())
    job: Any = SimpleNamespace(ends=[FlowEnd(flow="a->b").model_copy(update={"receipts": (done,), **end})])
    assert (runner.take_results(job, [driver]) == [driver]) is complete
    assert noted == [unclean]
