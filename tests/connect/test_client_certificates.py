"""`ssl.client.auth` of the https listeners: who gets through the handshake."""

from __future__ import annotations

import socket
import ssl
import threading
from pathlib import Path

import pytest
from lab import Authority
from tests.connect.serving import worker_config, worker_settings

from sparkmirror.errors import ConfigError
from sparkmirror.kafka.cluster.tls_contexts import server_context

HOST = "127.0.0.1"


def _server(authority: Authority, directory: Path, auth: dict[str, str], *, trusts: bool = True) -> ssl.SSLContext:
    """As the https listener of a worker's file has it, with `auth` in it."""
    stores = {
        "listeners": f"https://{HOST}:8083",
        "listeners.https.ssl.keystore.type": "PEM",
        "listeners.https.ssl.keystore.location": str(authority.issue(directory / "server.pem")),
    }
    if trusts:
        stores["listeners.https.ssl.truststore.type"] = "PEM"
        stores["listeners.https.ssl.truststore.location"] = str(authority.certificate)
    config = worker_config(directory, {**worker_settings("kafka:9092", "group", 8083), **stores, **auth})
    return server_context(config.cluster.model_copy(update={"ssl": config.https}), config.client_auth)


def _lets_in(server: ssl.SSLContext, authority: Authority, own: Path | None) -> bool:
    """Whether a client is heard that shows the certificate `own`, or none."""
    context = ssl.create_default_context(cafile=str(authority.certificate))
    if own is not None:
        context.load_cert_chain(own)
    ours, theirs = socket.socketpair()

    def answer() -> None:
        try:
            with server.wrap_socket(theirs, server_side=True) as accepted:
                accepted.sendall(b"hello")
        except ssl.SSLError:
            theirs.close()

    greeting = threading.Thread(target=answer)
    greeting.start()
    try:
        # With TLS 1.3 the client hears of a refusal when it reads
        with context.wrap_socket(ours, server_hostname=HOST) as connection:
            return connection.recv(5) == b"hello"
    except OSError:
        return False
    finally:
        greeting.join()


@pytest.mark.parametrize("key", ["ssl.client.auth", "listeners.https.ssl.client.auth"])
@pytest.mark.parametrize(
    ("word", "without", "with_another"),
    [("none", True, True), ("requested", True, False), ("required", False, False), (" REQUIRED", False, False)],
)
def test_who_is_let_in(
    authority: Authority, tmp_path: Path, key: str, word: str, without: bool, with_another: bool
) -> None:
    server = _server(authority, tmp_path, {key: word})
    another = Authority(tmp_path / "another").issue(tmp_path / "another.pem")
    assert _lets_in(server, authority, None) is without
    assert _lets_in(server, authority, another) is with_another
    assert _lets_in(server, authority, authority.issue(tmp_path / "client.pem"))


@pytest.mark.parametrize("key", ["ssl.client.auth", "listeners.https.ssl.client.auth"])
@pytest.mark.parametrize("word", ["yes", "true", "requested,required", ""])
def test_another_word_is_refused(tmp_path: Path, key: str, word: str) -> None:
    with pytest.raises(ConfigError, match="must be none or requested or required") as caught:
        worker_config(tmp_path, {**worker_settings("kafka:9092", "group", 8083), key: word})
    assert caught.value.key == key
    assert caught.value.origin.startswith(str(tmp_path / "connect-8083.properties") + ", line ")


def test_whose_certificates_are_taken_must_be_said(authority: Authority, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"ssl\.truststore\.location: is missing"):
        _server(authority, tmp_path, {"ssl.client.auth": "required"}, trusts=False)
