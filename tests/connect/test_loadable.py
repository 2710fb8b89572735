"""Over HTTP nothing is loaded that the worker's own file doesn't list."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.connect.serving import worker_config, worker_settings
from tests.support.connectors import worker_file
from tests.support.in_memory_api import in_memory_api
from tests.support.rest_cases import connector

from sparkmirror.connect.connector_model import ConnectorSpec, TargetState
from sparkmirror.connect.flows import Flows, read_flows
from sparkmirror.connect.loadable import CLASSES_KEY, Loadable
from sparkmirror.connect.server_paths import without_paths
from sparkmirror.errors import ConfigError

PLUGIN = "/connector-plugins/MirrorSourceConnector/config/validate"
Write = Callable[[str], str]

MODULE = """
from sparkmirror.policy import DefaultReplicationPolicy

class Upper(DefaultReplicationPolicy):
    pass

class Broken(DefaultReplicationPolicy):
    def configure(self, settings):
        open("/srv/secrets/list.txt")
"""

LOADED = [
    "replication.policy.class",
    "topic.filter.class",
    "group.filter.class",
    "config.property.filter.class",
    "forwarding.admin.class",
    "key.converter.class",
    "source.cluster.sasl.login.callback.handler.class",
    "target.cluster.sasl.client.callback.handler.class",
    "consumer.interceptor.classes",
    "metric.reporters",
]


def source(**more: str) -> dict[str, str]:
    ends = connector("Source", "127.0.0.1:1", "127.0.0.1:2")
    converter = "org.apache.kafka.connect.converters.ByteArrayConverter"
    return {**ends, "key.converter": converter, "value.converter": converter, **more}


def flows_of(config: dict[str, str], **worker: str) -> Flows:
    specs = {"shop": ConnectorSpec(name="shop", config=config, target_state=TargetState.STARTED)}
    return read_flows(specs, worker_file({key.replace("_", "."): value for key, value in worker.items()}))


@pytest.mark.parametrize("key", LOADED)
def test_a_class_that_is_not_listed_is_refused_and_never_imported(write: Write, key: str) -> None:
    named = f"{write(MODULE)}:Upper"
    module = named.partition(":")[0]
    config = source(**{key: named})
    with in_memory_api() as api:
        for method, path, body in (
            ("PUT", "/connectors/shop/config", config),
            ("POST", "/connectors", {"name": "shop", "config": config}),
        ):
            status, said = api.ask(method, path, body)
            assert status == 400
            assert f"Invalid value {named} for configuration {key}: a Python class is loaded only if" in str(said)
            assert CLASSES_KEY in str(said)
        status, checked = api.ask("PUT", PLUGIN, {**config, "name": "shop"})
        assert status == 200
        assert isinstance(checked, dict)
        (wrong,) = [one["value"] for one in checked["configs"] if one["value"]["errors"]]
        assert (wrong["name"], checked["error_count"]) == (key, 1)
        assert api.ask("PUT", "/connectors/shop/config", source())[0] == 201
        assert api.ask("PATCH", "/connectors/shop/config", {key: named})[0] == 400
    # What stands in the topic already, from an earlier release or a real worker.
    failure = flows_of(config).parts["shop"].failure
    assert f"{key}: {named}: a Python class is loaded only if the worker's file lists it in {CLASSES_KEY}" in failure
    assert module not in sys.modules


def test_pythons_own_modules_are_not_imported_either() -> None:
    """Importing `this` prints; others open browsers, or ports."""
    sys.modules.pop("this", None)
    with in_memory_api() as api:
        assert api.ask("PUT", "/connectors/shop/config", source(**{"replication.policy.class": "this:Zen"}))[0] == 400
    assert "this" not in sys.modules


def test_a_class_that_is_listed_is_loaded(write: Write, tmp_path: Path) -> None:
    named = f"{write(MODULE)}:Upper"
    config = source(**{"replication.policy.class": named})
    listed = {"sparkmirror_classes": f"other:Policy, {named}"}
    loadable = worker_config(tmp_path, worker_settings("kafka:9092", "group", 8083, **listed)).loadable
    assert loadable.classes == {"other:Policy", named}
    with in_memory_api(loadable=loadable) as api:
        assert api.ask("PUT", "/connectors/shop/config", config)[0] == 201
    flows = flows_of(config, **listed)
    assert not flows.parts["shop"].failure
    assert CLASSES_KEY not in str(flows.config.warnings)
    assert [flow.replication_policy_class for flow in flows.config.flows] == [named]


def test_what_a_reference_stands_for_must_be_listed_too(tmp_path: Path) -> None:
    (tmp_path / "classes").write_text("policy=this:Zen\n")
    providers = {"config_providers": "file", "config_providers_file_class": "FileConfigProvider"}
    reference = f"${{file:{tmp_path}/classes:policy}}"
    config = source(**{"replication.policy.class": reference})
    file = worker_config(tmp_path, worker_settings("kafka:9092", "group", 8083, **providers))
    sys.modules.pop("this", None)
    with in_memory_api(file.resolve, loadable=file.loadable) as api:
        status, said = api.ask("PUT", "/connectors/shop/config", config)
        assert status == 400
        assert f"Invalid value {reference} for configuration replication.policy.class: a Python class" in str(said)
        assert "Zen" not in str(said)
    assert CLASSES_KEY in flows_of(config, **providers).parts["shop"].failure
    assert "this" not in sys.modules


def test_a_connector_declares_no_config_providers() -> None:
    """Else whoever may put a connector reads the server's files with it, and has them sent where he likes."""
    own = {
        "config.providers": "mine",
        "config.providers.mine.class": "FileConfigProvider",
        "source.cluster.sasl.jaas.config": "${mine:/etc/passwd:root}",
    }
    with in_memory_api() as api:
        status, said = api.ask("PUT", "/connectors/shop/config", source(**own))
        assert status == 400
        assert "config providers are those of the worker's own file only: declare it there" in str(said)
    assert "config.providers: mine: config providers" in flows_of(source(**own)).parts["shop"].failure
    declared = {"config_providers": "mine, env", "config_providers_mine_class": "FileConfigProvider"}
    declared["config_providers_env_class"] = "EnvVarConfigProvider"
    same = {key: value for key, value in own.items() if key.startswith("config.")}
    flows = flows_of(source(**same), **declared)
    assert not flows.parts["shop"].failure, "it says what the file says"
    other = {**same, "config.providers.mine.class": "EnvVarConfigProvider"}
    assert "config.providers.mine.class" in flows_of(source(**other), **declared).parts["shop"].failure


@pytest.mark.parametrize("wrong", ["com.example.Policy", "this", "this:", ":Zen", "this:Zen:More", "a b:C"])
def test_only_classes_can_be_listed(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(ConfigError, match="it must be a Python class: module:Class") as caught:
        worker_config(tmp_path, worker_settings("kafka:9092", "group", 8083, sparkmirror_classes=wrong))
    assert caught.value.key == CLASSES_KEY


def test_a_listed_class_that_can_not_be_built_tells_no_path(write: Write) -> None:
    module = write(MODULE)
    for name in ("Broken", "Missing"):
        named = f"{module}:{name}"
        failure = (
            flows_of(source(**{"replication.policy.class": named}), sparkmirror_classes=named).parts["shop"].failure
        )
        assert named.partition(":")[0] in failure
        shown = without_paths(failure, [named])
        assert "/" not in shown, shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/usr/lib/python3.11/this.py has no class Zen", "this.py has no class Zen"),
        (
            "there is no module x in /opt/mirror/classes or on PYTHONPATH",
            "there is no module x in classes or on PYTHONPATH",
        ),
        ("No such file: '/srv/a b/secret.txt'", "No such file: 'a b/secret.txt'"),
        ("(/etc/kafka/w.properties:3) is wrong", "(w.properties:3) is wrong"),
        ("https://host:8083/connectors/a/status", "https://host:8083/connectors/a/status"),
        ("keystore /etc/tls/mine.p12 is not there", "keystore /etc/tls/mine.p12 is not there"),
        ("and/or 1/2/3 a/b", "and/or 1/2/3 a/b"),
        ("/tmp", "/tmp"),
    ],
)
def test_paths_of_the_server_are_not_shown(text: str, shown: str) -> None:
    assert without_paths(text, ["x", "/etc/tls/mine.p12"]) == shown


def test_nothing_is_allowed_where_nothing_is_said() -> None:
    assert Loadable().refusal("replication.policy.class", "a:B")
    assert not Loadable().refusal(
        "replication.policy.class", "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
    )
    assert not Loadable().refusal("topics", "a:B")
