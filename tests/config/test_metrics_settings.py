"""`sparkmirror.metrics.*` and `sparkmirror.objective.seconds` of a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from sparkmirror.config import MirrorConfig, load_mm2_properties
from sparkmirror.errors import ConfigError

FILE = """\
clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
A->B.enabled = true
B->A.enabled = true
"""


def read(tmp_path: Path, more: str) -> MirrorConfig:
    file = tmp_path / "mm2.properties"
    file.write_text(FILE + more)
    return load_mm2_properties(str(file))


def test_without_any(tmp_path: Path) -> None:
    config = read(tmp_path, "")
    assert config.metrics.listeners == ()
    assert [flow.objective_seconds for flow in config.flows] == [0, 0]


def test_all_of_them_and_no_warning(tmp_path: Path) -> None:
    config = read(
        tmp_path,
        """
sparkmirror.objective.seconds = 60
B->A.sparkmirror.objective.seconds = 5
sparkmirror.metrics.listeners = http://127.0.0.1:9404, https://[::1]:9405
sparkmirror.metrics.jaas.file = /etc/jaas.conf
sparkmirror.metrics.listeners.https.ssl.keystore.type = PEM
sparkmirror.metrics.listeners.https.ssl.keystore.location = /etc/server.pem
sparkmirror.metrics.listeners.https.ssl.key.password = ${env:KEY_PASSWORD}
sparkmirror.metrics.listeners.https.ssl.client.auth = required
config.providers = env
config.providers.env.class = org.apache.kafka.common.config.provider.EnvVarConfigProvider
""".replace("${env:KEY_PASSWORD}", "${env:HOME}"),
    )
    metrics = config.metrics
    assert metrics.listeners == ("http://127.0.0.1:9404", "https://[::1]:9405")
    assert (metrics.jaas_file, metrics.client_auth) == ("/etc/jaas.conf", "required")
    assert metrics.https.keystore_location == "/etc/server.pem"
    assert isinstance(metrics.https.key_password, SecretStr)
    assert "$" not in metrics.https.key_password.get_secret_value()
    assert {flow.name: flow.objective_seconds for flow in config.flows} == {"A->B": 60, "B->A": 5}
    assert not [line for line in config.warnings if "sparkmirror" in line]


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ("sparkmirror.metrics.listeners = 9404", "it must be http://host:port"),
        ("sparkmirror.metrics.listeners = ftp://:9404", "it must be http://host:port"),
        ("sparkmirror.metrics.listeners = http://:94040", "it must be http://host:port"),
        ("sparkmirror.metrics.listeners = https://:9404", "need a key and a certificate"),
        ("sparkmirror.metrics.listeners.https.ssl.client.auth = yes", "none or requested or required"),
        ("sparkmirror.objective.seconds = soon", "a whole number"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path: Path, more: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason) as raised:
        read(tmp_path, more)
    assert str(raised.value).count("\n") == 0


def test_a_misspelt_key_is_named(tmp_path: Path) -> None:
    assert any(
        "sparkmirror.metrics.listener" in line for line in read(tmp_path, "sparkmirror.metrics.listener = x").warnings
    )
