"""The page of a real mirror, in a real browser: what it says next to what the clusters have, within five seconds."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from chromium import Seen, chromium
from fastapi import FastAPI
from lab import KafkaCluster
from playwright.sync_api import Page
from tests.support import mirror_process as mp
from tests.support.loaded_flow import PARTITIONS, LoadedFlow, running

from sparkmirror.config import load_mm2_properties
from sparkmirror.look.page.controls import FlowControls
from sparkmirror.look.page.router import page_router
from sparkmirror.mirror.engine.mirror import Mirror
from sparkmirror.snapshot.snapshot import FlowState
from sparkmirror.web.listener import Listener, listening, serving

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.full, pytest.mark.alone]

IN_TIME_S = 5.0
CAUGHT_UP = "^Caught up: all that can be read at the source is at the target"
LIMIT = {"max.message.bytes": "5000"}


@dataclass
class Watched:
    """The page, and how soon it said what."""

    page: Page

    @property
    def words(self) -> str:
        return self.page.locator(".flow .sentence").first.inner_text()

    @property
    def tone(self) -> str:
        return self.page.locator(".flow").first.get_attribute("data-tone") or ""

    def says(self, pattern: str, since: float, what: str) -> None:
        """Wait until the sentence matches, which must be within five seconds of `since`."""
        self.until(lambda: re.search(pattern, self.words) is not None, since, what)

    def until(self, true: Callable[[], bool], since: float, what: str) -> None:
        """The same of anything on the page."""
        while not true():
            took = time.monotonic() - since
            assert took < IN_TIME_S, f"{what}: after {took:.1f} s the page still says {self.tone}: {self.words}"
            self.page.wait_for_timeout(50)
        print(f"{what}: {time.monotonic() - since:.1f} s; {self.words}")


@pytest.fixture
def flow(tmp_path: Path, topic_name: str) -> Iterator[LoadedFlow]:
    source, target = KafkaCluster(tmp_path / "source"), KafkaCluster(tmp_path / "target")
    with running(source), running(target):
        yield LoadedFlow(source, target, topic_name, tmp_path)


@contextmanager
def standing_by(properties: Path) -> Iterator[Mirror]:
    """A mirror in this process that waits for the lease."""
    mirror = Mirror(load_mm2_properties(str(properties)))
    thread = threading.Thread(target=mirror.run, daemon=True)
    thread.start()
    try:
        yield mirror
    finally:
        mirror.stop()
        thread.join(40)
    assert not thread.is_alive(), "the mirror did not stop"


@contextmanager
def watched(mirror: Mirror) -> Iterator[Watched]:
    app = FastAPI()
    controls = FlowControls(lambda: [driver.flow for driver in mirror.drivers])
    app.include_router(page_router(lambda: mirror.observer.snapshot(), controls))
    with (
        listening(Listener("http", "127.0.0.1", 0), "test") as bound,
        serving(app, bound, None),
        chromium() as browser,
        closing(Seen(browser, f"http://127.0.0.1:{bound.getsockname()[1]}/")) as seen,
    ):
        yield Watched(seen.open())
        assert not [one for one in seen.complaints if "ERR_" not in one]


class Clusters:
    """What both clusters have of a topic."""

    def __init__(self, flow: LoadedFlow, topic: str, partitions: int) -> None:
        self._flow, self._topic, self._partitions = flow, topic, partitions

    def behind(self) -> int:
        """How many records the copy lacks."""
        source = mp.end_offsets(self._flow.source.direct_servers, self._topic, self._partitions)
        target = mp.end_offsets(self._flow.target.direct_servers, f"A.{self._topic}", self._partitions)
        return sum(source) - sum(target)

    def equal_at(self, timeout_s: float, what: str) -> float:
        """Wait until nothing is lacking; returns when that was."""
        mp.wait_for(lambda: self.behind() == 0, timeout_s, what)
        return time.monotonic()


def test_the_truth_within_five_seconds(flow: LoadedFlow) -> None:
    large = f"{flow.topic}-large"
    mp.create_topic(flow.source.bootstrap_servers, large, 1)
    properties = flow.write_properties(
        "both.properties", flow.target.bootstrap_servers, {"A->B.topics": f"{flow.topic}, {large}"}
    )
    copy = Clusters(flow, flow.topic, PARTITIONS)
    with flow.start(properties=properties, log="first") as first:
        with flow.load():
            flow.wait_for_progress()
        with standing_by(properties) as mirror:
            mp.wait_for(lambda: bool(mirror.drivers[0].leadership.standing_by), 120, "the mirror stands by")
            with watched(mirror) as page:
                page.says(r"^Stands by", time.monotonic(), "a standby says so")
                page.until(lambda: page.tone == "standby", time.monotonic(), "in its colour")
                mp.wait_for(lambda: mirror.drivers[0].reports.heard.leader is not None, 30, "it has heard who leads")
                page.says(rf":{first.process.pid} works on it", time.monotonic(), "and who works")
                takes_over(flow, first, mirror, page)
                under_load(flow, copy, mirror, page)
                parked(flow, large, mirror, page)
                paused_and_resumed(flow, copy, page)
                broker_dies(flow, copy, page)


def takes_over(flow: LoadedFlow, first: mp.MirrorProcess, mirror: Mirror, page: Watched) -> None:
    first.kill_all()
    mp.wait_for(mirror.drivers[0].held, 60, "the lease is taken over")
    since = time.monotonic()
    page.until(lambda: not page.words.startswith("Stands by"), since, "a takeover shows")
    assert page.tone != "good" or page.words.startswith("Caught up")


def under_load(flow: LoadedFlow, copy: Clusters, mirror: Mirror, page: Watched) -> None:
    def copies() -> bool:
        return mirror.observer.snapshot().flows[0].state in (FlowState.COPYING, FlowState.CAUGHT_UP)

    with flow.load():
        flow.wait_for_progress(120)
        mp.wait_for(copies, 120, "every partition's position is known")
        page.says(r"records/s|^Caught up", time.monotonic(), "under load it moves")
        for _ in range(10):
            page.page.wait_for_timeout(300)
            assert "Stands by" not in page.words
    since = copy.equal_at(60, "all is copied")
    page.says(CAUGHT_UP, since, "it has caught up")
    page.until(lambda: page.tone == "good", since, "and that is well")


def parked(flow: LoadedFlow, large: str, mirror: Mirror, page: Watched) -> None:
    mp.alter_topic(flow.target.bootstrap_servers, f"A.{large}", LIMIT)
    mp.produce(flow.source.bootstrap_servers, large, 1, 1, size=20_000, codec=None)
    mp.wait_for(lambda: bool(mirror.observer.snapshot().flows[0].parked), 60, "the pump parks it")
    since = time.monotonic()
    page.says(
        rf"^1 partition is parked \({large}-0: a batch is larger than the target takes\); ",
        since,
        "a parked partition shows with its reason",
    )
    page.until(lambda: page.tone == "bad", since, "as a problem")
    problem = page.page.locator("#findings li[data-rule='parked-too-large']")
    page.until(
        lambda: problem.count() == 1 and "Raise max.message.bytes" in problem.inner_text(), since, "with its remedy"
    )
    mp.alter_topic(flow.target.bootstrap_servers, f"A.{large}", {"max.message.bytes": "100000"})
    since = Clusters(flow, large, 1).equal_at(120, "it is copied after all")
    page.says(CAUGHT_UP, since, "it has caught up again")


def paused_and_resumed(flow: LoadedFlow, copy: Clusters, page: Watched) -> None:
    """By the page itself, through the flow's control topic."""
    act = page.page
    act.get_by_role("button", name="Pause…").click()
    act.get_by_label("Source topics").fill(flow.topic.replace("-", r"\-"))
    act.get_by_role("button", name="Pause them").click()
    act.get_by_role("dialog").wait_for(state="hidden")
    page.says(r"4 partitions are paused by an operator", time.monotonic(), "a pause shows")
    mp.produce(flow.source.bootstrap_servers, flow.topic, PARTITIONS, 400)
    since = time.monotonic()
    assert copy.behind() == 400
    page.says(r"\(400 records behind\)", since, "what a paused topic lacks is what the copy lacks")
    assert page.tone != "good"
    act.get_by_role("button", name="Resume…").click()
    act.get_by_role("button", name="Resume them").click()
    act.get_by_role("dialog").wait_for(state="hidden")
    since = copy.equal_at(60, "it continues")
    page.says(CAUGHT_UP + r"\.$", since, "nothing is paused any more")


def broker_dies(flow: LoadedFlow, copy: Clusters, page: Watched) -> None:
    (broker,) = flow.target.brokers
    with flow.load():
        flow.wait_for_progress(60)
        broker.kill()
        since = time.monotonic()
        page.until(lambda: page.tone not in ("good", "working"), since, "a dead broker shows")
        for _ in range(20):
            page.page.wait_for_timeout(250)
            assert page.tone not in ("good", "working"), page.words
            assert f":{os.getpid()}" not in page.words, "it does not name itself as another process"
        broker.start()
        flow.wait_for_progress(120)
    since = copy.equal_at(120, "all is copied after the broker has come back")
    page.says(CAUGHT_UP, since, "it has caught up after the broker's death")
    page.until(lambda: page.tone == "good", since, "and that is well")
