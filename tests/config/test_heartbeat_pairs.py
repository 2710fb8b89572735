"""Which pairs send heartbeats, and into which clusters: MirrorMaker 2's clusterPairs (`mm2.md` section 1.6)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sparkmirror.config import MirrorConfig
from sparkmirror.errors import ConfigError

Load = Callable[..., MirrorConfig]


def start(clusters: str) -> str:
    return f"clusters = {clusters}\nbootstrap.servers = anywhere:9092\n"


def beats(config: MirrorConfig) -> set[str]:
    return {beat.name for beat in config.beats}


def everyone(config: MirrorConfig) -> set[str]:
    """What MirrorMaker 2 calls the cluster pairs."""
    return {flow.name for flow in config.flows} | beats(config)


def test_all_pairs_by_default(load: Load) -> None:
    config = load("a->b.enabled = true", start=start("a, b, c"))
    assert len(everyone(config)) == 6
    assert beats(config) == everyone(config) - {"a->b"}
    assert config.warnings == ()


def test_none_where_they_are_switched_off(load: Load) -> None:
    config = load("a->b.enabled = true\nemit.heartbeats.enabled = false", start=start("a, b, c"))
    assert everyone(config) == {"a->b"}


def test_two_switched_off(load: Load) -> None:
    lines = "b->a.enabled = true\na->b.emit.heartbeats.enabled = false\na->c.emit.heartbeats.enabled = false"
    assert len(everyone(load(lines, start=start("a, b, c")))) == 4


def test_enabled_flows_only(load: Load) -> None:
    lines = "\n".join([*(f"a->{one}.enabled = true" for one in "bcd"), "a->e.enabled=false\na->f.enabled=false"])
    config = load(lines + "\nemit.heartbeats.enabled = false", start=start("a, b, c, d, e, f"))
    assert everyone(config) == {"a->b", "a->c", "a->d"}
    assert config.beats == ()


def test_a_pairs_own_key_beats_the_files(load: Load) -> None:
    lines = (
        "emit.heartbeats.enabled = false\ncentral->one.enabled = true\ncentral->two.enabled = true\n"
        "beats->central.emit.heartbeats.enabled = true"
    )
    config = load(lines, start=start("central, one, two, beats"))
    assert {flow.name for flow in config.flows} == {"central->one", "central->two"}
    assert beats(config) == {"beats->central"}
    lines = "us->eu.emit.heartbeats.enabled = true\neu->us.emit.heartbeats.enabled = false"
    assert beats(load(lines)) == set()


def test_chosen_targets(load: Load) -> None:
    config = load("a->b.enabled = true", start=start("a, b, c"), clusters=("b",))
    assert beats(config) == {"c->b"}


def test_a_beat_has_what_it_needs(load: Load) -> None:
    lines = (
        "eu->us.emit.heartbeats.interval.seconds = 5\nheartbeats.topic.replication.factor = 1\n"
        "us.security.protocol = SSL\nus.ssl.key.password = x\nreplication.policy.separator = _\n"
    )
    (beat,) = load(lines).beats
    assert (beat.source.alias, beat.target.alias) == ("eu", "us")
    assert beat.target.bootstrap_servers == ("us1:9092",)
    assert beat.target.ssl.key_password.get_secret_value() == "x"
    assert beat.heartbeat.emit_heartbeats_interval_seconds == 5
    assert beat.heartbeat.heartbeats_topic_replication_factor == 1
    assert beat.replication_policy_separator == "_"


def test_a_cluster_that_no_flow_uses_may_lack_brokers(load: Load) -> None:
    config = load("clusters = us, eu, asia")
    assert beats(config) == {"eu->us", "asia->us", "asia->eu"}, "a beat needs no brokers of its source"
    (warning,) = (text for text in config.warnings if "set more than once" not in text)
    assert "asia.bootstrap.servers: is missing" in warning
    assert warning.endswith("until then no heartbeats are sent into asia")


def test_but_not_where_its_heartbeats_are_asked_for(load: Load) -> None:
    with pytest.raises(ConfigError, match=r"asia\.bootstrap\.servers: is missing"):
        load("clusters = us, eu, asia\nus->asia.emit.heartbeats.enabled = true")


def test_a_cluster_that_no_flow_uses_may_be_beyond_us(load: Load) -> None:
    lines = "clusters = us, eu, asia\nasia.bootstrap.servers = x:1\nasia.security.protocol = SASL_SSL"
    config = load(lines)
    assert beats(config) == {"eu->us", "asia->us", "asia->eu"}
    assert any("no heartbeats are sent into asia" in text for text in config.warnings)


ALONE = "clusters = us, eu\nbootstrap.servers = x:1\n"


def test_nothing_but_heartbeats_must_be_asked_for(load: Load) -> None:
    """MirrorMaker 2 would start for the default alone; a file without flows is a mistake more often."""
    for lines in ("", "emit.heartbeats.enabled = true", "us->eu.emit.heartbeats.enabled = false"):
        with pytest.raises(ConfigError, match="no flow is enabled"):
            load(lines, start=ALONE)
    config = load("us->eu.emit.heartbeats.enabled = true", start=ALONE)
    assert config.flows == ()
    assert beats(config) == {"us->eu", "eu->us"}
    with pytest.raises(ConfigError, match="no enabled flow leads into us"):
        load(clusters=("us",))
    assert beats(load("eu->us.emit.heartbeats.enabled = true", clusters=("us",))) == {"eu->us"}


def test_wrong_values_are_seen(load: Load) -> None:
    """For what is a flow they stop the run; else MirrorMaker 2 reads all but `true` as false."""
    with pytest.raises(ConfigError, match="must be true or false"):
        load("us->eu.emit.heartbeats.enabled = yes")
    config = load("eu->us.emit.heartbeats.enabled = yes")
    assert config.beats == ()
    assert "'yes' is read as false, as MirrorMaker 2 reads it" in config.warnings[0]


def test_keys_of_a_beat_do_not_hide_misplaced_ones(load: Load) -> None:
    (warning,) = load("us.offset.flush.interval.ms = 1\neu->us.topics = x").warnings
    assert "write eu.offset.flush.interval.ms" in warning


def test_their_lease_has_the_session_timeout_of_the_file(load: Load) -> None:
    """As `Beats` gives it to its lease; the worker's key is the target's."""
    lines = "a->b.enabled = true\na.session.timeout.ms = 7000\nb.session.timeout.ms = 8000"
    config = load(lines, start=start("a, b"))
    assert {flow.name: flow.group_session_timeout_ms for flow in (*config.flows, *config.beats)} == {
        "a->b": 8000,
        "b->a": 7000,
    }
    assert config.warnings == ()
