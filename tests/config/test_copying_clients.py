"""Settings of the clients that copy, apart from those of the rest: `consumer.`, `producer.` and what stands above."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sparkmirror.config import MirrorConfig

Load = Callable[..., MirrorConfig]


@pytest.mark.parametrize(
    ("lines", "rest", "copier"),
    [
        ("us.consumer.security.protocol = SSL", "PLAINTEXT", "SSL"),
        ("us.security.protocol = SSL\nus.consumer.security.protocol = PLAINTEXT", "SSL", "PLAINTEXT"),
        ("us.admin.security.protocol = SSL", "SSL", "PLAINTEXT"),
        ("us.admin.security.protocol = SSL\nus.consumer.security.protocol = SSL", "SSL", "SSL"),
        (
            "us->eu.source.consumer.security.protocol = SSL\nus.consumer.security.protocol = PLAINTEXT",
            "PLAINTEXT",
            "SSL",
        ),
        ("us->eu.source.cluster.security.protocol = SSL", "SSL", "SSL"),
        ("us->eu.source.cluster.security.protocol = SSL\nus.security.protocol = PLAINTEXT", "PLAINTEXT", "PLAINTEXT"),
        ("us->eu.consumer.security.protocol = SSL", "PLAINTEXT", "SSL"),
    ],
)
def test_the_source_has_a_way_for_fetching(load: Load, lines: str, rest: str, copier: str) -> None:
    config = load(lines)
    assert config.warnings == ()
    source = config.flows[0].source
    assert (source.security_protocol, source.for_copying.security_protocol) == (rest, copier)
    assert config.flows[0].target.security_protocol == "PLAINTEXT"


@pytest.mark.parametrize(
    ("lines", "rest", "copier"),
    [
        ("eu.producer.security.protocol = SSL", "PLAINTEXT", "SSL"),
        ("eu.security.protocol = SSL\nus->eu.producer.override.security.protocol = PLAINTEXT", "SSL", "PLAINTEXT"),
        ("us->eu.target.admin.security.protocol = SSL", "SSL", "PLAINTEXT"),
    ],
)
def test_the_target_has_a_way_for_producing(load: Load, lines: str, rest: str, copier: str) -> None:
    target = load(lines).flows[0].target
    assert (target.security_protocol, target.for_copying.security_protocol) == (rest, copier)


def test_what_only_the_copier_keeps_secret_is_kept(load: Load) -> None:
    config = load(
        "us.consumer.security.protocol = SASL_PLAINTEXT\nus.sasl.mechanism = SCRAM-SHA-256\n"
        "us.consumer.sasl.jaas.config = "
        'org.apache.kafka.common.security.scram.ScramLoginModule required username="mirror" password="hunter2";'
    )
    assert not config.flows[0].source.signs_in
    assert config.flows[0].has_secrets
    assert "hunter2" not in repr(config)
