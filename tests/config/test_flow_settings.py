"""Settings of a flow as they are published, and how those of two files differ."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.config import FlowConfig
from sparkmirror.config.flow_settings import ALWAYS, differences, flow_settings
from sparkmirror.config.formats import model_of, read

BASE = {
    "clusters": "A, B",
    "A.bootstrap.servers": "a:9092",
    "B.bootstrap.servers": "b:9092",
    "A->B.enabled": "true",
    "topics": "orders",
}


def flow_of(tmp_path: Path, **settings: str) -> FlowConfig:
    file = tmp_path / "mm2.properties"
    lines = BASE | {key.replace("__", "->").replace("_", "."): value for key, value in settings.items()}
    file.write_text("".join(f"{key} = {value}\n" for key, value in lines.items()))
    model, _ = model_of(read([str(file)]))
    (flow,) = model.flows
    return flow


def test_equal_files_do_not_differ(tmp_path: Path) -> None:
    assert differences(flow_of(tmp_path), flow_settings(flow_of(tmp_path))) == ()
    assert flow_settings(flow_of(tmp_path)).keys() >= ALWAYS


@pytest.mark.parametrize(
    ("settings", "difference"),
    [
        ({"topics": "bills, rents"}, "topics: `orders` there, `bills, rents` here"),
        ({"topics_exclude": "x.*"}, "topics.exclude: "),
        ({"groups": "g"}, "groups: `.*` there, `g` here"),
        (
            {"replication_policy_class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"},
            "replication.policy.class: ",
        ),
        ({"tasks_max": "7"}, "tasks.max: `1` there, `7` here"),
        ({"sync_group_offsets_enabled": "true"}, "sync.group.offsets.enabled: `false` there, `true` here"),
        ({"A_consumer_isolation_level": "read_committed"}, "isolation.level: "),
        ({"sparkmirror_on_expired": "halt"}, "sparkmirror.on.expired: "),
        ({"offset_storage_replication_factor": "1"}, "offset.storage.replication.factor: "),
    ],
)
def test_each_kind_of_setting_that_differs_is_named_with_both_values(
    tmp_path: Path, settings: dict[str, str], difference: str
) -> None:
    here, there = flow_of(tmp_path, **settings), flow_of(tmp_path)
    (told,) = differences(here, flow_settings(there))
    assert told.startswith(difference)
    (reverse,) = differences(there, flow_settings(here))
    assert reverse.split(": ")[0] == told.split(": ")[0]


def test_what_belongs_to_a_host_may_differ(tmp_path: Path) -> None:
    """Racks are the hosts' own, and clusters are compared by their ids."""
    here = flow_of(tmp_path, client_rack="z1", client_id="me", A_bootstrap_servers="other:9092")
    assert differences(here, flow_settings(flow_of(tmp_path, client_rack="z2"))) == ()


def test_a_release_that_told_less_is_not_compared(tmp_path: Path) -> None:
    assert differences(flow_of(tmp_path), {"isolation.level": "read_committed"}) == ()


def test_a_value_from_a_provider_is_a_reference(tmp_path: Path) -> None:
    (tmp_path / "secret.properties").write_text("pattern=hidden-topic\n")
    providers = {
        "config_providers": "file",
        "config_providers_file_class": "org.apache.kafka.common.config.provider.FileConfigProvider",
    }
    flow = flow_of(tmp_path, **providers, topics=f"${{file:{tmp_path / 'secret.properties'}:pattern}}")
    assert "hidden-topic" not in str(flow_settings(flow))
