"""What counts for each flow, where it comes from, and what must not be seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.config.effective import EffectiveValue
from sparkmirror.config.model import DEFAULT_CONFIG_EXCLUDE
from sparkmirror.config.properties import explain_mm2_properties

PASSWORD = "${env:PASSWORD}"
FILE = """\
clusters = us, eu
us.bootstrap.servers = us1:9092, us2:9092
eu.bootstrap.servers = eu1:9092
us->eu.enabled = true
tasks.max = 4
config.properties.exclude = +mine
eu.security.protocol = SSL
eu.ssl.key.password = hunter1
eu.ssl.truststore.certificates = hunter2
eu.ssl.keystore.password = ${env:PASSWORD}
client.rack = hunter4
us.consumer.client.rack = ${env:PASSWORD}
config.providers = env
config.providers.env.class = EnvVarConfigProvider
spark.authenticate.secret = hunter5
spark.ui.enabled = true
"""


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[tuple[str, str], EffectiveValue]:
    """By flow and key."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PASSWORD", "hunter3")
    Path("mm2.properties").write_text(FILE)
    overrides = {"us->eu.topics": "a", "spark.master": "local[4]"}
    _, found = explain_mm2_properties("mm2.properties", overrides=overrides)
    rows = {(row.flow, row.key): row for row in found}
    assert len(rows) == len(found)
    return rows


@pytest.mark.parametrize(
    ("flow", "key", "value", "where"),
    [
        ("us->eu", "us->eu.enabled", "true", "mm2.properties: us->eu.enabled"),
        ("us->eu", "us.bootstrap.servers", "us1:9092, us2:9092", "mm2.properties: us.bootstrap.servers"),
        ("us->eu", "tasks.max", "4", "mm2.properties: tasks.max"),
        ("us->eu", "replication.factor", "2", "default"),
        (
            "us->eu",
            "config.properties.exclude",
            ", ".join([*DEFAULT_CONFIG_EXCLUDE, "mine"]),
            "mm2.properties: config.properties.exclude",
        ),
        ("us->eu", "topics", "a", "command line: us->eu.topics"),
        ("us->eu", "groups.exclude", "console-consumer-.*, connect-.*, __.*", "default"),
        ("us->eu", "sync.group.offsets.enabled", "false", "default"),
        ("us->eu", "eu.ssl.key.password", "********", "mm2.properties: eu.ssl.key.password"),
        ("us->eu", "eu.ssl.keystore.key", "", "default"),
        (
            "us->eu",
            "eu.ssl.keystore.password",
            "********",
            f"mm2.properties: eu.ssl.keystore.password = {PASSWORD}",
        ),
        ("us->eu", "us.consumer.client.rack", "********", f"mm2.properties: us.consumer.client.rack = {PASSWORD}"),
        ("eu->us", "eu->us.enabled", "false", "default"),
        ("eu->us", "emit.heartbeats.enabled", "true", "default"),
        ("*", "spark.master", "local[4]", "command line: spark.master"),
        ("*", "spark.ui.enabled", "true", "mm2.properties: spark.ui.enabled"),
        ("*", "spark.authenticate.secret", "********", "mm2.properties: spark.authenticate.secret"),
    ],
)
def test_value_and_where_it_comes_from(
    rows: dict[tuple[str, str], EffectiveValue], flow: str, key: str, value: str, where: str
) -> None:
    assert rows[flow, key] == EffectiveValue(flow=flow, key=key, value=value, where=where)


def test_no_secret_is_shown(rows: dict[tuple[str, str], EffectiveValue]) -> None:
    assert "hunter" not in str(rows)


def test_a_pair_that_copies_nothing_shows_only_what_it_has(rows: dict[tuple[str, str], EffectiveValue]) -> None:
    assert not {key for flow, key in rows if flow == "eu->us"} & {"topics", "groups", "eu.bootstrap.servers"}
