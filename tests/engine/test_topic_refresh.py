"""When the topic duty has its turn: at its interval, and at once after `sparkmirror retry`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from sparkmirror.engine.flow_driver import FlowDriver
from sparkmirror.engine.topic_refresh import TopicRefresh
from sparkmirror.messages.control import ControlState, TryNow


def test_refused_topics_are_tried_again_when_an_operator_wants_it() -> None:
    """Once for each word, also for one that was there before this process began."""
    heard, turns = ControlState(), list[str]()

    def sync_topics() -> bool:
        turns.append("turn")
        return False

    played = SimpleNamespace(
        name="A->B",
        flow=SimpleNamespace(refresh_topics_interval_seconds=600, refresh_topics_enabled=True),
        topics=SimpleNamespace(waits=False, done_topics=SimpleNamespace(changed=False)),
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
