"""A connector that brings workers down is held; other connectors, and workers that end in order, are not concerned."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.support.in_memory_api import in_memory_api
from tests.support.rest_cases import connector

from sparkmirror.connect.connector_model import ConnectorSpec, TargetState
from sparkmirror.connect.first_starts import MOST_DEATHS, PROVEN_S, FirstStarts
from sparkmirror.connect.status_log import Record, StatusState

CONFIG = connector("Source", "source:9092", "target:9092")
BAD = ConnectorSpec(name="bad", config={"topics": "x"}, target_state=TargetState.STARTED)
GOOD = ConnectorSpec(name="good", config={"topics": "y"}, target_state=TargetState.STARTED)


class Topic:
    """The status topic, and processes that live and die."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def process(self) -> FirstStarts:
        state = StatusState()
        self.state = state
        for key, value in self.records:
            assert state.take(key, value)
        return FirstStarts(state)

    def write(self, records: list[Record]) -> None:
        for key, value in records:
            self.records.append((key, value))
            self.state.take(key, value)

    def begin(self, process: FirstStarts, specs: Mapping[str, ConnectorSpec], at: float = 0.0) -> list[str]:
        """Start the connectors; return the held ones."""
        allowed, records = process.begin(specs, at)
        self.write(records)
        assert allowed.keys() == specs.keys()
        return [name for name, spec in allowed.items() if spec.held]

    def dies(self, *specs: ConnectorSpec) -> list[str]:
        return self.begin(self.process(), {spec.name: spec for spec in specs})


@pytest.fixture
def topic() -> Topic:
    return Topic()


def test_who_has_killed_two_workers_is_held_and_the_others_continue(topic: Topic) -> None:
    lived = topic.process()
    assert topic.begin(lived, {"good": GOOD}) == []
    topic.write(lived.proven(PROVEN_S))
    for _ in range(MOST_DEATHS):
        assert topic.dies(GOOD, BAD) == []
    for _ in range(3):
        assert topic.dies(GOOD, BAD) == ["bad"]


def test_what_a_worker_has_lived_with_may_die_with_any_worker(topic: Topic) -> None:
    process = topic.process()
    topic.begin(process, {"bad": BAD})
    assert process.proven(PROVEN_S - 1) == []
    topic.write(process.proven(PROVEN_S))
    assert process.proven(2 * PROVEN_S) == []
    for _ in range(2 * MOST_DEATHS):
        assert topic.dies(BAD) == []


def test_an_end_in_order_is_no_death(topic: Topic) -> None:
    for _ in range(2 * MOST_DEATHS):
        process = topic.process()
        assert topic.begin(process, {"bad": BAD}) == []
        topic.write(process.end())


def test_a_process_counts_its_own_starts_once(topic: Topic) -> None:
    process = topic.process()
    for _ in range(2 * MOST_DEATHS):
        assert topic.begin(process, {"bad": BAD}) == []


def test_another_configuration_and_a_restart_begin_again(topic: Topic) -> None:
    for _ in range(MOST_DEATHS):
        topic.dies(BAD)
    changed = replace(BAD, config={"topics": "z"})
    assert topic.dies(changed) == []
    for _ in range(MOST_DEATHS):
        topic.dies(BAD)
    process = topic.process()
    assert topic.begin(process, {"bad": BAD}) == ["bad"]
    topic.write(process.again("bad"))
    assert topic.begin(process, {"bad": BAD}) == []
    assert process.again("bad") == []


@pytest.mark.parametrize("state", [TargetState.PAUSED, TargetState.STOPPED])
def test_who_does_not_run_kills_nobody(topic: Topic, state: TargetState) -> None:
    for _ in range(2 * MOST_DEATHS):
        assert topic.dies(replace(BAD, target_state=state)) == []


def test_a_deleted_connectors_starts_are_forgotten(topic: Topic) -> None:
    for _ in range(MOST_DEATHS):
        topic.dies(BAD)
    topic.dies(GOOD)
    assert topic.dies(BAD, GOOD) == []


def test_the_interface_holds_it_and_starts_it_again_when_asked() -> None:
    with in_memory_api() as api:
        assert api.ask("PUT", "/connectors/shop/config", CONFIG)[0] == 201
        (key, value) = next(record for record in api.statuses.records if record[0] == b"sparkmirror-start-shop")
        assert value is not None
        assert not api.worker.connectors["shop"].held
        died = {**json.loads(value), "starts": MOST_DEATHS}
        api.ask("DELETE", "/connectors/shop")
        api.statuses.append([(key, json.dumps(died).encode())])
        api.ask("PUT", "/connectors/shop/config", CONFIG)
        assert "restart the connector" in api.worker.connectors["shop"].held
        assert api.ask("POST", "/connectors/shop/restart")[0] == 204
        assert not api.worker.connectors["shop"].held
