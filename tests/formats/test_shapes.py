"""A file of a wrong shape is one line with its place, or is taken; it never is a traceback."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from resources import change, read_resource, shape_at
from typer.testing import CliRunner

from sparkmirror.cli.app import app
from sparkmirror.config.formats import model_of, read
from sparkmirror.config.formats.strimzi_fields import FIELDS, HONOURED
from sparkmirror.errors import ConfigError

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "strimzi").glob("*.yaml"))
MOUNTED = ("east-cluster-ca-cert", "west-cluster-ca-cert", "mirror-user", "east-mirror-user")
WRONG: tuple[Any, ...] = (
    None,
    "x",
    "",
    7,
    0,
    -1,
    True,
    "9" * 5000,
    [],
    ["x"],
    [None],
    [[1]],
    {},
    {"x": 1},
    {"x": {"y": []}},
    [{}],
)


def assert_one_line(error: ConfigError) -> None:
    assert error.exit_code == 2
    assert "\n" not in str(error)
    assert ", line " in str(error)


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("replicas", "two", "spec.replicas: must be a whole number, and is text"),
        ("replicas", True, "spec.replicas: must be a whole number, and is true or false"),
        ("mirrors", ["x"], "spec.mirrors[0]: must be a map of fields, and is text"),
        ("mirrors", {"source": {}}, "spec.mirrors: must be a list, and is a map"),
        ("target", "hello", "spec.target: must be a map of fields, and is text"),
        ("target.alias", 10, "spec.target.alias: must be text, and is a number: put it in quotes"),
        ("target.config", ["x"], "spec.target.config: must be a map of keys and values, and is a list"),
        ("rack", "abc", "spec.rack: must be a map of fields"),
        ("mirrors.0.source.authentication", "plain", "authentication: must be a map of fields, and is text"),
        ("mirrors.0.source.tls", True, "source.tls: must be a map of fields, and is true or false"),
        ("mirrors.0.source.tls", {"trustedCertificates": ["foo"]}, "trustedCertificates[0]: must be a map of fields"),
        ("mirrors.0.sourceConnector", [1], "sourceConnector: must be a map of fields, and is a list"),
        ("mirrors.0.sourceConnector.config", [{"a": 3}], "sourceConnector.config: must be a map of keys and values"),
        ("mirrors.0.sourceConnector.config", {"a": {"b": "c"}}, "sourceConnector.config.a: must be text, a number or"),
        ("mirrors.0.sourceConnector.tasksMax", "x", "sourceConnector.tasksMax: must be a whole number, and is text"),
        ("mirrors.0.sourceConnector.pause", "yes", "sourceConnector.pause: must be true or false, and is text"),
        (
            "target.authentication",
            {"type": "oauth", "accessTokenLocation": "/t", "connectTimeoutSeconds": "abc"},
            "target.authentication.connectTimeoutSeconds: must be a whole number, and is text",
        ),
    ],
)
def test_a_field_of_a_wrong_shape(tmp_path: Path, path: str, value: Any, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_resource(tmp_path, change(path, value))
    assert says in str(caught.value)
    assert_one_line(caught.value)


@pytest.mark.parametrize(
    ("manifest", "says"),
    [
        ({"metadata": "foo"}, "metadata: must be a map of fields, and is text"),
        ({"metadata": {"name": "x"}, "data": "y"}, "data: must be a map of keys and text, and is text"),
        ({"metadata": {"name": "x"}, "stringData": {"y": 12}}, "stringData.y: must be text, and is a number: put"),
    ],
)
def test_a_manifest_of_a_wrong_shape(tmp_path: Path, manifest: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_resource(tmp_path, lambda spec: None, {"kind": "Secret", **manifest})
    assert says in str(caught.value)
    assert_one_line(caught.value)


@pytest.mark.parametrize("name", ["9" * 5000, "a\0b", "../elsewhere", "..", ""])
def test_a_secret_that_can_not_be_one(tmp_path: Path, name: str) -> None:
    certificates = [{"secretName": name, "certificate": "ca.crt"}]
    with pytest.raises(ConfigError, match="is not there: neither"):
        read_resource(tmp_path, change("target.tls", {"trustedCertificates": certificates}))


ENDLESS = "a: &a\n  b: *a\n"


@pytest.mark.parametrize("text", [ENDLESS, "a: &a [*a, *a]\n", "a: " + "[" * 5000, "? " + "[" * 300 + "]" * 300])
def test_what_has_no_end(tmp_path: Path, text: str) -> None:
    """An alias within what its anchor names, or nesting that nobody wrote by hand."""
    path = tmp_path / "mirror.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"nested|no YAML|holds no resource"):
        read([str(path)])


def test_a_secret_that_has_no_end(tmp_path: Path) -> None:
    (tmp_path / "other.yml").write_text(ENDLESS)
    with pytest.raises(ConfigError, match=r"other\.yml, line 1: a\.b\.b: is nested more than 50 deep: is there an"):
        read_resource(tmp_path)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 100_000, "[" + "9" * 5000 + "]", '{"a": [[1]]}', '{"a": {}}']
)
def test_a_connectors_file_of_a_wrong_shape(tmp_path: Path, text: str) -> None:
    path = tmp_path / "source.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"source\.json") as caught:
        read([str(path)])
    assert "\n" not in str(caught.value)


def test_null_is_not_there(tmp_path: Path) -> None:
    def unsaid(spec: dict[str, Any]) -> None:
        spec |= {"replicas": None, "rack": None}
        spec["target"] |= {"tls": None, "authentication": None, "config": None}
        spec["mirrors"][0]["sourceConnector"]["tasksMax"] = None

    reading = read_resource(tmp_path, unsaid)
    assert model_of(reading)[0].flows[0].tasks_max == 1
    assert reading.resources[0].replicas == 1


# --- any node of the examples ---------------------------------------------------------------------


def nodes(tree: Any, steps: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to each node below the root."""
    for step, below in tree.items() if isinstance(tree, dict) else enumerate(tree if isinstance(tree, list) else ()):
        yield (*steps, step)
        yield from nodes(below, (*steps, step))


@st.composite
def spoilt(draw: st.DrawFn) -> str:
    """An example with one value replaced."""
    trees = list(yaml.safe_load_all(draw(st.sampled_from(EXAMPLES)).read_text()))
    *way, last = draw(st.sampled_from(list(nodes(trees))))
    there: Any = trees
    for step in way:
        there = there[step]
    there[last] = copy.deepcopy(draw(st.sampled_from(WRONG)))
    return yaml.safe_dump_all([tree for tree in trees if tree is not None], sort_keys=False)


@settings(max_examples=40, deadline=None)
@given(text=spoilt())
def test_no_verb_stumbles(text: str) -> None:
    with TemporaryDirectory() as directory:
        for name in MOUNTED:
            Path(directory, name).mkdir()
            for key in ("ca.crt", "user.crt", "user.key", "password"):
                Path(directory, name, key).write_text("x")
        path = Path(directory, "resource", "mirror.yaml")
        path.parent.mkdir()
        path.write_text(text)
        verbs = [["lint", str(path)], ["config", str(path)]]
        verbs += [["convert", str(path), "--to", to, "-w", f"{directory}/out/{to}"] for to in ("strimzi", "connectors")]
        for verb in verbs:
            result = CliRunner().invoke(app, [*verb, "--secrets", directory])
            if result.exception is not None and not isinstance(result.exception, SystemExit):
                assert isinstance(result.exception, ConfigError), (verb, text, result.exception)
                assert str(result.exception).count("\n") + 1 == len(result.exception.mistakes)


# --- the table of shapes ---------------------------------------------------------------------------


def test_every_honoured_field_has_a_shape() -> None:
    assert not [field.path for field in FIELDS if field.effect == HONOURED and shape_at(field.path) is None]
