"""What a resource comes to: a worker's file that `serve` reads, connectors that its REST interface takes."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.support.in_memory_api import in_memory_api
from tests.support.operated import CHECKPOINT, KEY, SOURCE, resource

from sparkmirror.config.named_places import URLS_KEY
from sparkmirror.connect.worker_properties import read_worker_properties
from sparkmirror.errors import ConfigError
from sparkmirror.operator import plan as plans
from sparkmirror.operator.names import Key
from sparkmirror.operator.plan import SECRETS, make_plan, worker_arguments
from sparkmirror.operator.references import Contents, ObjectReference, digest, mounted_references, pod_references

EXAMPLES = Path(__file__).parents[2] / "examples" / "strimzi"
FIELDS = ("target", "mirrors", "clusters", "source", "sourceConnector", "state", "config", "alias", "tls", "secretName")
CONTENTS: Contents = {ObjectReference("Secret", "mirror-user"): {"password": b"hush"}}


def test_secrets_are_named_and_not_held() -> None:
    plan = make_plan(resource(), KEY, CONTENTS)
    text = plan.worker_file + str(plan.connectors)
    assert "hush" not in text
    assert f"{SECRETS}/mirror-user:password" in plan.worker["sasl.jaas.config"]
    assert [(item.name, item.state) for item in plan.connectors] == [(SOURCE, "running"), (CHECKPOINT, "running")]
    assert plan.connectors[0].config["tasks.max"] == "2"
    assert plan.replicas == 2
    assert not plan.warnings


def test_pods_read_the_workers_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = tmp_path / "secrets"
    (secrets / "mirror-user").mkdir(parents=True)
    (secrets / "mirror-user" / "password").write_text("hush")
    monkeypatch.setattr(plans, "SECRETS", str(secrets))
    monkeypatch.setenv("SPARKMIRROR_POD_IP", "10.1.2.3")
    file = tmp_path / "connect-distributed.properties"
    file.write_text(make_plan(resource(), KEY, CONTENTS).worker_file)
    config = read_worker_properties(str(file))
    assert config.url == "http://10.1.2.3:8083"
    assert config.group_id == "ours-groupId"
    assert config.cluster.bootstrap_servers == ("eu:9092",)
    assert config.resolve(f"${{strimzidir:{secrets}/mirror-user:password}}") == "hush"


def test_connectors_may_name_the_resources_token_servers_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mirror-user").mkdir()
    (tmp_path / "mirror-user" / "password").write_text("hush")
    monkeypatch.setattr(plans, "SECRETS", str(tmp_path))
    monkeypatch.setenv("SPARKMIRROR_POD_IP", "10.1.2.3")
    server = "https://login.example.com/token"
    login = {
        "type": "oauth",
        "tokenEndpointUri": server,
        "clientId": "a",
        "clientSecret": {"secretName": "mirror-user", "key": "password"},
    }
    plan = make_plan(resource(lambda spec: spec["mirrors"][0]["source"].update(authentication=login)), KEY, CONTENTS)
    assert plan.worker[URLS_KEY] == server
    file = tmp_path / "connect-distributed.properties"
    file.write_text(plan.worker_file)
    with in_memory_api(loadable=read_worker_properties(str(file)).loadable) as api:
        for item in plan.connectors:
            assert any(server in value for value in item.config.values())
            assert api.ask("PUT", f"/connectors/{quote(item.name)}/config", dict(item.config))[0] == 201
            other = {key: value.replace("login.", "other.") for key, value in item.config.items()}
            assert api.ask("PUT", f"/connectors/{quote(item.name)}/config", other)[0] == 400


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_examples(example: Path) -> None:
    tree = next(item for item in yaml.safe_load_all(example.read_text()) if item["kind"] == "KafkaMirrorMaker2")
    values = {"ca.crt": b"x", "user.crt": b"x", "user.key": b"x", "password": b"hush"}
    references = mounted_references(tree["spec"], "kafka")
    plan = make_plan(tree, Key("kafka", tree["metadata"]["name"]), dict.fromkeys(references, values))
    assert plan.connectors
    assert plan.worker["bootstrap.servers"]
    assert not re.search(r"hush|/tmp/", plan.worker_file + str(plan.connectors))
    assert not plan.warnings, "all that the examples say means something here"


def test_a_missing_secret_is_one_line_without_a_path() -> None:
    with pytest.raises(ConfigError) as error:
        make_plan(resource(), KEY, {})
    assert error.value.reason == ("spec.target.authentication.passwordSecret: Secret mirror-user is not there")


def test_what_has_no_effect_is_told_and_what_the_operator_makes_of_it_is_not() -> None:
    def more(spec: dict[str, Any]) -> None:
        spec["resources"] = {"limits": {"memory": "1Gi"}}
        spec["jvmOptions"] = {"-Xmx": "600m"}
        spec["logging"] = {"type": "inline", "loggers": {"rootLogger.level": "DEBUG"}}
        spec["tracing"] = {"type": "opentelemetry"}
        spec["mirrors"][0]["sourceConnector"]["autoRestart"] = {"enabled": True}
        spec["mirrors"][0]["sourceConnector"]["listOffsets"] = {"toConfigMap": {"name": "offsets"}}

    plan = make_plan(resource(more), KEY, CONTENTS)
    assert {line.partition(":")[0] for line in plan.warnings} == {"spec.tracing"}
    assert plan.worker["spark.driver.memory"] == "600m"


def test_states_and_no_replicas() -> None:
    def rest(spec: dict[str, Any]) -> None:
        spec["mirrors"][0]["sourceConnector"]["state"] = "stopped"
        spec["mirrors"][0]["checkpointConnector"]["state"] = "paused"

    plan = make_plan(resource(rest), KEY, CONTENTS)
    assert [item.state for item in plan.connectors] == ["stopped", "paused"]
    assert not any("enabled" in item.config for item in plan.connectors), "the state says it"
    assert make_plan(resource(lambda spec: spec.update(replicas=0)), KEY, CONTENTS).replicas == 0


@pytest.mark.parametrize(
    ("role", "states"), [("source", ["stopped", "running"]), ("checkpoint", ["running", "stopped"])]
)
def test_each_connector_is_stopped_alone(role: str, states: list[str]) -> None:
    """The cut-over step: the source connector is stopped, and the checkpoint connector continues."""

    def rest(spec: dict[str, Any]) -> None:
        spec["mirrors"][0][f"{role}Connector"]["state"] = "stopped"

    plan = make_plan(resource(rest), KEY, CONTENTS)
    assert [item.state for item in plan.connectors] == states
    assert not plan.warnings


def test_a_resource_that_is_wrong_names_all_that_is() -> None:
    def break_it(spec: dict[str, Any]) -> None:
        spec["mirrors"][0]["sourceConnector"] = {"state": "asleep"}
        del spec["mirrors"][0]["source"]["bootstrapServers"]

    with pytest.raises(ConfigError, match=r"bootstrapServers.*; .*state: must be paused") as error:
        make_plan(resource(break_it), KEY, CONTENTS)
    assert "mirror.json" not in str(error.value)


values = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 9) | st.sampled_from(["eu", "us", "x", "${strimzisecrets:a/b:c}"]),
    lambda below: st.lists(below, max_size=2) | st.dictionaries(st.sampled_from(FIELDS), below, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(FIELDS), values) | values)
def test_whatever_a_spec_is_it_is_read_or_refused(spec: Any) -> None:
    """Where the API's own definition lets it through."""
    tree = resource()
    if isinstance(spec, dict):
        tree["spec"] |= spec
    else:
        tree["spec"] = spec
    with suppress(ConfigError):
        if isinstance(tree["spec"], dict):
            mounted_references(tree["spec"], KEY.namespace)
        make_plan(tree, KEY, CONTENTS)


def test_references() -> None:
    def refer(spec: dict[str, Any]) -> None:
        spec["target"]["config"] = {"producer.x": "${strimziconfigmaps:kafka/settings:x}"}
        spec["mirrors"][0]["source"]["tls"] = {"trustedCertificates": [{"secretName": "ca", "pattern": "*.crt"}]}
        spec["externalConfiguration"] = {
            "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "env", "key": "a"}}}]
        }
        spec["template"] = {"pod": {"volumes": [{"name": "v", "configMap": {"name": "volume"}}]}}

    spec = resource(refer)["spec"]
    assert set(mounted_references(spec, "kafka")) == {
        ("Secret", "mirror-user"),
        ("Secret", "ca"),
        ("ConfigMap", "settings"),
    }
    assert set(pod_references(spec, KEY.namespace)) == {("Secret", "env"), ("ConfigMap", "volume")}


def test_another_namespaces_secret_cannot_be_mounted() -> None:
    def refer(spec: dict[str, Any]) -> None:
        spec["target"]["config"] = {"producer.x": "${strimzisecrets:other/secret:x}"}

    with pytest.raises(ConfigError, match="Secret secret is in namespace other"):
        mounted_references(resource(refer)["spec"], "kafka")


def test_the_digest_changes_with_any_value() -> None:
    reference = ObjectReference("Secret", "a")
    values = [{reference: {"k": b"1"}}, {reference: {"k": b"2"}}, {reference: {"k1": b""}}, {}]
    assert len({digest(value) for value in values}) == 4
    assert digest({reference: {"k": b"1", "l": b"2"}}) == digest({reference: {"l": b"2", "k": b"1"}})


def test_the_exporters_names_are_asked_for() -> None:
    asked = worker_arguments({"metricsConfig": {"type": "jmxPrometheusExporter"}}, "file")
    assert asked == ["serve", "file", "--metrics-port", "9404", "--metrics-profile", "strimzi"]
