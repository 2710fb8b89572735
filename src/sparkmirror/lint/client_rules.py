"""Rules about clients' settings: the client that a key reaches, and its cost.

Each rule is one small function.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from sparkmirror.config.advice import counting_prefixes
from sparkmirror.config.entries import Entry
from sparkmirror.config.formats.connect_files import Connector, ConnectorRole
from sparkmirror.config.formats.merge import SECURITY, role_of
from sparkmirror.lint.findings import LintRule, LintSeverity, Spot, at
from sparkmirror.lint.subject import Subject

_SIZES = ("batch.size", "max.request.size", "buffer.memory", "receive.buffer.bytes", "send.buffer.bytes")
_NOT_COPYING = ("source.cluster.", "target.cluster.", "producer.", "source.producer.", "target.producer.")
"""Prefixes of a connector's keys that do not reach the clients that copy records."""
_OF_BOTH = frozenset({"receive.buffer.bytes"})
"""Consumer settings that producers have, too."""
_WORKERS_OTHERS = ("producer.", "consumer.", "admin.")
_STORES = {
    "brokers that ask for a certificate refuse the workers": (
        "ssl.keystore.location",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
    ),
    "brokers with a certificate of your own authority are not trusted": (
        "ssl.truststore.location",
        "ssl.truststore.certificates",
    ),
}
"""Settings that give a client a store, by the consequence of a missing store."""
_CODECS = frozenset({"gzip", "snappy", "lz4", "zstd"})


class Astray(NamedTuple):
    """Setting that doesn't reach its client because of a wrong prefix."""

    entry: Entry
    name: str
    right: tuple[str, ...]
    """Keys that would reach the client."""
    stated: str
    """Right key that the file has already; empty: none."""


def wrong_prefix(subject: Subject) -> Iterator[Spot]:
    """Yield settings with a wrong prefix, unless the file has the right key as well."""
    for setting in astray(subject):
        if not setting.stated:
            places = " or ".join(key.removesuffix(setting.name) for key in setting.right)
            yield at(setting.entry, fix=f"write {places} before the name, instead of the present beginning")


def consumer_key(subject: Subject) -> Iterator[Spot]:
    sources = {flow.source.alias for flow in subject.flows}
    source = min(sources) if len(sources) == 1 else "<source>"
    for entry in subject.entries():
        _, producer, name = entry.key.rpartition("producer.")
        name = name.removeprefix("override.")
        if producer and counting_prefixes(name) == ("consumer.",) and name not in _OF_BOTH:
            place = "consumer." if subject.reading.connect else f"{source}.consumer."
            yield at(entry, fix=f"write {place} before the name, instead of the present beginning")


def broker_key(subject: Subject) -> Iterator[Spot]:
    for entry in subject.named("message.max.bytes"):
        yield at(entry)


def digit_lost(subject: Subject) -> Iterator[Spot]:
    for entry in subject.named(*_SIZES):
        text = entry.value.strip()
        if not text.isdigit() or _round(int(text)):
            continue
        for last in range(10):
            more = int(f"{text}{last}")
            if _round(more):
                yield at(entry, f"{text}, probably {more}")


def _round(size: int) -> bool:
    """Tell whether a size is a power of two from 16 KiB on."""
    return size >= 1 << 14 and size & (size - 1) == 0


def recompresses(subject: Subject) -> Iterator[Spot]:
    for flow in subject.flows:
        if flow.copies and flow.produce.compression_type in _CODECS:
            entry = _codec_entry(subject, flow.source.alias, flow.target.alias) or subject.flow_spot(flow)
            detail = f"{flow.name} compresses with {flow.produce.compression_type}"
            yield at(entry, detail)


def _codec_entry(subject: Subject, source: str, target: str) -> Entry | None:
    entries = {entry.key: entry for entry in subject.reading.entries}
    keys = (f"{source}->{target}.producer.override.compression.type", f"{target}.producer.compression.type")
    return next((entries[key] for key in keys if key in entries), None)


def worker_without_stores(subject: Subject) -> Iterator[Spot]:
    """Yield TLS protocols of workers whose own clients have no store.

    Stores for the worker's producers or its connectors don't reach the worker's own clients.
    """
    for cluster in subject.reading.connect:
        worker = cluster.worker.settings if cluster.worker is not None else {}
        protocol = worker.get("security.protocol")
        if protocol is None or not protocol.value.strip().upper().endswith("SSL"):
            continue
        for store, settings in _STORES.items():
            own = any(name in worker for name in settings)
            others = [f"{role}{name}" for role in _WORKERS_OTHERS for name in settings if f"{role}{name}" in worker]
            others += [
                key for connector in cluster.connectors for key in _stores_at_target(connector, worker, settings)
            ]
            if others and not own:
                yield at(protocol, f"{others[0]} has one", key=settings[0], fix=f"write {settings[0]} as well: {store}")


def _stores_at_target(connector: Connector, worker: Mapping[str, Entry], settings: tuple[str, ...]) -> list[str]:
    """Return the connector's store keys for the workers' own cluster.

    Empty if the connector's target is a different cluster.
    """
    brokers = worker.get("bootstrap.servers")
    if brokers is None or connector.text("target.cluster.bootstrap.servers") != brokers.value.strip():
        return []
    keys = (f"target.cluster.{name}" for name in settings)
    return [key for key in keys if key in connector.settings]


def astray(subject: Subject) -> Iterator[Astray]:
    """Yield known client settings with a prefix from which no client reads."""
    if not subject.reading.connect:
        yield from _astray_in_properties(subject)
    for _, connectors in subject.connectors():
        if ConnectorRole.SOURCE in connectors:
            yield from _astray_in_connector(connectors[ConnectorRole.SOURCE])


def _astray_in_connector(connector: Connector) -> Iterator[Astray]:
    for key, entry in connector.settings.items():
        role = role_of(key)
        name = key.removeprefix(role)
        if role not in _NOT_COPYING or name == "bootstrap.servers" or SECURITY.fullmatch(name):
            continue
        right = tuple(prefix + name for prefix in counting_prefixes(name))
        if not right or ("producer." in role and right == (f"consumer.{name}",)):
            continue
        stated = (known for known in (*right, f"source.consumer.{name}") if known in connector.settings)
        yield Astray(entry, name, right, next(stated, ""))


def _astray_in_properties(subject: Subject) -> Iterator[Astray]:
    """Yield settings with a flow's prefix `producer.` that are meant for copies.

    The prefix reaches the offset sync producer only.
    """
    keys = {entry.key for entry in subject.reading.entries}
    for entry in subject.reading.entries:
        flow, arrow, rest = entry.key.partition("->")
        target, _, setting = rest.partition(".")
        name = setting.removeprefix("producer.")
        if not arrow or name == setting or name.startswith("override."):
            continue
        if "producer.override." in counting_prefixes(name):
            right = (f"{flow}->{target}.producer.override.{name}", f"{target}.producer.{name}")
            yield Astray(entry, name, right, next((key for key in right if key in keys), ""))


_WARNING = LintSeverity.WARNING

CLIENT_RULES: tuple[LintRule[Subject], ...] = (
    LintRule(
        name="worker-without-stores",
        severity=_WARNING,
        what="Connect's workers speak TLS, and have no store of their own for it",
        effect="they can't reach the topics that they keep connectors in, and never start; nor does sparkmirror serve",
        fix="write the worker's ssl. settings without producer. before them as well",
        look=worker_without_stores,
    ),
    LintRule(
        name="wrong-prefix",
        severity=_WARNING,
        what="does not reach the client that it is meant for",
        effect="sizes and codecs stay at their defaults, and large messages stop MirrorMaker 2's task",
        fix="write producer.override. before the name, or consumer. where a consumer knows it (in mm2.properties"
        " <target>.producer. and <source>.consumer.)",
        look=wrong_prefix,
    ),
    LintRule(
        name="broker-key",
        severity=_WARNING,
        what="is a broker's setting; clients don't know it",
        effect="it has no effect: large messages are refused all the same",
        fix="take it out; the topic's max.message.bytes counts, and producer.override.max.request.size",
        look=broker_key,
    ),
    LintRule(
        name="consumer-key",
        severity=_WARNING,
        what="is a consumer's setting, said to a producer",
        effect="it has no effect",
        fix="write consumer. before the name (in mm2.properties <source>.consumer.)",
        look=consumer_key,
    ),
    LintRule(
        name="recompresses",
        severity=_WARNING,
        what="every batch of another codec is unpacked and packed again",
        effect="it costs CPU, and the copy is not the source's bytes any more",
        fix="take it out: then batches travel as they are",
        look=recompresses,
    ),
    LintRule(
        name="digit-lost",
        severity=_WARNING,
        what="looks as if its last digit was lost",
        effect="a tenth of the intended value, and slower by as much",
        fix="write the whole number, or one that is not so near to a power of two",
        look=digit_lost,
    ),
)
