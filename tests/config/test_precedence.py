"""Which of several keys counts, for every setting, against the table of `mm2.md` section 1.6."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkmirror.config import ClusterConfig
from sparkmirror.config.duty_settings import DUTY_SETTINGS
from sparkmirror.config.effective import EffectiveValue
from sparkmirror.config.properties import explain_mm2_properties
from sparkmirror.config.setting import Setting
from sparkmirror.config.settings import FETCH_SETTINGS, FLOW_SETTINGS, LOSS_SETTINGS, PRODUCE_SETTINGS
from sparkmirror.values import Boolean, Choice, ClassName, Integer

BASE = "clusters = us, eu\nus.bootstrap.servers = u:1\neu.bootstrap.servers = e:1\nus->eu.enabled = true\n"
CONNECTOR = ("us->eu.{}", "{}")
WORKER = ("eu.{}",)
STORAGE = ("{}", "eu.{}")
CONSUMER = ("us->eu.source.consumer.{}", "us.consumer.{}", "us->eu.consumer.{}")
PRODUCER = ("us->eu.producer.override.{}", "eu.producer.{}")
EXCEPTIONS = {
    "use.defaults.from": ("us->eu.{}",),
    "session.timeout.ms": WORKER,
    "offset.flush.interval.ms": WORKER,
    "offset.storage.topic": STORAGE,
    "offset.storage.partitions": STORAGE,
    "offset.storage.replication.factor": STORAGE,
}
PLACES: dict[str, Sequence[str]] = {
    **{setting.name: CONNECTOR for setting in (*FLOW_SETTINGS, *DUTY_SETTINGS, *LOSS_SETTINGS)},
    **{setting.name: CONSUMER for setting in FETCH_SETTINGS},
    **EXCEPTIONS,
}
ALL = [(one, PLACES[one.name]) for one in (*FLOW_SETTINGS, *DUTY_SETTINGS, *LOSS_SETTINGS, *FETCH_SETTINGS)]
ALL += [(setting, PRODUCER) for setting in PRODUCE_SETTINGS]


def values(setting: Setting) -> st.SearchStrategy[str]:
    match setting.kind:
        case Boolean():
            return st.sampled_from(["true", "false"])
        case Choice(options=options):
            return st.sampled_from(options)
        case Integer(low=low, high=high):
            return st.integers(low, min(high, low + 1000)).map(str)
        case ClassName(known=known):
            return st.sampled_from([*known, "my.module:Mine"])
    return st.text("abc", min_size=1, max_size=3)


def read(lines: Sequence[str]) -> dict[str, EffectiveValue]:
    """What counts for the flow, by the setting's name behind any prefix."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "mm2.properties")
        path.write_text(BASE + "\n".join(lines))
        _, found = explain_mm2_properties(str(path))
    return {value.key: value for value in found if value.flow == "us->eu"}


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_strongest_key_counts_wherever_it_stands(data: st.DataObject) -> None:
    setting, places = data.draw(st.sampled_from(ALL), "setting")
    given_at = data.draw(st.sets(st.sampled_from(range(len(places)))), "places")
    written = {place: data.draw(values(setting)) for place in given_at}
    order = data.draw(st.permutations(sorted(given_at)), "order")
    found = read([f"{places[place].format(setting.name)} = {written[place]}" for place in order])
    (value,) = (one for key, one in found.items() if key in {place.format(setting.name) for place in places})
    if not written:
        assert value.where == "default"
        return
    strongest = min(written)
    assert value.value == written[strongest]
    assert value.where.endswith(f"mm2.properties: {places[strongest].format(setting.name)}")


NOWHERE = {
    CONNECTOR: ("us.{}", "eu.{}", "source.consumer.{}"),
    CONSUMER: ("{}", "consumer.{}", "source.consumer.{}", "eu.consumer.{}", "us.{}", "eu->us.source.consumer.{}"),
    PRODUCER: ("{}", "producer.{}", "producer.override.{}", "us.producer.{}", "us->eu.producer.{}", "eu.{}"),
    WORKER: ("{}", "us.{}", "us->eu.{}"),
    STORAGE: ("us.{}", "us->eu.{}"),
}


@pytest.mark.parametrize("setting", ALL, ids=lambda pair: pair[0].name)
def test_no_other_key_counts(setting: tuple[Setting, Sequence[str]]) -> None:
    one, places = setting
    lines = [f"{place.format(one.name)} = true" for place in NOWHERE.get(tuple(places), ("{}", "us.{}"))]
    assert {value.where for value in read(lines).values() if value.key.endswith(one.name)} == {"default"}


def test_clients_of_either_cluster() -> None:
    """`clusterProps`: a cluster's own key, else the file's."""
    found = read(["security.protocol = SSL", "eu.security.protocol = PLAINTEXT", "ssl.key.password = x"])
    assert found["us.security.protocol"].value == "SSL"
    assert found["us.security.protocol"].where.endswith(": security.protocol")
    assert found["eu.security.protocol"].value == ClusterConfig.model_fields["security_protocol"].default
    assert found["us.ssl.key.password"].value == "********"
    assert "eu.ssl.key.password" not in found
