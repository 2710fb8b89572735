"""What is said to the REST interface so that there is what shall be there; tried on the real one in memory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.in_memory_api import InMemoryApi, in_memory_api

from sparkmirror.operator.connectors import changes, config_digest
from sparkmirror.operator.plan import WantedConnector

STATES = {"running": "RUNNING", "paused": "PAUSED", "stopped": "STOPPED"}


def wanted(name: str, state: str = "running", **more: str) -> WantedConnector:
    config = {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "source.cluster.alias": name,
        "target.cluster.alias": "eu",
        "source.cluster.bootstrap.servers": "us:9092",
        "target.cluster.bootstrap.servers": "eu:9092",
        **{key.replace("_", "."): value for key, value in more.items()},
    }
    return WantedConnector(f"{name}->eu.MirrorSourceConnector", config, state)


def done(api: InMemoryApi, plan: Sequence[WantedConnector], put: dict[str, str]) -> int:
    """Do all that is to be done; how many requests that took."""
    _, there = api.ask("GET", "/connectors?expand=info&expand=status")
    assert isinstance(there, dict)
    calls = list(changes(plan, there, put))
    for call in calls:
        status, answer = api.ask(call.method, call.path, call.body)
        assert status < 300, (call, answer)
    put.clear()
    put.update({item.name: config_digest(item) for item in plan})
    return len(calls)


def there(api: InMemoryApi) -> dict[str, Any]:
    _, shown = api.ask("GET", "/connectors?expand=info&expand=status")
    assert isinstance(shown, dict)
    return {name: (item["status"]["connector"]["state"], item["info"]["config"]) for name, item in shown.items()}


plans = st.lists(
    st.builds(
        wanted,
        st.sampled_from(["us", "asia", "a b/c"]),
        st.sampled_from(list(STATES)),
        tasks_max=st.sampled_from(["1", "2"]),
    ),
    unique_by=lambda item: item.name,
)


@settings(max_examples=20)
@given(st.lists(plans, min_size=1, max_size=4))
def test_from_any_plan_to_any_other(turns: list[list[WantedConnector]]) -> None:
    with in_memory_api() as api:
        put: dict[str, str] = {}
        for plan in turns:
            done(api, plan, put)
            shown = there(api)
            assert {name: state for name, (state, _) in shown.items()} == {
                item.name: STATES[item.state] for item in plan
            }
            for item in plan:
                assert item.config.items() <= shown[item.name][1].items()
            assert done(api, plan, put) == 0, "what is there is not said again"


def test_a_secret_that_was_written_out_is_put_again_only_when_it_has_changed() -> None:
    first, second = (wanted("us", source_cluster_ssl_keystore_password=word) for word in ("hush", "hush2"))
    with in_memory_api() as api:
        put: dict[str, str] = {}
        done(api, [first], put)
        assert "hush" not in json.dumps(there(api))
        assert done(api, [first], put) == 0
        assert done(api, [second], put) == 1
        assert done(api, [second], put) == 0
        assert done(api, [second], {}) == 1, "an operator that was started again does not know what is hidden"


@pytest.mark.parametrize(("state", "moves"), [("running", []), ("paused", ["pause"]), ("stopped", ["stop"])])
def test_one_that_has_failed_is_moved_only_to_rest(state: str, moves: list[str]) -> None:
    plan = wanted("us", state)
    shown = {
        plan.name: {"info": {"config": dict(plan.config)}, "status": {"connector": {"state": "FAILED"}, "tasks": []}}
    }
    calls = list(changes([plan], shown, {}))
    assert [call.path.rpartition("/")[2] for call in calls] == moves
