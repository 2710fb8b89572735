"""A file with several mistakes: each is told, once, in the order of the file."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sparkmirror.config import MirrorConfig
from sparkmirror.errors import ConfigError, ConfigErrors

Load = Callable[..., MirrorConfig]


def mistakes(load: Load, *lines: str, **options: object) -> list[tuple[str | None, str]]:
    """Keys and reasons; each one names the line that its key is in."""
    with pytest.raises(ConfigError) as caught:
        load("\n".join(lines), **options)
    assert str(caught.value).splitlines() == [str(mistake) for mistake in caught.value.mistakes]
    return [(mistake.key, mistake.reason) for mistake in caught.value.mistakes]


def keys(load: Load, *lines: str, **options: object) -> list[str | None]:
    return [key for key, _ in mistakes(load, *lines, **options)]


@pytest.mark.parametrize(
    ("lines", "blamed"),
    [
        (
            ["us.bootstrap.servers = a", "tasks.max = many", "replication.factor = 0"],
            ["us.bootstrap.servers", "tasks.max", "replication.factor"],
        ),
        (["transforms = x", "topics = a,,b"], ["transforms.x.type", "topics"]),
        (
            ["us.security.protocol = SASL_SSL", "us.ssl.truststore.type = PKCS", "us.sasl.mechanism = SCRAM"],
            ["us.ssl.truststore.type", "us.sasl.mechanism"],
        ),
        (
            ["us->eu.source.producer.security.protocol = SSL", "eu.exactly.once.source.support = yes"],
            ["us->eu.source.producer.security.protocol", "eu.exactly.once.source.support"],
        ),
        (["config.providers = a, b", "tasks.max = 0"], ["config.providers", "config.providers", "tasks.max"]),
        (["eu->us.emit.heartbeats.enabled = true", "us.security.protocol = X", "tasks.max = 0"], None),
        (["clusters = us, e/u", "tasks.max = x"], ["clusters", "tasks.max"]),
        (["us->eu.enabled = false", "tasks.max = x"], [None, "tasks.max"]),
        (["spark.a = ${env:NONE}", "config.providers = env", "groups = ,"], ["config.providers", "groups"]),
    ],
)
def test_all_are_told(load: Load, lines: list[str], blamed: list[str] | None) -> None:
    expected = ["us.security.protocol", "tasks.max"] if blamed is None else blamed
    assert keys(load, *lines) == expected


def test_several_are_an_error_of_their_own(load: Load) -> None:
    with pytest.raises(ConfigErrors) as caught:
        load("tasks.max = x\ngroups = ,")
    assert caught.value.exit_code == 2
    assert (caught.value.key, caught.value.origin) == ("tasks.max", caught.value.mistakes[0].origin)
    first, second = str(caught.value).splitlines()
    assert ", line 5: tasks.max: 'x' is not allowed" in first
    assert ", line 6: groups: has an empty item" in second


def test_what_flows_share_is_told_once(load: Load) -> None:
    more = ["eu->us.enabled = true", "tasks.max = x", "us.bootstrap.servers = u", "eu->us.groups = ,"]
    assert keys(load, *more) == ["us.bootstrap.servers", "tasks.max", "eu->us.groups"]


def test_each_flow_has_its_own(load: Load) -> None:
    more = ["eu->us.enabled = true", "eu->us.tasks.max = x", "us->eu.tasks.max = y"]
    assert keys(load, *more) == ["eu->us.tasks.max", "us->eu.tasks.max"]


def test_a_login_is_looked_at_once_its_settings_are_right(load: Load) -> None:
    """A second error about what is not there would be about the first one's consequence."""
    sasl = ["us.security.protocol = SASL_PLAINTEXT", "us.sasl.mechanism = PLAIN"]
    assert keys(load, *sasl) == ["us.sasl.jaas.config"]
    assert keys(load, *sasl, "us.sasl.login.read.timeout.ms = 0") == ["us.sasl.login.read.timeout.ms"]


def test_missing_brokers_and_the_rest(load: Load) -> None:
    start = "clusters = us, eu\nus->eu.enabled = true\n"
    assert keys(load, "tasks.max = 0", start=start) == ["us.bootstrap.servers", "eu.bootstrap.servers", "tasks.max"]


def test_no_clusters_and_the_rest(load: Load) -> None:
    start = "us.bootstrap.servers = u:1\neu.bootstrap.servers = e:1\nus->eu.enabled = true\n"
    assert keys(load, "tasks.max = 0", start=start) == ["clusters", "tasks.max"]
    assert keys(load, "", start="tasks.max = 0") == ["clusters"]


def test_the_command_line_and_the_file(load: Load) -> None:
    assert keys(load, "tasks.max = 0", clusters=["ue"]) == [None, "tasks.max"]
    assert keys(load, "tasks.max = 0", overrides={"groups": ","}) == ["tasks.max", "groups"]


def test_a_broken_provider_is_one_mistake(load: Load) -> None:
    """Not one more for each reference to it."""
    lines = ["config.providers = env", "topics = ${env:TOPICS}", "us.sasl.jaas.config = ${env:X}", "tasks.max = 0"]
    assert keys(load, *lines) == ["config.providers", "tasks.max"]
