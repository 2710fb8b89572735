"""TLS settings of either cluster: where they are looked for, what they mean, and secrets that stay secret."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from pydantic import SecretStr

from sparkmirror.config import FlowConfig, MirrorConfig
from sparkmirror.config.model import REVEAL, SslConfig
from sparkmirror.config.settings import SSL_SETTINGS
from sparkmirror.errors import ConfigError
from sparkmirror.pump.orders import FlowOrder, PumpOrder

Load = Callable[..., MirrorConfig]
TLS = "security.protocol = SSL\n"


def flow(config: MirrorConfig) -> FlowConfig:
    (only,) = config.flows
    return only


# --- places -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "protocols"),
    [
        ("", ("PLAINTEXT", "PLAINTEXT")),
        ("security.protocol = SSL", ("SSL", "SSL")),
        ("us.security.protocol = ssl", ("SSL", "PLAINTEXT")),
        ("eu.security.protocol = Ssl", ("PLAINTEXT", "SSL")),
        ("security.protocol = SSL\nus.security.protocol = plaintext", ("PLAINTEXT", "SSL")),
        ("consumer.security.protocol = SSL", ("PLAINTEXT", "PLAINTEXT")),
    ],
)
def test_each_cluster_has_its_protocol(load: Load, lines: str, protocols: tuple[str, str]) -> None:
    both = flow(load(lines))
    assert (both.source.security_protocol, both.target.security_protocol) == protocols
    assert (both.source.encrypted, both.target.encrypted) == tuple(name == "SSL" for name in protocols)


VALUES = {
    "ssl.truststore.location": "/etc/trust.p12",
    "ssl.truststore.type": "pkcs12",
    "ssl.truststore.password": "trust me",
    "ssl.truststore.certificates": "-----BEGIN CERTIFICATE----- AAAA -----END CERTIFICATE-----",
    "ssl.keystore.location": "/etc/keys.p12",
    "ssl.keystore.type": "PKCS12",
    "ssl.keystore.password": "open",
    "ssl.keystore.key": "-----BEGIN PRIVATE KEY----- AAAA -----END PRIVATE KEY-----",
    "ssl.keystore.certificate.chain": "-----BEGIN CERTIFICATE----- BBBB -----END CERTIFICATE-----",
    "ssl.key.password": "sesame",
    "ssl.endpoint.identification.algorithm": "",
    "ssl.enabled.protocols": "TLSv1.2",
    "ssl.protocol": "TLSv1.2",
}


@pytest.mark.parametrize("setting", SSL_SETTINGS, ids=lambda setting: setting.name)
def test_a_setting_counts_for_its_cluster_before_the_others(load: Load, setting: object) -> None:
    name, field = setting.name, setting.field  # type: ignore[attr-defined]
    value = setting.kind.parse(VALUES[name])  # type: ignore[attr-defined]
    default = getattr(SslConfig(), field)
    assert value != default

    def read(lines: str) -> tuple[object, object]:
        config = load(TLS + lines)
        assert config.warnings == ()
        found = (getattr(flow(config).source.ssl, field), getattr(flow(config).target.ssl, field))
        return tuple(one.get_secret_value() if isinstance(one, SecretStr) else one for one in found)  # type: ignore[return-value]

    if isinstance(default, SecretStr):
        default = ""
    assert read(f"{name} = {VALUES[name]}") == (value, value)
    assert read(f"us.{name} = {VALUES[name]}") == (value, default)
    assert read(f"eu.{name} = {VALUES[name]}") == (default, value)


def test_every_setting_is_tried() -> None:
    assert {setting.name for setting in SSL_SETTINGS} == set(VALUES)
    assert {setting.field for setting in SSL_SETTINGS} == set(SslConfig.model_fields)


def test_without_tls_its_settings_do_nothing_and_say_so(load: Load) -> None:
    config = load("us.security.protocol = SSL\nssl.key.password = x\neu.ssl.truststore.location = /x")
    assert flow(config).source.ssl.key_password.get_secret_value() == "x"
    assert flow(config).target.ssl == SslConfig()
    (warning,) = config.warnings
    assert warning.endswith("eu.ssl.truststore.location: has no effect with security.protocol PLAINTEXT")


@pytest.mark.parametrize(
    ("key", "part"),
    [
        ("consumer.ssl.protocol", "write ssl.protocol or us.ssl.protocol"),
        ("us.ssl.cipher.suites", "has no effect: it is for Java's TLS, and ours is OpenSSL's"),
        ("us.sasl.mechanism", "has no effect without SASL"),
    ],
)
def test_what_does_nothing_is_named(load: Load, key: str, part: str) -> None:
    (warning,) = load(f"{TLS}{key} = TLSv1.3").warnings
    assert part in warning


# --- what can't be --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "value", "part"),
    [
        ("us.consumer.ssl.truststore.location", "/other", "write us.ssl.truststore.location"),
        ("us.admin.security.protocol", "PLAINTEXT", "write us.security.protocol"),
        ("us->eu.source.cluster.ssl.truststore.location", "/other", "write us.ssl.truststore.location"),
        ("us->eu.producer.override.ssl.key.password", "/other", "write eu.ssl.key.password"),
        ("us->eu.security.protocol", "PLAINTEXT", "write eu.security.protocol"),
        ("us->eu.target.cluster.ssl.endpoint.identification.algorithm", "", "write eu.ssl.endpoint"),
    ],
)
def test_a_client_of_its_own_kind_is_refused(load: Load, key: str, value: str, part: str) -> None:
    with pytest.raises(ConfigError, match=part) as caught:
        load(f"{TLS}ssl.truststore.location = /trust\n{key} = {value}")
    assert caught.value.key == key
    assert "/other" not in str(caught.value)


def test_a_client_may_repeat_what_its_cluster_has(load: Load) -> None:
    lines = (
        "ssl.truststore.location = /x\nus.consumer.ssl.truststore.location = /x\nus.consumer.security.protocol = ssl"
    )
    assert load(TLS + lines).warnings == ()


@pytest.mark.parametrize(
    ("key", "value", "part"),
    [
        ("ssl.truststore.type", "BCFKS", "must be JKS or PKCS12 or PEM"),
        ("us.ssl.enabled.protocols", "TLSv1.1", "must be a list of TLSv1.2 and TLSv1.3"),
        ("us.ssl.enabled.protocols", "TLSv1.4", "must be a list of TLSv1.2 and TLSv1.3"),
        ("ssl.protocol", "SSL", "must be TLSv1.3 or TLSv1.2 or TLS"),
        ("ssl.endpoint.identification.algorithm", "ldaps", "must be https or nothing"),
    ],
)
def test_bad_value(load: Load, key: str, value: str, part: str) -> None:
    with pytest.raises(ConfigError, match=part):
        load(f"{TLS}{key} = {value}")


def test_old_versions_of_tls_are_left_out_as_in_java(load: Load) -> None:
    config = load(TLS + "ssl.enabled.protocols = TLSv1.2, TLSv1.1, TLSv1")
    assert flow(config).source.ssl.enabled_protocols == ("TLSv1.2",)


# --- secrets --------------------------------------------------------------------------------------------

SECRETS = ("ssl.truststore.password", "ssl.keystore.password", "ssl.keystore.key", "ssl.key.password")


def order(config: MirrorConfig) -> PumpOrder:
    one = FlowOrder(flow=flow(config), cluster_id="x", producer_id=1, producer_epoch=0, routes=())
    return PumpOrder(epoch=1, task=0, incarnation="x", seconds=1.0, flows=(one,))


@pytest.mark.parametrize("key", SECRETS)
def test_a_secret_shows_nowhere_but_in_an_order_that_travels(load: Load, key: str) -> None:
    config = load(f"{TLS}us.{key} = hunter2")
    assert flow(config).has_secrets
    made = order(config)
    shown = [
        repr(config),
        str(config),
        config.model_dump_json(),
        repr(config.model_dump()),
        repr(config.model_dump(mode="json")),
        made.model_dump_json(),
        repr(made),
    ]
    assert [text for text in shown if "hunter2" in text] == []
    assert "hunter2" in made.to_json()
    again = PumpOrder.model_validate_json(made.to_json())
    assert again == made
    assert again.flows[0].flow.source.ssl == flow(config).source.ssl


def test_what_can_not_be_read_does_not_show_its_secrets(load: Load) -> None:
    data = json.loads(order(load(f"{TLS}us.ssl.key.password = hunter2")).to_json())
    data["flows"][0]["flow"]["source"]["ssl"]["protocol"] = {"ssl": "hunter2"}
    data["flows"][0]["flow"]["source"]["ssl"]["surprise"] = "hunter2"
    with pytest.raises(ValueError, match="surprise") as caught:
        PumpOrder.model_validate_json(json.dumps(data))
    assert "hunter2" not in str(caught.value)
    with pytest.raises(ValueError, match="key_password") as caught:
        SslConfig.model_validate({"key_password": ["hunter2"]})
    assert "hunter2" not in str(caught.value)


def test_what_is_no_secret_may_travel_anywhere(load: Load) -> None:
    config = load(f"{TLS}ssl.truststore.location = /x\nssl.truststore.type = PEM")
    assert not flow(config).has_secrets
    assert json.loads(config.model_dump_json()) == json.loads(config.model_dump_json(context=REVEAL))
