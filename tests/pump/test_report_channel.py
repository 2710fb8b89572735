"""Reports of a pump to its driver, where the target answers late, or not at all."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable

import pytest

from sparkmirror.config import ClusterConfig, FlowConfig
from sparkmirror.kafka.cluster.topic_log import TopicLog
from sparkmirror.pump import report_channel
from sparkmirror.pump.control_channel import ControlChannel
from sparkmirror.pump.loop import Loop
from sparkmirror.pump.messages.control import ControlState
from sparkmirror.pump.messages.orders import FlowReport
from sparkmirror.pump.report_channel import ReportChannel

SOURCE, TARGET = (ClusterConfig(alias=alias, bootstrap_servers=("127.0.0.1:1",)) for alias in "AB")
FLOW = FlowConfig(source=SOURCE, target=TARGET)


def report(records: int) -> FlowReport:
    return FlowReport(epoch=1, task=0, pump="a pump", incarnation="i", at_ms=0, records=records)


def one_record(wait_ms: int) -> tuple[list[tuple[int, bytes | None, bytes | None]], int]:
    time.sleep(wait_ms / 1000)
    return [(0, b"?", None)], 1


def wait_for(reached: threading.Event) -> None:
    assert reached.wait(10)


def test_reports_are_kept_until_they_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    failures = iter([ConnectionError("no leader"), ConnectionError("no leader"), None])
    all_sent = threading.Event()

    def publish(_: TopicLog, reports: Iterable[FlowReport]) -> None:
        if (error := next(failures, None)) is not None:
            raise error
        sent.extend(each.records for each in reports)
        if len(sent) == 3:
            all_sent.set()

    monkeypatch.setattr(report_channel, "publish", publish)
    monkeypatch.setattr(report_channel, "_RETRY_S", 0.01)
    channel = ReportChannel(FLOW)
    for records in (1, 2, 3):
        channel.report(report(records))
    wait_for(all_sent)
    channel.close(10)
    assert sent == [1, 2, 3]


def test_a_gap_in_the_reports_is_told_once_the_topic_takes_reports_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Later reports tell changes only: a receipt that was given up would never be told again."""
    tried, arrived, is_back = threading.Semaphore(0), threading.Event(), threading.Event()
    sent: list[int] = []

    def publish(_: TopicLog, reports: Iterable[FlowReport]) -> None:
        tried.release()
        if not is_back.is_set():
            raise ConnectionError("no leader")
        sent.extend(each.records for each in reports)
        arrived.set()

    monkeypatch.setattr(report_channel, "publish", publish)
    monkeypatch.setattr(report_channel, "_RETRY_S", 0.001)
    monkeypatch.setattr(report_channel, "_WAIT_S", 0.001)
    monkeypatch.setattr(report_channel, "_MOST_UNSENT", 2)
    channel = ReportChannel(FLOW)
    for records in (1, 2, 3):
        channel.report(report(records))
    for _ in range(5):
        assert tried.acquire(timeout=10)
    assert not channel.take_gap(), "nothing would arrive yet"
    is_back.set()
    wait_for(arrived)
    channel.close(10)
    assert sent == [2, 3]
    assert (channel.take_gap(), channel.take_gap()) == (True, False)


def test_a_receipts_leader_that_hangs_keeps_no_pump_from_hearing_its_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    hanging, released = threading.Event(), threading.Event()

    def publish(*_: object) -> None:
        hanging.set()
        wait_for(released)

    monkeypatch.setattr(report_channel, "publish", publish)
    monkeypatch.setattr(TopicLog, "read", lambda *_, wait_ms: one_record(wait_ms))
    heard: list[ControlState] = []
    loop = Loop()
    reports, control = ReportChannel(FLOW), ControlChannel(FLOW, loop, lambda state, _: heard.append(state))
    try:
        reports.report(report(1))
        wait_for(hanging)
        before = len(heard)
        deadline = time.monotonic() + 10
        while len(heard) < before + 3:
            assert time.monotonic() < deadline
            loop.turn(0.02)
    finally:
        released.set()
        reports.close(10)
        control.close(10)
        loop.close()
