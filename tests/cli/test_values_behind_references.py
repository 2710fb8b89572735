"""A value behind a reference shows in no message, whatever key of whatever format holds it."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.support.connectors import specs, worker_file
from tests.support.in_memory_api import in_memory_api
from tests.support.in_process import sparkmirror
from tests.support.operated import put, resource
from tests.support.rest_cases import connector

from sparkmirror.cli.log_lines import JsonLines, PlainLines, TextLines
from sparkmirror.config.declared_providers import declared_providers
from sparkmirror.config.duty_settings import DUTY_SETTINGS
from sparkmirror.config.entries import Entry
from sparkmirror.config.formats.strimzi_fields import FIELDS
from sparkmirror.config.metrics_settings import METRICS_SETTINGS
from sparkmirror.config.providers import resolve
from sparkmirror.config.settings import (
    ADMIN_SETTINGS,
    CLUSTERS_KEY,
    ENABLED,
    FETCH_SETTINGS,
    FLOW_SETTINGS,
    LOG_FORMAT,
    LOSS_SETTINGS,
    PRODUCE_SETTINGS,
    SASL_SETTINGS,
    SECURITY_PROTOCOL,
    SOURCE_SERVERS,
    SSL_SETTINGS,
    TARGET_SERVERS,
)
from sparkmirror.connect.flows import read_flows
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.veil import VEIL, Veil

MARKER = "Marker-7c1e.of_a.secret"
PROVIDERS = {
    "config.providers": "env,file",
    "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
    "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
}
ORDINARY = {
    "clusters": "us, eu",
    "us.bootstrap.servers": "127.0.0.1:9",
    "eu.bootstrap.servers": "127.0.0.1:10",
    "us->eu.enabled": "true",
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "PLAIN",
}
SETTINGS = (
    *(ENABLED, SOURCE_SERVERS, TARGET_SERVERS, SECURITY_PROTOCOL, LOG_FORMAT),
    *(*FLOW_SETTINGS, *DUTY_SETTINGS, *LOSS_SETTINGS, *FETCH_SETTINGS, *PRODUCE_SETTINGS),
    *(*SSL_SETTINGS, *SASL_SETTINGS, *ADMIN_SETTINGS, *METRICS_SETTINGS),
)
KEYS = sorted(
    {key for one in SETTINGS for key in one.place.keys(one.name, "us", "eu")} | {CLUSTERS_KEY, "spark.app.id"}
)
NAMES = sorted({f"{end}{one.name}" for one in SETTINGS for end in ("", "source.cluster.", "target.consumer.")})
WRAPS = st.sampled_from(
    ["{}", "[{}", "({},x", "{}:9092", "-{}", "x,{},{}", "us,{}", "{}->eu", "https://{}", "+{}", "{}.*"]
)


@pytest.fixture(scope="module", autouse=True)
def reference(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """References to the marker, to a list that holds it, and to a pattern with it."""
    file = tmp_path_factory.mktemp("secrets") / "s.properties"
    file.write_text(f"one={MARKER}\nlist=a1, {MARKER}, b2\npattern=[{MARKER}\nlong={MARKER * 9}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MARKED", MARKER)
        yield ["${env:MARKED}", *(f"${{file:{file}:{name}}}" for name in ("one", "list", "pattern", "long"))]


def clean(said: str) -> None:
    assert MARKER.lower() not in said.lower(), said
    assert MARKER[:12].lower() not in said.lower(), said


def lines(keys: dict[str, str]) -> str:
    return "".join(f"{key} = {value}\n" for key, value in keys.items())


def said_by_verbs(file: Path) -> str:
    """What `config`, `lint` and their JSON say of a file."""
    runs = [sparkmirror(verb, str(file), *more) for verb, more in (("config", ("-o", "json")), ("lint", ()))]
    return "".join(run.stdout + run.stderr for run in runs)


@settings(max_examples=60, deadline=None)
@given(keys=st.lists(st.sampled_from(KEYS), min_size=1, max_size=3), wrap=WRAPS, which=st.integers(0, 4))
@example(keys=["topics"], wrap="{}:9092", which=0)
def test_of_a_properties_file(
    reference: list[str], tmp_path_factory: pytest.TempPathFactory, keys: list[str], wrap: str, which: int
) -> None:
    file = tmp_path_factory.mktemp("file") / "mm2.properties"
    value = wrap.replace("{}", reference[which])
    file.write_text(lines(ORDINARY | PROVIDERS | dict.fromkeys(keys, value)), encoding="latin-1")
    clean(said_by_verbs(file))


@settings(max_examples=40, deadline=None)
@given(fields=st.lists(st.sampled_from([item.path for item in FIELDS]), min_size=1, max_size=2), wrap=WRAPS)
@example(fields=["mirrors[].topicsPattern"], wrap="{}:9092")
def test_of_a_resource(
    reference: list[str], tmp_path_factory: pytest.TempPathFactory, fields: list[str], wrap: str
) -> None:
    tree = resource()
    tree["spec"]["target"]["config"] = dict(PROVIDERS)
    for field in fields:
        put(tree["spec"], field, wrap.replace("{}", reference[0]))
    file = tmp_path_factory.mktemp("file") / "mirror.json"
    file.write_text(json.dumps(tree))
    clean(said_by_verbs(file))


@settings(max_examples=200, deadline=None)
@given(
    keys=st.lists(st.sampled_from([*NAMES, "source.cluster.alias", "target.cluster.alias"]), min_size=1, max_size=2),
    wrap=WRAPS,
    which=st.integers(0, 4),
)
def test_of_a_connector(reference: list[str], keys: list[str], wrap: str, which: int) -> None:
    """What REST answers when it is checked and put, and what its status would be."""
    config = connector("Source", "source:9092", "target:9092") | dict.fromkeys(
        keys, wrap.replace("{}", reference[which])
    )
    flows = read_flows(specs({"leak": config}), worker_file(PROVIDERS))
    clean(str([(part.failure, part.note) for part in flows.parts.values()]) + str(flows.config.warnings))


def test_of_the_rest_interface(reference: list[str]) -> None:
    declared = declared_providers([Entry(key=key, value=value, where="") for key, value in PROVIDERS.items()])
    with in_memory_api(lambda text: resolve(text, declared)) as api:
        for key in NAMES:
            for wrap in ("{}", "[{}", "x,{},{}"):
                value = wrap.replace("{}", reference[0])
                config = {**connector("Source", "source:9092", "target:9092"), "name": "leak", key: value}
                path = "/connector-plugins/MirrorSourceConnector/config/validate"
                clean(str(api.ask("PUT", path, config)))
                clean(str(api.ask("PUT", "/connectors/leak/config", config)))


def test_of_an_error_at_run_time_and_of_the_log(reference: list[str]) -> None:
    """A client's error names the broker that it could not reach."""
    VEIL.put("${env:BROKERS}", "secret-broker.example:9092, other-broker.example:9092")
    error = ClusterUnreachable("other-broker.example:9092 can't be reached")
    assert str(error) == "${env:BROKERS} can't be reached"
    try:
        raise OSError("no route to Secret-Broker.example:9092")
    except OSError as trouble:
        info = (OSError, trouble, trouble.__traceback__)
    for formatter in (TextLines(), JsonLines()):
        record = logging.LogRecord("sparkmirror", 30, "x.py", 1, "asked %s", ("other-broker.example:9092",), info)
        PlainLines().filter(record)
        line = formatter.format(record)
        assert "broker.example" not in line.lower(), line
        assert "${env:BROKERS}" in line


@given(
    st.dictionaries(st.from_regex(r"\$\{[a-z]{1,5}:[a-z]{1,5}\}", fullmatch=True), st.text(min_size=4), max_size=4),
    st.lists(st.text(max_size=5), min_size=5, max_size=5),
)
def test_a_veil_hides_each_value(values: dict[str, str], between: list[str]) -> None:
    veil = Veil()
    for reference, value in values.items():
        veil.put(reference, value)
    text = "".join(part + value for part, value in zip(between, values.values(), strict=False))
    shown = veil.over(text)
    for value in values.values():
        hidden = value.strip()
        if len(hidden) >= 4 and not hidden.startswith("${") and hidden.lower() not in ("true", "false"):
            assert not any(
                hidden in piece for piece in shown.replace("}", "${").split("${") if "${" + piece + "}" not in values
            )


def test_of_a_connectors_pattern_or_class(reference: list[str]) -> None:
    for key, wrap in (
        ("topics", "[{}"),
        ("topics.exclude", "({}"),
        ("config.properties.exclude", "[{}"),
        ("replication.policy.class", "module.{}:Class"),
        ("source.cluster.bootstrap.servers", "{}"),
        ("source.cluster.alias", "{}"),
        ("target.cluster.alias", "{}"),
    ):
        config = connector("Source", "source:9092", "target:9092") | {key: wrap.replace("{}", reference[0])}
        parts = read_flows(specs({"leak": config}), worker_file(PROVIDERS)).parts
        clean(parts["leak"].failure)
        assert reference[0] in parts["leak"].failure or "its value from the config provider" in parts["leak"].failure
