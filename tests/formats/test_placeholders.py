"""Placeholders of every usual spelling, and real values that look like some."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.config.formats.placeholders import is_placeholder

SERVERS, TOPICS, PASSWORD = "us.bootstrap.servers", "us->eu.topics", "us.ssl.truststore.password"
JAAS = "source.cluster.sasl.jaas.config"
SPELLINGS = (
    *(
        "{SOURCE_BROKERS}",
        "{SOURCE BROKERS}",
        "<SOURCE_BROKERS>",
        "<your brokers>",
        "${SOURCE_BROKERS}",
        "${source.brokers}",
    ),
    *(
        "$SOURCE_BROKERS",
        "%SOURCE_BROKERS%",
        "{{ source_brokers }}",
        "{{source}}",
        "@SOURCE_BROKERS@",
        "$(SOURCE_BROKERS)",
    ),
    *("__SOURCE_BROKERS__", "CHANGEME", "changeme", "change-me", "CHANGE_ME", "YOUR_BROKERS", "your-brokers", "TODO"),
    *("${BROKERS:-localhost:9092}",),
)


@pytest.mark.parametrize("text", SPELLINGS)
@pytest.mark.parametrize("key", [SERVERS, "spec.target.bootstrapServers", PASSWORD, "us.client.id", JAAS])
def test_a_whole_value(key: str, text: str) -> None:
    assert is_placeholder(key, text)
    assert is_placeholder(key, f" {text} ")


@pytest.mark.parametrize("text", SPELLINGS)
def test_an_option_of_a_login(text: str) -> None:
    for quote in ('"', "'"):
        module = f"a.B required username=me password={quote}{text}{quote};"
        assert is_placeholder(JAAS, module), module


@pytest.mark.parametrize(
    "text",
    [
        *("BROKERS", "SOURCE_BROKERS", "BOOTSTRAP_SERVERS", "BROKER1:9092,BROKER2:9092", "HOST:9092", "kafka:PORT"),
        *("b-1.<cluster>.kafka.us-east-1.amazonaws.com:9092", "b-1.{cluster}.amazonaws.com:9092", "b-1.example…:9092"),
        *("b-1...:9092", "a:9092,${SECOND}:9092", "your-broker:9092", "kafka.your-company.com:9092", "yourhost:9092"),
        *("b-1.xxxxxx.c1.kafka.amazonaws.com:9094", "xxx:9092", "%HOST%:9092", "kafka-{{ env }}:9092", "$HOST:9092"),
    ],
)
def test_brokers(text: str) -> None:
    assert is_placeholder(SERVERS, text)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("us.ssl.truststore.location", "/path/to/truststore.jks"),
        ("us.ssl.keystore.location", "/etc/${USER}/keystore.jks"),
        ("us.sasl.oauthbearer.token.endpoint.url", "https://<tenant>/token"),
        ("group.id", "GROUP"),
        ("us.client.id", "mm2-${HOSTNAME}"),
        (TOPICS, "<topics>"),
        (TOPICS, "orders,${TOPIC}"),
        (TOPICS, "${PREFIX}.*"),
        (TOPICS, "YOUR_TOPIC"),
        (TOPICS, "your-topic-1, your-topic-2"),
        (TOPICS, "{TOPICS}"),
        ("groups", "GROUP"),
        (JAAS, "a.B required username=USERNAME password=PASSWORD;"),
        (JAAS, 'a.B required username="USERNAME" password="PASSWORD";'),
        (JAAS, "${JAAS}"),
        (PASSWORD, "xxxxx"),
        (JAAS, 'a.B required password="<Secret me, key word: not known>";'),
    ],
)
def test_others(key: str, text: str) -> None:
    assert is_placeholder(key, text)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        # References to config providers, declared or not: whose they are is said elsewhere.
        (PASSWORD, "${file:/etc/kafka/secrets.properties:password}"),
        (SERVERS, "${env:BROKERS}"),
        (SERVERS, "${file:/x:a},${file:/x:b}"),
        ("us.ssl.truststore.location", "${dir:/mnt/secrets:truststore}"),
        (JAAS, 'a.B required username="u" password="${dir:/mnt:pw}";'),
        # Passwords are what they are.
        *(
            (PASSWORD, text)
            for text in ("{abc}", "a{B}c", "pa$$WORD", "${", "changeit", "password", "x", "xx", "%a%", "a<b>c")
        ),
        (JAAS, 'a.B required username="me" password="{abc}";'),
        (JAAS, 'a.B required username="me" password="x$NAME{A}%B%y";'),
        (JAAS, "software.amazon.msk.auth.iam.IAMLoginModule required;"),
        (JAAS, 'a.B required principal="kafka/_HOST@REALM" serviceName=kafka;'),
        # Regular expressions.
        *(
            (TOPICS, text)
            for text in ("orders.{2,3}", "^a$", "[A-Z]{3}", r"\p{Lu}+", "(?<n>a)b", "(?<=a)b", "xxx", "a|b$")
        ),
        ("groups.exclude", "console-consumer-.*,connect-.*,__.*"),
        ("topics.exclude", r"mm2.*\.internal,.*\.replica,__consumer_offsets"),
        ("config.providers.env.param.allowlist.pattern", "^KAFKA_[A-Z]{1,9}$"),
        # Hosts.
        *((SERVERS, text) for text in ("kafka:9092", "[::1]:9092", "b-1.lab.c2.kafka.us-east-1.amazonaws.com:9098")),
        *(
            (SERVERS, text)
            for text in ("KAFKA01:9092", "exxxon.com:9092", "yours.net:9092", "my-cluster-kafka-bootstrap:9093")
        ),
        (SERVERS, "kafka.example.com:9092"),
        # Classes, Spark's own references, and templates of a policy of the user's own.
        ("replication.policy.class", "com.acme.Policies$ABC"),
        ("spark.driver.extraJavaOptions", "-Dx=${system:user.home}"),
        ("spark.local.dir", "${HOME}/x"),
        ("replication.policy.format", "{source}.{topic}"),
        ("clusters", "us, eu"),
        ("us->eu.enabled", "true"),
        ("replication.policy.separator", "__"),
        ("us.client.id", ""),
    ],
)
def test_real_values(key: str, text: str) -> None:
    assert not is_placeholder(key, text)


@given(st.text("abcdefghijkmnopqrstuvwz0123456789!#*+=~", min_size=1, max_size=30))
def test_no_password_of_letters_and_digits_is_one(text: str) -> None:
    if text not in ("todo", "tbd", "fixme") and not text.startswith(("change", "fill", "replace", "your")):
        assert not is_placeholder(PASSWORD, text)
