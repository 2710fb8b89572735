"""Metrics on the listeners of a file: http, https, with and without users."""

from __future__ import annotations

import base64
import http.client
import socket
import ssl
from contextlib import closing
from pathlib import Path

import pytest
from lab import Authority
from tests.support.snapshot_samples import snapshot

from sparkmirror.cli.metrics import metrics_served, page_address
from sparkmirror.config import MirrorConfig
from sparkmirror.config.model import MetricsConfig, SslConfig
from sparkmirror.demo.ports import free_ports
from sparkmirror.errors import ConfigError


def told(**fields: object) -> MirrorConfig:
    return MirrorConfig(path="mm2.properties", flows=(), metrics=MetricsConfig.model_validate(fields))


def get(port: int, tls: ssl.SSLContext | None = None, user: str = "") -> tuple[int, bytes]:
    connection = (
        http.client.HTTPSConnection("127.0.0.1", port, timeout=5, context=tls)
        if tls
        else http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    )
    headers = {"Authorization": "Basic " + base64.b64encode(user.encode()).decode()} if user else {}
    try:
        connection.request("GET", "/metrics", headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def jaas(tmp_path: Path) -> str:
    users = tmp_path / "users.properties"
    users.write_text("prometheus = scrape-secret\n")
    file = tmp_path / "jaas.conf"
    module = "org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule"
    file.write_text(f'KafkaConnect {{ {module} required file="{users}"; }};\n')
    return str(file)


def test_the_port_and_all_listeners_answer() -> None:
    port, listener = free_ports(2)
    with metrics_served(port, None, told(listeners=(f"http://127.0.0.1:{listener}",)), snapshot):
        assert {get(port)[0], get(listener)[0]} == {200}


def test_users_of_the_file(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    config = told(listeners=(f"http://127.0.0.1:{port}",), jaas_file=jaas(tmp_path))
    with metrics_served(None, None, config, snapshot):
        assert get(port)[0] == 401
        assert get(port, user="prometheus:wrong")[0] == 401
        status, text = get(port, user="prometheus:scrape-secret")
    assert status == 200
    assert b"scrape-secret" not in text


def test_a_file_without_users_is_told_and_lets_nobody_act(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (port,) = free_ports(1)
    config = told(listeners=(f"http://127.0.0.1:{port}",), jaas_file=jaas(tmp_path))
    (tmp_path / "users.properties").write_text("")
    with metrics_served(None, None, config, snapshot):
        assert get(port)[0] == 200
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=5)) as connection:
            page = {"x-sparkmirror-page": "1", "via": "a proxy"}
            connection.request("POST", "/actions/pause", b'{"flow": "A->B"}', page)
            assert connection.getresponse().status == 403
    assert "users.properties: has no user" in "".join(capsys.readouterr().err.splitlines())


def test_https(tmp_path: Path, authority: Authority) -> None:
    (port,) = free_ports(1)
    https = SslConfig(keystore_type="PEM", keystore_location=str(authority.issue(tmp_path / "server.pem")))
    with metrics_served(None, None, told(listeners=(f"https://127.0.0.1:{port}",), https=https), snapshot):
        assert get(port, ssl.create_default_context(cafile=str(authority.certificate)))[0] == 200


def test_what_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    https = SslConfig(keystore_type="PEM", keystore_location=str(tmp_path / "missing.pem"))
    of_file = f"https://127.0.0.1:{port}"
    for config, reason in (
        (told(listeners=(of_file,), https=https), "missing.pem can't be read"),
        (told(listeners=("http://127.0.0.1:1",), jaas_file="/missing"), "can't be read"),
    ):
        with pytest.raises(ConfigError, match=reason), metrics_served(None, None, config, snapshot):
            pass


def test_a_listener_in_use_is_named_with_its_key() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        config = told(listeners=(f"http://127.0.0.1:{taken.getsockname()[1]}",))
        with (
            pytest.raises(ConfigError, match=r"sparkmirror\.metrics\.listeners"),
            metrics_served(None, None, config, snapshot),
        ):
            pass


def test_the_address_of_the_page_for_people_elsewhere() -> None:
    host = socket.gethostname()
    assert page_address(9404, told()) == f"http://{host}:9404/"
    assert page_address(None, told()) == ""
    assert page_address(None, told(listeners=("https://mirror.example:9405",))) == "https://mirror.example:9405/"
    assert page_address(None, told(listeners=("http://:9405",))) == f"http://{host}:9405/"
