"""Config providers: `${provider:path:name}`, as Kafka's own three classes read it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sparkmirror.config import ClusterConfig, MirrorConfig
from sparkmirror.config.model import ProviderConfig
from sparkmirror.config.providers import resolve, with_secrets
from sparkmirror.errors import ConfigError
from sparkmirror.kafka.cluster.tls_contexts import ssl_context
from sparkmirror.pump.messages.orders import FlowOrder, PumpOrder

Load = Callable[..., MirrorConfig]
PACKAGE = "org.apache.kafka.common.config.provider."
DECLARED = (
    "config.providers = env, file, dir\n"
    f"config.providers.env.class = {PACKAGE}EnvVarConfigProvider\n"
    f"config.providers.file.class = {PACKAGE}FileConfigProvider\n"
    f"config.providers.dir.class = {PACKAGE}DirectoryConfigProvider\n"
)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the expressions of `VECTORS` lead to."""
    (tmp_path / "s.properties").write_text("a = A1\nb\\:c = BC\nnested = ${env:ABC}\nu = é \\u00e9\n", "utf-8")
    (tmp_path / "dd" / "sub").mkdir(parents=True)
    (tmp_path / "dd" / "one").write_text("one line\n")
    (tmp_path / "dd" / "two").write_text("two")
    for name in ("ok", "ok2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "t.properties").write_text("a = ok\n")
    monkeypatch.setenv("ABC", "abc")
    monkeypatch.setenv("XYZ", "xyz")
    monkeypatch.delenv("ABNONE", raising=False)
    return tmp_path


def declared(files: Path) -> tuple[ProviderConfig, ...]:
    return (
        ProviderConfig(name="env", kind="EnvVarConfigProvider", allowlist_pattern="AB.*"),
        ProviderConfig(name="file", kind="FileConfigProvider"),
        ProviderConfig(name="dir", kind="DirectoryConfigProvider"),
        ProviderConfig(name="g", kind="FileConfigProvider", allowed_paths=(str(files / "ok"),)),
    )


VECTORS = {
    "${file:@/s.properties:a}": "A1",
    "x${file:@/s.properties:a}y${env:ABC}z": "xA1yabcz",
    "${env::ABC}": "abc",
    "${dir:@/dd:one}": "one line\n",
    "${dir:@/dd:one}${dir:@/dd:two}": "one line\ntwo",
    "${file:@/s.properties:b:c}": "BC",
    "${file:@/s.properties:nested}": "${env:ABC}",
    "$${file:@/s.properties:a}": "$A1",
    "${file:@/s.properties:u}": "é é",
    "${g:@/ok/t.properties:a}": "ok",
    "${no:a}": "${no:a}",
    "${}": "${}",
    "${no:x\ny}": "${no:x\ny}",
}
"""Tried with `ConfigTransformer` of Kafka 4.3.1; `@` is a directory."""

MISSING = {
    "${env:XYZ}": "its name does not match allowlist.pattern",
    "${env:ABNONE}": "there is no such environment variable",
    "${env:p:ABC}": "an environment variable has no path",
    "${file:a}": "it names no path: write ${file:path:name}",
    "${file::a}": "it names no path",
    "${file:@/none:a}": "the file can't be read",
    "${file:@/s.properties:none}": "the file has no such key",
    "${file:@/s.properties: a}": "the file has no such key",
    "${dir:@/dd:sub}": "the directory has no such file",
    "${dir:@/none:one}": "the directory has no such file",
    "${dir:@/dd:../s.properties}": "the directory has no such file",
    "${g:@/s.properties:a}": "its path is not among allowed.paths",
    "${g:@/ok/../s.properties:a}": "its path is not among allowed.paths",
    "${g:@/ok2/t.properties:a}": "its path is not among allowed.paths",
}
"""What Kafka leaves as it stands, or throws at."""


@pytest.mark.parametrize("text", VECTORS)
def test_as_kafka_does(files: Path, text: str) -> None:
    assert resolve(text.replace("@", str(files)), declared(files)) == VECTORS[text]


@pytest.mark.parametrize("text", MISSING)
def test_what_is_not_there_is_said(files: Path, text: str) -> None:
    with pytest.raises(ValueError, match=r"has no value: ") as caught:
        resolve(text.replace("@", str(files)), declared(files))
    assert MISSING[text] in str(caught.value)


def test_any_key_may_hold_one(load: Load, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAMES", "us, eu")
    monkeypatch.setenv("ON", "true")
    start = (
        "clusters = ${env:NAMES}\nus->eu.enabled = ${env:ON}\nus.bootstrap.servers = ${env:ABC}:9092\n"
        f"eu.bootstrap.servers = eu:1\ntopics = x${{dir:{files}/dd:two}}, y\n"
        f"us.consumer.client.rack = ${{dir:{files}/dd:one}}\n"
        "spark.a = ${env:ABC}\nspark.b = ${spark.c} ${system:d}\n"
    )
    config = load(DECLARED, start=start)
    (flow,) = config.flows
    assert (flow.name, flow.source.bootstrap_servers) == ("us->eu", ("abc:9092",))
    assert flow.topics == ("xtwo", "y")
    assert flow.fetch.client_rack == "one line", "trimmed, as any value"
    assert config.spark == {"spark.a": "abc", "spark.b": "${spark.c} ${system:d}"}
    assert config.warnings == ()


@pytest.mark.parametrize(
    ("lines", "key", "part"),
    [
        ("topics = ${env:NO_SUCH}", "topics", "${env:NO_SUCH} has no value: there is no such environment variable"),
        ("topics = ${vault:a:b}", "topics", "write config.providers = vault and config.providers.vault.class"),
        ("us->eu.tasks.max = ${env:ABC}", "us->eu.tasks.max", "its value from the config provider is not allowed"),
        ("config.providers = x", "config.providers", "x has no class: write config.providers.x.class = one of"),
        ("config.providers = x,,y", "config.providers", "empty item"),
        (
            "config.providers = x\nconfig.providers.x.class = com.example.Vault",
            "config.providers.x.class",
            "Java classes can't be loaded: write one of",
        ),
        (
            "config.providers = f\nconfig.providers.f.class = FileConfigProvider\n"
            "config.providers.f.param.allowed.paths = here",
            "config.providers.f.param.allowed.paths",
            "here must be an absolute path of something that exists",
        ),
        (
            "config.providers = e\nconfig.providers.e.class = EnvVarConfigProvider\n"
            "config.providers.e.param.allowlist.pattern = (",
            "config.providers.e.param.allowlist.pattern",
            "is no regular expression",
        ),
    ],
)
def test_refused(load: Load, files: Path, lines: str, key: str, part: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(lines if "config.providers" in lines else DECLARED + lines)
    assert caught.value.key == key
    assert part in str(caught.value)
    assert "abc" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", [PACKAGE + "EnvVarConfigProvider", "EnvVarConfigProvider", "EnvVar"])
def test_names_of_a_class(load: Load, files: Path, kind: str) -> None:
    lines = f"config.providers = e\nconfig.providers.e.class = {kind}\ntopics = ${{e:ABC}}"
    config = load(lines)
    assert config.flows[0].topics == ("abc",)
    assert config.warnings == ()


def test_parameters_count(load: Load, files: Path) -> None:
    lines = f"{DECLARED}config.providers.env.param.allowlist.pattern = X.*\n"
    assert load(lines + "topics = ${env:XYZ}").flows[0].topics == ("xyz",)
    with pytest.raises(ConfigError, match=r"does not match allowlist\.pattern"):
        load(lines + "topics = ${env:ABC}")
    lines = f"{DECLARED}config.providers.dir.param.allowed.paths = {files}/ok, {files}/dd\n"
    assert load(f"{lines}topics = ${{dir:{files}/dd:two}}").flows[0].topics == ("two",)
    with pytest.raises(ConfigError, match=r"not among allowed\.paths"):
        load(f"{lines}topics = ${{dir:{files}/ok2:t.properties}}")


# --- secrets --------------------------------------------------------------------------------------------

TLS = DECLARED + "us.security.protocol = SSL\nus.ssl.key.password = ${env:ABC}\n"


def source(config: MirrorConfig) -> ClusterConfig:
    return config.flows[0].source


def test_a_secret_stays_a_reference_until_it_is_used(load: Load, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = load(TLS)
    one = FlowOrder(flow=config.flows[0], cluster_id="x", producer_id=1, producer_epoch=0, routes=())
    order = PumpOrder(epoch=1, task=0, incarnation="x", seconds=1.0, flows=(one,))
    assert "${env:ABC}" in order.to_json()
    assert "abc" not in order.to_json()
    again = PumpOrder.model_validate_json(order.to_json()).flows[0].flow.source
    assert with_secrets(again).ssl.key_password.get_secret_value() == "abc"
    monkeypatch.setenv("ABC", "renewed")
    assert with_secrets(again).ssl.key_password.get_secret_value() == "renewed"
    assert not config.flows[0].has_secrets


def test_but_it_must_be_there_at_the_start(load: Load, files: Path) -> None:
    with pytest.raises(ConfigError, match=r"us\.ssl\.key\.password: \$\{env:ABNONE\} has no value"):
        load(TLS.replace("ABC", "ABNONE"))


def test_and_where_it_is_used(load: Load, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = source(load(TLS))
    monkeypatch.delenv("ABC")
    with pytest.raises(ConfigError, match=r"cluster us: ssl: \$\{env:ABC\} has no value"):
        ssl_context(config)


@pytest.mark.parametrize("value", ["${env:ABC}x", "literal", "${vault:a:b}"])
def test_what_is_more_than_a_reference_is_a_secret(load: Load, files: Path, value: str) -> None:
    config = load(TLS + f"us.ssl.keystore.password = {value}")
    assert config.flows[0].has_secrets


def test_a_secret_may_look_like_a_reference(load: Load, files: Path) -> None:
    config = load(TLS + "us.ssl.keystore.password = a${vault:b}")
    assert with_secrets(source(config)).ssl.keystore_password.get_secret_value() == "a${vault:b}"
    (warning,) = config.warnings
    assert "vault is not among config.providers" in warning
