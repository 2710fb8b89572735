"""Advice about keys, followed: it leads to a key that counts, and never in a circle."""

from __future__ import annotations

import re

import pytest

from sparkmirror.config import known_keys
from sparkmirror.config.advice import Advisor, counting_prefixes, of_no_client
from sparkmirror.config.duty_settings import DUTY_SETTINGS
from sparkmirror.config.entries import Entry
from sparkmirror.config.scopes import Scopes
from sparkmirror.config.setting import ADMIN_PLACES
from sparkmirror.config.settings import (
    ADMIN_SETTINGS,
    ENABLED,
    FETCH_SETTINGS,
    FLOW_SETTINGS,
    LOSS_SETTINGS,
    PRODUCE_SETTINGS,
    SOURCE_SERVERS,
)

_SETTINGS = (*FLOW_SETTINGS, *DUTY_SETTINGS, *LOSS_SETTINGS, *FETCH_SETTINGS, *PRODUCE_SETTINGS, ENABLED)
_COUNTS = {key for setting in (*_SETTINGS, SOURCE_SERVERS) for key in setting.place.keys(setting.name, "us", "eu")}
_COUNTS |= {
    key for setting in ADMIN_SETTINGS for place in ADMIN_PLACES.values() for key in place.keys(setting.name, "us", "eu")
}
_NAMES = sorted(
    {setting.name for setting in _SETTINGS}
    | {*known_keys.CLIENT, *known_keys.CONNECTOR, *known_keys.CONNECTOR_BASE, *known_keys.CONNECT, "clusters"}
)
_PREFIXES = ["", "us.", "eu.", "us->eu.", *known_keys.ROLES, *(f"us->eu.{role}" for role in known_keys.ROLES)]
_PREFIXES += ["us.consumer.", "us.producer.", "us.admin.", "eu.consumer.", "eu.producer.", "eu.admin."]
_ADVISED = re.compile(r"(?:; write |did you mean )(\S+?)(?:\?$| or (\S+)$|$)")


@pytest.mark.parametrize("prefix", _PREFIXES)
def test_advice_leads_somewhere(prefix: str) -> None:
    """Every name that Kafka knows, in every place where it may stand: what is advised counts."""
    scopes = Scopes(("us", "eu"), [("us", "eu")])
    advisor = Advisor(scopes, {})
    astray = []
    for key in (f"{prefix}{name}" for name in _NAMES if not name.startswith(("ssl.", "sasl.", "security."))):
        split = scopes.split(Entry(key=key, value="7", where="mm2.properties"))
        text = advisor.advise(split) if split is not None and key not in _COUNTS else None
        match = _ADVISED.search(text or "")
        keys = [one for one in match.groups() if one] if match else []
        astray += [(key, one) for one in keys if one not in _COUNTS and "<" not in one]
    assert astray == []


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("receive.buffer.bytes", "write consumer."),
        ("max.partition.fetch.bytes", "write consumer."),
        ("send.buffer.bytes", "write producer.override."),
        ("client.id", "write consumer.client.id or producer.override.client.id"),
        ("max.poll.records", "take it out: batches are copied as they are at the source"),
        ("config.storage.replication.factor", "take it out: it is for Connect's workers, which stand at the target"),
        ("offset.storage.topic", "take it out: it is for Connect's workers"),
        ("message.max.bytes", "take it out: no client has such a setting"),
    ],
)
def test_what_a_clusters_own_keys_should_be(name: str, says: str) -> None:
    """As a Strimzi resource's `config` of a source, and kits' connectors, have them."""
    assert says in of_no_client("source.cluster.", name)
    for prefix in counting_prefixes(name):
        assert prefix in says
