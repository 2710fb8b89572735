"""What of a configuration may be shown, and what it means when it comes back."""

from __future__ import annotations

import pytest

from sparkmirror.connect.masking import masked, unmasked

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required "


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("source.cluster.ssl.keystore.password", "${file:/run/secrets:keystore}"),
        ("sasl.jaas.config", SCRAM + 'username="ann" password="${env:PASSWORD}";'),
        ("target.cluster.sasl.jaas.config", "software.amazon.msk.auth.iam.IAMLoginModule required;"),
        (
            "target.cluster.sasl.jaas.config",
            'software.amazon.msk.auth.iam.IAMLoginModule required awsProfileName="dev";',
        ),
        ("sasl.jaas.config", "${file:/run/secrets:jaas}"),
        ("sasl.jaas.config", SCRAM + "username='ann'\n  password = ${env:PASSWORD} ;\n"),
        ("topics", "passwords"),
        ("key.converter", "org.apache.kafka.connect.converters.ByteArrayConverter"),
        ("sasl.oauthbearer.token.endpoint.url", "https://login.example"),
        ("ssl.truststore.location", "/tmp/trust.jks"),
        ("ssl.key.password", ""),
    ],
)
def test_shown(key: str, value: str) -> None:
    assert masked({key: value}) == {key: value}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("producer.override.ssl.key.password", "p"),
        ("source.cluster.ssl.keystore.key", "-----BEGIN PRIVATE KEY-----"),
        ("value.converter.basic.auth.user.info", "ann:p"),
        ("my.policy.aws.secret.access.key", "k"),
        ("my.filter.api.key", "k"),
        ("sasl.jaas.config", SCRAM + 'username="ann" password="p";'),
        ("sasl.jaas.config", SCRAM + "username='ann' password='p${env:REST}';"),
        ("source.cluster.sasl.jaas.config", "hunter2"),
        ("sasl.jaas.config", "hunter2;"),
        ("sasl.jaas.config", SCRAM + 'username="ann" password "hunter2";'),
        ("sasl.jaas.config", SCRAM + 'username="hunter2 no options'),
        ("sasl.jaas.config", SCRAM + 'username="ann" hunter2;'),
        ("sasl.jaas.config", SCRAM + 'username="ann"; // hunter2'),
        ("sasl.jaas.config", SCRAM + '/* hunter2 */ username="ann";'),
        ("sasl.jaas.config", SCRAM + 'password="hunter2" password="${env:PASSWORD}";'),
        ("sasl.jaas.config", SCRAM + "username=ann,password=hunter2;"),
        ("sasl.jaas.config", SCRAM + 'username="ann password=hunter2";'),
        ("sasl.jaas.config", SCRAM + 'username="ann"password="hunter2";'),
        ("sasl.jaas.config", SCRAM + 'pass-word="hunter2";'),
        ("sasl.jaas.config", SCRAM + "password=${env:PASSWORD}hunter2;"),
        ("sasl.jaas.config", SCRAM + 'username="ann"'),
        ("sasl.oauthbearer.client.credentials.client.secret", "p"),
        ("some.filter.api_token", "p"),
        ("ssl.key.password", "p${env:REST}"),
    ],
)
def test_hidden(key: str, value: str) -> None:
    assert masked({key: value}) == {key: "[hidden]"}


def test_what_was_shown_stands_for_what_is_stored() -> None:
    stored = {"ssl.key.password": "p", "topics": "a"}
    assert unmasked({**masked(stored), "topics": "b"}, stored) == {"ssl.key.password": "p", "topics": "b"}
    assert unmasked({"ssl.key.password": "q"}, stored) == {"ssl.key.password": "q"}
    with pytest.raises(ValueError, match=r"ssl\.keystore\.password is"):
        unmasked({"ssl.keystore.password": "[hidden]"}, stored)
