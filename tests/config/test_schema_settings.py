"""A flow's schema registries, as files say where they are."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from sparkmirror.config import load_mm2_properties
from sparkmirror.config.formats import model_of, read
from sparkmirror.config.properties import explain_mm2_properties
from sparkmirror.errors import ConfigError

HEAD = """\
clusters = A, B
A->B.enabled = true
B->A.enabled = true
A.bootstrap.servers = a:1
B.bootstrap.servers = b:1
"""
KEY = "sparkmirror.schemas"
HUSH = "hunter2"


def written(directory: Path, text: str) -> str:
    file = directory / "mm2.properties"
    file.write_text(HEAD + text)
    return str(file)


def test_a_flows_own_key_is_stronger(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        f"{KEY}.source.url = http://all:8081\nA->B.{KEY}.source.url = HTTPS://a:8081/apis/ccompat/v7/\n"
        f"A->B.{KEY}.target.url = http://[::1]:1\n{KEY}.source.ssl.truststore.type = PEM\n",
    )
    config = load_mm2_properties(file)
    assert not config.warnings
    there, back = config.schemas["A->B"], config.schemas["B->A"]
    assert (there.source.url, there.target.url) == ("https://a:8081/apis/ccompat/v7", "http://[::1]:1")
    assert (back.source.url, back.target.url) == ("http://all:8081", "")
    assert there.source.ssl.truststore_type == back.source.ssl.truststore_type == "PEM"


def test_secrets_are_shown_to_nobody(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        f"{KEY}.source.url = https://a\n{KEY}.source.basic.auth.user.info = me:{HUSH}\n"
        f"{KEY}.source.bearer.auth.token = {HUSH}\n{KEY}.source.ssl.keystore.password = {HUSH}\n",
    )
    config, values = explain_mm2_properties(file)
    shown = {value.key: value.value for value in values if value.flow == "A->B" and value.key.startswith(KEY)}
    assert shown[f"{KEY}.source.url"] == "https://a"
    assert shown[f"{KEY}.source.basic.auth.user.info"] == shown[f"{KEY}.source.ssl.keystore.password"] == "********"
    assert not any(key.startswith(f"{KEY}.target") for key in shown)
    assert HUSH not in repr(config) + config.model_dump_json() + repr(values)
    flow = config.flows[0]
    assert not flow.has_secrets, "no order has them"


def test_classes_of_the_users_get_no_secrets(tmp_path: Path, write: Callable[[str], str]) -> None:
    module = write("class Filter:\n    def should_replicate_topic(self, topic): return True\n")
    text = (
        f"topic.filter.class = {module}:Filter\n"
        f"A->B.{KEY}.source.basic.auth.user.info = me:{HUSH}\nA->B.{KEY}.target.bearer.auth.token = {HUSH}\n"
        f"A->B.{KEY}.source.url = http://a\n"
    )
    originals = load_mm2_properties(written(tmp_path, text)).flows[0].originals
    assert originals[f"{KEY}.source.url"] == "http://a"
    assert HUSH not in repr(originals)


@pytest.mark.parametrize(
    "url",
    ["a:8081", "ftp://a", "http://", "http://a:0", "http://a:x", "http://a,http://b", "http://a b", "http://a/?x=1"],
)
def test_what_is_no_address(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigError, match=f"{KEY}.source.url: .* is not allowed") as told:
        load_mm2_properties(written(tmp_path, f"{KEY}.source.url = {url}\n"))
    assert told.value.origin.endswith("line 6")


def test_no_password_in_an_address(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="must not hold a user or password") as told:
        load_mm2_properties(written(tmp_path, f"{KEY}.source.url = http://me:{HUSH}@a\n"))
    assert HUSH not in str(told.value)


def test_a_misspelt_key_is_told(tmp_path: Path) -> None:
    config = load_mm2_properties(written(tmp_path, f"{KEY}.source.urll = http://a\nA.{KEY}.target.url = http://a\n"))
    assert any(f"did you mean {KEY}.source.url?" in warning for warning in config.warnings)
    assert any(f"A.{KEY}.target.url" in warning and "write" in warning for warning in config.warnings)


def test_a_connectors_file(tmp_path: Path) -> None:
    file = tmp_path / "source.json"
    settings = {
        "connector.class": "MirrorSourceConnector",
        "source.cluster.alias": "A",
        "target.cluster.alias": "B",
        "source.cluster.bootstrap.servers": "a:1",
        "target.cluster.bootstrap.servers": "b:1",
        f"{KEY}.source.url": "http://a:8081",
    }
    file.write_text(json.dumps(settings))
    config, _ = model_of(read([str(file)]))
    assert config.schemas["A->B"].source.url == "http://a:8081"
    assert not config.warnings
