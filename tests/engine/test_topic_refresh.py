"""When the topic duty's next turn comes: soon, while a quota stops the creation of topics."""

from __future__ import annotations

import dataclasses
import time

import pytest
from test_observer import a_driver

from sparkmirror.engine.flow_driver import FlowDriver
from sparkmirror.engine.topic_refresh import QUOTA_PAUSE_S, TopicRefresh


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
