"""The file of a `Mirror`, by each of its forms, as `sparkmirror run` reads it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import javaproperties
import pytest
import yaml
from tests.support.operated import MIRROR_KEY, PROPERTIES

from sparkmirror.errors import ConfigError
from sparkmirror.operator.mirror_file import file_text, named_secrets, read_mirror
from sparkmirror.operator.references import Contents, ObjectReference

PAGE = Path(__file__).parents[2] / "docs" / "deploy" / "operator.md"
USER = ObjectReference("Secret", "mirror-user")
CA = ObjectReference("Secret", "eu-ca")
CONTENTS: Contents = {USER: {"password": b"hush"}, CA: {"ca.crt": b"x", "ca2.crt": b"y"}}


def fields(**more: Any) -> dict[str, Any]:
    return {
        "clusters": [
            {"alias": "us", "bootstrapServers": "us:9092"},
            {
                "alias": "eu",
                "bootstrapServers": "eu:9093",
                "tls": {"trustedCertificates": [{"secretName": "eu-ca", "pattern": "*.crt"}]},
                "authentication": {
                    "type": "scram-sha-512",
                    "username": "mirror",
                    "passwordSecret": {"secretName": "mirror-user", "password": "password"},
                },
            },
        ],
        "mirrors": [
            {"source": "us", "target": "eu", "topics": ["orders.*", r"bills\.eu"], "groups": ["shop"], "tasksMax": 3},
            {"source": "eu", "target": "us", "topicsExclude": ["secret.*"]},
        ],
        **more,
    }


def test_fields_stand_for_keys() -> None:
    spec = fields(settings={"replication.factor": "1", "us->eu.sync.group.offsets.enabled": "true"})
    text = file_text(spec, MIRROR_KEY, CONTENTS)
    config = read_mirror(text, spec, MIRROR_KEY).config
    there, back = sorted(config.flows, key=lambda flow: flow.name, reverse=True)
    assert (there.name, back.name) == ("us->eu", "eu->us")
    assert there.source.bootstrap_servers == ("us:9092",)
    assert (there.topics, back.topics) == (("orders.*", r"bills\.eu"), (".*",))
    assert (there.group.groups, back.topics_exclude) == (("shop",), ("secret.*",))
    assert there.tasks_max == 3
    assert there.target.security_protocol == "SASL_SSL"
    jaas = there.target.sasl.jaas_config.get_secret_value()
    assert 'password="${secrets:/etc/sparkmirror/secrets/mirror-user:password}"' in jaas
    trusted = (f"${{secrets:/etc/sparkmirror/secrets/eu-ca:{name}}}" for name in ("ca.crt", "ca2.crt"))
    assert javaproperties.loads(text)["eu.ssl.truststore.certificates"] == "\n".join(trusted)
    assert named_secrets(spec, "kafka") == (CA, USER)


def test_further_providers_are_beside_the_one_of_the_secrets() -> None:
    further = {"config.providers": "env, secrets", "config.providers.env.class": "EnvVarConfigProvider"}
    spec = fields(settings=further)
    text = file_text(spec, MIRROR_KEY, CONTENTS)
    assert [line for line in text.splitlines() if line.startswith("config.providers=")] == [
        "config.providers=secrets, env"
    ]
    assert read_mirror(text, spec, MIRROR_KEY).warnings == ()
    without = {"clusters": spec["clusters"][:1], "settings": further}
    assert "config.providers=env, secrets\n" in file_text(without, MIRROR_KEY, {})


@pytest.mark.parametrize("missing", [USER, CA])
def test_a_missing_secret_is_named(missing: ObjectReference) -> None:
    contents = {reference: values for reference, values in CONTENTS.items() if reference != missing}
    with pytest.raises(ConfigError, match=f"Secret {missing.name} is not there") as raised:
        file_text(fields(), MIRROR_KEY, contents)
    assert "/tmp" not in str(raised.value)


def test_a_missing_key_is_named() -> None:
    with pytest.raises(ConfigError, match=r"Secret mirror-user has no key password$"):
        file_text(fields(), MIRROR_KEY, {**CONTENTS, USER: {"other": b"x"}})


def test_a_value_is_a_value_whatever_is_in_it() -> None:
    spec = fields(settings={"us->eu.topics.blacklist": "a\nus->eu.enabled = false"})
    text = file_text(spec, MIRROR_KEY, CONTENTS)
    assert [line for line in text.splitlines() if "us->eu.enabled" in line] == [
        "us->eu.enabled=true",
        "us->eu.topics.blacklist=a\\nus->eu.enabled \\= false",
    ]


JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="{}";'
REFERENCE = "${secrets:/etc/sparkmirror/secrets/mirror-user:password}"
PROVIDER = PROPERTIES + "config.providers = secrets\nconfig.providers.secrets.class = DirectoryConfigProvider\n"


def with_line(line: str) -> str:
    """A file with this line, and what else it needs."""
    protocol = "SASL_SSL\nus.sasl.mechanism = PLAIN" if "jaas" in line else "SSL"
    return f"{PROVIDER}us.security.protocol = {protocol}\n{line}\n"


@pytest.mark.parametrize(
    ("line", "key"),
    [
        (f"us.sasl.jaas.config = {JAAS.format('hush-hush')}", "us.sasl.jaas.config"),
        (f"sasl.jaas.config = {JAAS.format('hush-hush')}", "sasl.jaas.config"),
        ("us->eu.schemas.target.bearer.auth.token = hush-hush", "us->eu.schemas.target.bearer.auth.token"),
        ("us.ssl.keystore.password = hush-hush", "us.ssl.keystore.password"),
        ("us.ssl.key.password = hush-hush", "us.ssl.key.password"),
        ("us.ssl.truststore.password = ${other:a:b}hush-hush", "us.ssl.truststore.password"),
    ],
)
def test_a_password_that_is_written_out_is_refused(line: str, key: str) -> None:
    spec = {"properties": with_line(line)}
    with pytest.raises(ConfigError) as raised:
        read_mirror(spec["properties"], spec, MIRROR_KEY)
    assert key in str(raised.value)
    assert "a password is written out" in str(raised.value)
    assert "hush-hush" not in str(raised.value)
    assert "\n" not in str(raised.value)
    in_secret = {"propertiesFrom": {"secretKeyRef": {"name": "file"}}}
    assert read_mirror(spec["properties"], in_secret, MIRROR_KEY).config.flows


@pytest.mark.parametrize(
    "line",
    [
        f"us.sasl.jaas.config = {JAAS.format(REFERENCE)}",
        f"us.ssl.keystore.password = {REFERENCE}",
        "us.ssl.key.password =",
    ],
)
def test_a_reference_is_no_password(line: str) -> None:
    spec = {"properties": with_line(line)}
    assert [flow.name for flow in read_mirror(spec["properties"], spec, MIRROR_KEY).config.flows] == ["us->eu"]


def test_no_reference_is_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN_OF_THE_OPERATOR", "eyJhbGciOi")
    text = PROPERTIES + (
        "config.providers = env\nconfig.providers.env.class = EnvVarConfigProvider\n"
        "us->eu.topics.exclude = ([${env:TOKEN_OF_THE_OPERATOR}\n"
    )
    with_warnings = read_mirror(text, {"properties": text}, MIRROR_KEY)
    assert "eyJhbGciOi" not in repr(with_warnings)


def test_connectors_are_no_mirror() -> None:
    text = "name = a\nconnector.class = org.apache.kafka.connect.mirror.MirrorSourceConnector\n"
    with pytest.raises(ConfigError, match="has connectors"):
        read_mirror(text, {"properties": text}, MIRROR_KEY)


def test_the_pages_mirrors_are_read() -> None:
    """The two forms that the page shows whole, with the Secrets that they name."""
    blocks = re.findall(r"^```yaml\n(apiVersion: sparkmirror.*?)^```", PAGE.read_text(), re.M | re.S)
    specs = [yaml.safe_load(block)["spec"] for block in blocks]
    whole = [spec for spec in specs if "propertiesFrom" not in spec]
    values: dict[str, bytes] = {"password": b"hush", "ca.crt": b"x"}
    for spec in whole:
        contents = dict.fromkeys(named_secrets(spec, "kafka"), values)
        (flow,) = read_mirror(file_text(spec, MIRROR_KEY, contents), spec, MIRROR_KEY).config.flows
        assert (flow.name, flow.topics[0]) == ("primary->backup", "orders.*")
        assert "/etc/sparkmirror/secrets/primary-user:password" in flow.source.sasl.jaas_config.get_secret_value()
    assert ["properties" in spec for spec in whole] == [True, False]
