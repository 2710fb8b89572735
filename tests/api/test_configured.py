"""A configuration from a file, from a mapping and from keywords: equal, and mistakes in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sparkmirror.api.configured import Route, chosen, configured, only
from sparkmirror.errors import ConfigError

PROPERTIES: dict[str, object] = {
    "clusters": ["A", "B"],
    "A.bootstrap.servers": "a:9092",
    "B.bootstrap.servers": "b:9092",
    "A->B.enabled": True,
    "A->B.topics": ["orders.*", "stock"],
    "tasks.max": 3,
}


def test_a_file_and_its_keys_as_a_mapping_are_the_same(tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(
        "clusters = A, B\nA.bootstrap.servers = a:9092\nB.bootstrap.servers = b:9092\nA->B.enabled = true\n"
        "A->B.topics = orders.*, stock\ntasks.max = 3\n"
    )
    assert configured(file, Route(), {}).flows == configured(PROPERTIES, Route(), {}).flows


def test_properties_replace_keys_of_a_file() -> None:
    (flow,) = configured(PROPERTIES, Route(), {"tasks.max": 7, "sync.group.offsets.enabled": True}).flows
    assert (flow.tasks_max, flow.group.sync_group_offsets_enabled) == (7, True)


def test_a_route_needs_no_file() -> None:
    (flow,) = configured(None, Route("a:9092,a2:9092", "b:9092", "orders.*", ("billing", "stock.*")), {}).flows
    assert (flow.name, flow.source.bootstrap_servers, flow.target.bootstrap_servers) == (
        "source->target",
        ("a:9092", "a2:9092"),
        ("b:9092",),
    )
    assert (flow.topics, flow.group.groups) == (("orders.*",), ("billing", "stock.*"))


@pytest.mark.parametrize(
    ("file", "route", "told"),
    [
        (None, Route(), "sm.Mirror(source=…, target=…): both source and target are needed: HOST:PORT,… of each"),
        (None, Route(source="a:9092"), "both source and target are needed"),
        (PROPERTIES, Route(topics="orders"), "give a file or properties, or source and target, not both"),
        ({**PROPERTIES, "tasks.max": "many"}, Route(), "properties: tasks.max: "),
        ("nowhere.properties", Route(), "nowhere.properties"),
    ],
)
def test_a_mistake_is_told_in_a_line(file: Any, route: Route, told: str) -> None:
    with pytest.raises(ConfigError) as error:
        configured(file, route, {})
    assert told in str(error.value)
    assert "\n" not in str(error.value)


def test_a_flow_is_chosen_by_name() -> None:
    config = configured({**PROPERTIES, "B->A.enabled": "true"}, Route(), {})
    assert [flow.name for flow in chosen(config, None)] == ["A->B", "B->A"]
    assert only(config, "B->A").name == "B->A"
    with pytest.raises(ConfigError, match="there are several flows: A->B, B->A; choose one"):
        only(config, None)
    with pytest.raises(ConfigError, match="there is no such flow; there are A->B, B->A"):
        chosen(config, "A->C")


def test_a_key_without_effect_is_named(caplog: pytest.LogCaptureFixture) -> None:
    configured(PROPERTIES, Route(), {"tasks.mx": 3})
    assert "tasks.mx" in caplog.text
