"""Asking a registry: TLS, sign-ins, faults. The registries are played."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
import trustme
from played_registry import PlayedRegistry, schema
from pydantic import SecretStr

from sparkmirror.config import MirrorConfig, load_mm2_properties
from sparkmirror.config.model import RegistryConfig
from sparkmirror.errors import ConfigError, RegistryUnreachable
from sparkmirror.schemas import Registry, registry
from sparkmirror.schemas.registry import Schema, SchemaReference

USER, TOKEN = "asker:hunter2", "t0ken.of.ours"
BASIC = "Basic " + base64.b64encode(USER.encode()).decode()
INT = {"/schemas/ids/7": schema('"int"')}


def asked(url: str, **fields: object) -> Registry:
    return Registry(RegistryConfig.model_validate({"url": url, **fields}), "target")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_PAUSES_S", (0.01, 0.01))


# --- what the API says -----------------------------------------------------------------------------------


def test_a_schema_is_asked_for_once() -> None:
    answers = INT | {"/schemas/ids/7/versions": (200, [{"subject": "b", "version": 2}, {"subject": "a", "version": 1}])}
    with PlayedRegistry(answers) as played:
        ours = asked(played.url)
        assert ours.schema("7") == ours.schema("7") == Schema("AVRO", '"int"')
        assert ours.schema("8") is None
        assert ours.schema("8") is None
        assert ours.subjects("7") == ("a version 1", "b version 2")
        assert [path for path, _ in played.asked] == ["/schemas/ids/7", "/schemas/ids/8", "/schemas/ids/7/versions"]


def test_references_and_types() -> None:
    reference = {"name": "o/a.proto", "subject": "o/a", "version": 3}
    answers = {
        "/schemas/ids/1": schema("syntax", "PROTOBUF", [reference]),
        "/subjects/o%2Fa/versions/3?deleted=true": schema("inner", "PROTOBUF"),
        "/subjects/o%2Fa": (200, {"id": 12}),
    }
    with PlayedRegistry(answers) as played:
        ours = asked(played.url)
        found = ours.schema("1")
        assert found == Schema("PROTOBUF", "syntax", (SchemaReference("o/a.proto", "o/a", 3),))
        assert ours.version("o/a", 3) == Schema("PROTOBUF", "inner")
        assert ours.version("o/a", 4) is None
        assert ours.id_of("o/a", found) == "12"
        assert ours.id_of("others", found) is None


# --- sign-ins and TLS ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def secured(authority: trustme.CA) -> Callable[[], PlayedRegistry]:
    """A registry that speaks TLS and wants to see a certificate and a password."""

    def build() -> PlayedRegistry:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("localhost").configure_cert(context)
        authority.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED
        played = PlayedRegistry(INT, context)
        played.demanded = BASIC
        return played

    return build


@pytest.fixture
def written(tmp_path: Path, authority: trustme.CA) -> Callable[[str], MirrorConfig]:
    """Read a file with all that the registry wants; its secrets stand in another one."""
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    authority.issue_cert("asker").private_key_and_cert_chain_pem.write_to_path(tmp_path / "own.pem")
    (tmp_path / "secrets.properties").write_text(f"user={USER}\n")

    def read(url: str) -> MirrorConfig:
        file = tmp_path / "mm2.properties"
        file.write_text(
            "clusters = A, B\nA->B.enabled = true\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\n"
            "config.providers = file\nconfig.providers.file.class = FileConfigProvider\n"
            f"sparkmirror.schemas.target.url = {url}\n"
            f"sparkmirror.schemas.target.basic.auth.user.info = ${{file:{tmp_path}/secrets.properties:user}}\n"
            f"A->B.sparkmirror.schemas.target.ssl.truststore.location = {tmp_path}/ca.pem\n"
            "sparkmirror.schemas.target.ssl.truststore.type = PEM\n"
            f"sparkmirror.schemas.target.ssl.keystore.location = {tmp_path}/own.pem\n"
            "sparkmirror.schemas.target.ssl.keystore.type = PEM\n"
        )
        return load_mm2_properties(str(file))

    return read


def test_tls_both_ways_and_a_password_from_elsewhere(
    secured: Callable[[], PlayedRegistry], written: Callable[[str], MirrorConfig]
) -> None:
    with secured() as played:
        config = written(played.url)
        assert not config.warnings
        ours = config.schemas["A->B"].target
        assert USER not in repr(config)
        assert "hunter2" not in config.model_dump_json()
        assert Registry(ours, "target").schema("7") == Schema("AVRO", '"int"')
        assert played.asked == [("/schemas/ids/7", BASIC)]


def test_a_certificate_that_nobody_trusts(secured: Callable[[], PlayedRegistry]) -> None:
    with secured() as played, pytest.raises(RegistryUnreachable, match=r"can't be asked: .*certificate verify failed"):
        asked(played.url).schema("7")


def test_a_wrong_password_is_told_without_it(
    secured: Callable[[], PlayedRegistry], written: Callable[[str], MirrorConfig]
) -> None:
    with secured() as played:
        ours = written(played.url).schemas["A->B"].target
        wrong = ours.model_copy(update={"basic_auth_user_info": SecretStr("asker:wrong"), "providers": ()})
        with pytest.raises(RegistryUnreachable) as told:
            Registry(wrong, "target").schema("7")
        refused = "refuses sparkmirror (401 Unauthorized): see sparkmirror.schemas.target.basic.auth.user.info"
        assert refused in str(told.value)
        assert "wrong" not in str(told.value)


def test_a_token() -> None:
    with PlayedRegistry(INT) as played:
        played.demanded = f"Bearer {TOKEN}"
        assert asked(played.url, bearer_auth_token=TOKEN).schema("7") is not None


@pytest.mark.parametrize(
    "fields",
    [
        {"basic_auth_user_info": "nobody"},
        {"bearer_auth_token": "two\nlines"},
        {"basic_auth_user_info": USER, "bearer_auth_token": TOKEN},
    ],
)
def test_sign_ins_that_can_not_be_used(fields: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as told:
        asked("http://localhost:1", **fields)
    assert not any(secret in str(told.value) for secret in ("nobody", "lines", "hunter2", TOKEN))


# --- faults ----------------------------------------------------------------------------------------------


def test_who_is_busy_is_asked_again() -> None:
    with PlayedRegistry(INT) as played:
        played.busy = 2
        assert asked(played.url).schema("7") is not None
        played.busy = 3
        with pytest.raises(RegistryUnreachable, match="answers 503"):
            asked(played.url).schema("7")


def test_nobody_is_there() -> None:
    with pytest.raises(
        RegistryUnreachable, match=r"the target's schema registry http://localhost:1 can't be asked"
    ) as told:
        asked("http://localhost:1").schema("7")
    assert told.value.exit_code == 3


def test_a_redirection_gets_no_password() -> None:
    with (
        PlayedRegistry(INT) as other,
        PlayedRegistry({"/schemas/ids/7": (302, f"{other.url}/schemas/ids/7")}) as played,
    ):
        with pytest.raises(RegistryUnreachable, match="it redirects to another address"):
            asked(played.url, basic_auth_user_info=USER).schema("7")
        assert not other.asked


@pytest.mark.parametrize(
    "answer",
    [
        (404, {"error_code": 0, "message": "no such resource"}),
        (404, b"<html>"),
        (200, b"<html>"),
        (200, b"[" * 100_000),
        (200, ["a list"]),
        (200, {"id": 7}),
        (200, {"schema": "x", "references": [{"name": "n"}]}),
        (200, {"schema": "x", "references": 5}),
    ],
    ids=str,
)
def test_something_else_answers(answer: tuple[int, object]) -> None:
    with (
        PlayedRegistry({"/schemas/ids/7": answer}) as played,
        pytest.raises(RegistryUnreachable, match="does not answer as one"),
    ):
        asked(played.url).schema("7")


def test_an_endless_answer_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "LARGEST_ANSWER", 10)
    with PlayedRegistry(INT) as played, pytest.raises(RegistryUnreachable):
        asked(played.url).schema("7")
