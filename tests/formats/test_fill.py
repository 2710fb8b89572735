"""`sparkmirror convert --fill`: from the environment into the file, and nowhere else."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.support.in_process import own_log, sparkmirror
from typer.testing import CliRunner, Result

from sparkmirror.cli.app import app
from sparkmirror.config.formats import model_of, read
from sparkmirror.config.formats.fill import Filling
from sparkmirror.errors import ConfigError

TEMPLATE = """\
clusters = ${SRC}, ${DST}
${SRC}.bootstrap.servers = ${SRC_BROKERS}
${DST}.bootstrap.servers = t:9092
${SRC}->${DST}.enabled = true
${SRC}.security.protocol = SASL_SSL
${SRC}.sasl.mechanism = PLAIN
${SRC}.sasl.jaas.config = org.apache.kafka.common.security.plain.PlainLoginModule required \\
    username="u" password="${PW}";
${DST}.security.protocol = SSL
config.providers = file
config.providers.file.class = org.apache.kafka.common.config.provider.FileConfigProvider
tasks.max = ${TASKS}
"""
SECRET = 'hu"sh\\word: #1'
ENVIRONMENT = {"SRC": "us", "DST": "eu", "SRC_BROKERS": "s:9092", "PW": SECRET, "TASKS": "7"}


def convert(path: Path, to: str, *more: str, **environment: str | None) -> Result:
    words = ["convert", str(path), "--to", to, "--fill", *more]
    return CliRunner().invoke(app, words, env={**ENVIRONMENT, **environment})


def template(directory: Path, text: str = TEMPLATE, name: str = "template.properties") -> Path:
    path = directory / name
    path.write_text(text)
    return path


def password(path: Path) -> str:
    (flow,) = model_of(read([str(path)]))[0].flows
    assert (flow.name, flow.tasks_max, flow.source.bootstrap_servers) == ("us->eu", 7, ("s:9092",))
    found = re.search(r'password="((?:[^"\\]|\\.)*)"', flow.source.sasl.jaas_config.get_secret_value())
    assert found
    return re.sub(r"\\(.)", r"\1", found[1])


@pytest.mark.parametrize("to", ["properties", "connectors", "strimzi"])
def test_it_is_filled_in_every_format(tmp_path: Path, to: str) -> None:
    out = tmp_path / ("out" if to == "connectors" else f"out.{'yaml' if to == 'strimzi' else 'properties'}")
    result = convert(template(tmp_path), to, "--write", str(out))
    assert result.exit_code == 0, result.output
    assert password(out) == SECRET
    assert "hu" not in result.output


def test_references_to_providers_stay(tmp_path: Path) -> None:
    (tmp_path / "s.properties").write_text("pw = x\n")
    reference = f"${{file:{tmp_path}/s.properties:pw}}"
    text = TEMPLATE.replace("${PW}", reference)
    result = convert(template(tmp_path, text), "properties", "--write", str(tmp_path / "out.properties"))
    assert result.exit_code == 0
    assert (
        reference.replace(":", "\\:") in (tmp_path / "out.properties").read_text()
        or reference in (tmp_path / "out.properties").read_text()
    )


def test_all_that_is_not_set_is_named_and_nothing_written(tmp_path: Path) -> None:
    path, out = template(tmp_path), tmp_path / "out.properties"
    result = convert(path, "properties", "--write", str(out), PW=None, TASKS=None)
    assert isinstance(result.exception, ConfigError)
    assert str(result.exception).splitlines() == [
        f"{path}: ${{PW}}: is not set in the environment",
        f"{path}: ${{TASKS}}: is not set in the environment",
    ]
    assert result.exception.exit_code == 2
    assert not out.exists()
    assert result.output == ""


@pytest.mark.parametrize(("key", "secret"), [("tasks.max", "hush4711("), ("us->eu.client.id", 'hush"4\\711')])
def test_no_message_has_what_was_filled_in(
    tmp_path: Path, key: str, secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A secret where none belongs: errors, warnings and notes name the variable."""
    text = "".join(line for line in TEMPLATE.splitlines(True) if not line.startswith("tasks.max"))
    path = template(tmp_path, f"{text}{key} = ${{TASKS}}\n")
    for name, value in {**ENVIRONMENT, "TASKS": secret}.items():
        monkeypatch.setenv(name, value)
    with own_log():
        said = sparkmirror("convert", str(path), "--to", "connectors", "--fill", "-w", str(tmp_path / "o"))
    assert said.returncode in (0, 2)
    assert "hush" not in said.stdout + said.stderr
    assert key.rpartition(".")[2] in said.stderr


def test_without_it_nothing_is_filled(tmp_path: Path) -> None:
    text = "clusters=a,b\na.bootstrap.servers=a:1\nb.bootstrap.servers=b:1\na->b.enabled=true\ntopics=${T}\n"
    path = template(tmp_path, text)
    result = CliRunner().invoke(app, ["convert", str(path), "--to", "properties"], env={"T": "filled"})
    assert "filled" not in result.output + str(result.exception)


CONNECTOR = {
    "connector.class": "MirrorSource",
    "source.cluster.alias": "us",
    "target.cluster.alias": "eu",
    "source.cluster.bootstrap.servers": "${SRC_BROKERS}",
    "target.cluster.bootstrap.servers": "t:9092",
    "tasks.max": "${TASKS}",
}
EU = {"alias": "eu", "bootstrapServers": "t:9092"}
RESOURCE: dict[str, Any] = {
    "apiVersion": "kafka.strimzi.io/v1beta2",
    "kind": "KafkaMirrorMaker2",
    "metadata": {"name": "m"},
    "spec": {
        "connectCluster": "eu",
        "clusters": [{"alias": "us", "bootstrapServers": "${SRC_BROKERS}"}, EU],
        "mirrors": [{"sourceCluster": "us", "sourceConnector": {"tasksMax": "TASKS_HERE"}}],
    },
}


def test_connectors_and_resources_are_filled_too(tmp_path: Path) -> None:
    """A number that stands without quotes in YAML is one when it is filled in."""
    text = yaml.safe_dump(RESOURCE).replace("TASKS_HERE", "${TASKS}")
    for path, to in (
        (template(tmp_path, json.dumps(CONNECTOR), "c.json"), "properties"),
        (template(tmp_path, "".join(f"{k}={v}\n" for k, v in CONNECTOR.items()), "c.properties"), "properties"),
        (template(tmp_path, text, "m.yaml"), "strimzi"),
    ):
        out = tmp_path / f"out.{'yaml' if to == 'strimzi' else 'properties'}"
        assert convert(path, to, "-w", str(out)).exit_code == 0
        (flow,) = model_of(read([str(out)]))[0].flows
        assert (flow.tasks_max, flow.source.bootstrap_servers) == (7, ("s:9092",))


@given(
    st.dictionaries(st.from_regex(r"[A-Z_][A-Z0-9_]{0,5}", fullmatch=True), st.text(max_size=9)), st.text(max_size=30)
)
def test_only_variables_change(environment: dict[str, str], text: str) -> None:
    fill = Filling(environment).of("x")
    plain = text.replace("$", "").replace('"', "")
    assert fill(plain) == plain
    for name, value in environment.items():
        assert fill(f"{plain}${{{name}}}{plain}") == plain + value + plain
        assert fill(f"${{{name}:{name}}}") == f"${{{name}:{name}}}"
