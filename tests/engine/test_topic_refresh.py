"""When the topic duty has its next turn: soon, while a quota stops creations, and at once after `sparkmirror retry`."""

from __future__ import annotations

import dataclasses
import time
from types import SimpleNamespace
from typing import cast

import pytest
from test_observer import a_driver

from sparkmirror.mirror.engine.flow_driver import FlowDriver
from sparkmirror.mirror.engine.topic_refresh import QUOTA_PAUSE_S, TopicRefresh
from sparkmirror.pump.messages.control import ControlState, TryNow


@pytest.mark.parametrize("refreshes", [True, False])
@pytest.mark.parametrize(("wait_s", "after_s"), [(7.0, 7.0), (0.1, QUOTA_PAUSE_S)])
def test_the_told_wait_is_kept_whatever_the_interval(
    wait_s: float, after_s: float, refreshes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver, refresh, now = a_driver(1), TopicRefresh(), [1_000.0]
    driver.flow = driver.flow.model_copy(update={"refresh_topics_enabled": refreshes})
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(FlowDriver, "sync_topics", lambda _: False)
    driver.topics.newest = dataclasses.replace(driver.topics.newest, wait_s=wait_s)
    refresh.refresh(driver)
    now[0] += after_s - 0.01
    assert not refresh.is_due(driver)
    now[0] += 0.02
    assert refresh.is_due(driver)
    driver.topics.newest = dataclasses.replace(driver.topics.newest, wait_s=0.0)
    refresh.refresh(driver)
    now[0] += driver.flow.refresh_topics_interval_seconds - 1
    assert not refresh.is_due(driver)


def test_refused_topics_are_tried_again_when_an_operator_wants_it() -> None:
    """Once for each word, also for one that was there before this process began."""
    heard, turns = ControlState(), list[str]()

    def sync_topics() -> bool:
        turns.append("turn")
        return False

    played = SimpleNamespace(
        name="A->B",
        flow=SimpleNamespace(refresh_topics_interval_seconds=600, refresh_topics_enabled=True),
        topics=SimpleNamespace(
            waits=False,
            done_topics=SimpleNamespace(changed=False),
            turns=SimpleNamespace(changed=False),
            newest=SimpleNamespace(wait_s=0.0),
        ),
        reports=SimpleNamespace(heard=heard),
        sync_topics=sync_topics,
    )
    driver, refresh = cast("FlowDriver", played), TopicRefresh()
    heard.try_now = TryNow(names=["orders"], rank=3)
    refresh.refresh(driver)
    refresh.refresh(driver)
    assert len(turns) == 1
    heard.try_now = TryNow(names=["orders"], rank=4)
    refresh.refresh(driver)
    refresh.refresh(driver)
    assert len(turns) == 2
