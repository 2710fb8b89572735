"""MirrorMaker 1's two files and its flags as one flow: what `kafka-mirror-maker.sh` of Kafka 2.8 takes.

Each key of the files becomes the key that says the same in MirrorMaker 2's file, and is read as such; messages name
it as it was written. Facts: `kafka.tools.MirrorMaker` of Kafka 2.8.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sparkmirror.config.entries import COMMAND_LINE, Entry, read_entries
from sparkmirror.config.model import LegacyConfig, MirrorConfig
from sparkmirror.config.properties import NOTHING, explain_entries
from sparkmirror.config.settings import CLUSTERS_KEY
from sparkmirror.errors import ConfigError

SOURCE, TARGET = "source", "target"
SAME_NAMES = "com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy"
"""Every topic keeps its name, also those that end as MirrorMaker 2's heartbeats do."""

METADATA_MAX_AGE_MS = 300_000
"""Kafka's default of `metadata.max.age.ms`: how often MirrorMaker 1 saw new topics and partitions."""

RESET = "latest"
"""Kafka's default of `auto.offset.reset`, which MirrorMaker 1 left alone; MirrorMaker 2's is `earliest`."""

_LONGEST_GROUP = 150
"""Characters of a group's id in the names of our topics, which may have 249."""

_SECURITY = ("security.protocol", "ssl.", "sasl.")
_PROVIDERS = "config.providers"

_FLOW = {
    CLUSTERS_KEY: f"{SOURCE}, {TARGET}",
    f"{SOURCE}->{TARGET}.enabled": "true",
    "replication.policy.class": SAME_NAMES,
    "topics.exclude": "",
    # As topics that a broker creates by itself have it.
    "replication.factor": "-1",
    "sync.topic.configs.enabled": "false",
    "sync.topic.acls.enabled": "false",
    "emit.heartbeats.enabled": "false",
    "heartbeats.replication.enabled": "false",
    "emit.checkpoints.enabled": "false",
    "emit.offset-syncs.enabled": "false",
}
"""What MirrorMaker 1 was, in MirrorMaker 2's words."""

_NO_EFFECT = {
    "client.id": "it gave its consumers ids made of group.id",
    "enable.auto.commit": "what was acknowledged is committed each --offset.commit.interval.ms",
    "auto.commit.interval.ms": "what was acknowledged is committed each --offset.commit.interval.ms",
}
"""Of the consumer's file: keys that say nothing here, and why."""


@dataclass(frozen=True, slots=True)
class LegacyOptions:
    """The flags, checked one by one; `include` as it was written."""

    consumer: str
    producer: str
    include: str
    num_streams: int = 1
    offset_commit_interval_ms: int = 60_000
    abort_on_send_failure: bool = True


@dataclass(frozen=True, slots=True)
class _Renamed(Entry):
    """An entry under another key than the one that was written; messages are for who wrote it."""

    def error(self, reason: str) -> ConfigError:
        return ConfigError(self._ours_out(reason), where=self.spot, key=self.written)

    def note(self, text: str) -> str:
        return f"{self.where}: {self.written}: {self._ours_out(text)}"

    def _ours_out(self, text: str) -> str:
        """Nobody who reads it has heard of the aliases."""
        return text.replace(f"{SOURCE}.consumer.", "").replace(f"{TARGET}.producer.", "")


def load_legacy(options: LegacyOptions, *, overrides: Mapping[str, str] = NOTHING) -> MirrorConfig:
    """The flow that the files and flags mean; raises `ConfigError`.

    Give it a name of its own with `named_after` before it runs: any number of such flows may lead into one cluster.
    """
    consumer, producer = read_entries(options.consumer), read_entries(options.producer)
    group = _required(consumer, "group.id", options.consumer, "the group under which MirrorMaker 1 committed")
    for entries, path in ((consumer, options.consumer), (producer, options.producer)):
        _required(entries, "bootstrap.servers", path, "host:9092")
    notes = [*_notes(consumer, _NO_EFFECT), *_notes(producer, {"producer.type": "no record waits for another one"})]
    entries = [
        *(Entry(key, value, COMMAND_LINE) for key, value in _FLOW.items()),
        _Renamed("topics", included(options.include), COMMAND_LINE, written="--include"),
        _Renamed("tasks.max", str(options.num_streams), COMMAND_LINE, written="--num.streams"),
        _Renamed(f"{SOURCE}.consumer.auto.offset.reset", RESET, options.consumer, written="auto.offset.reset"),
        _refresh(consumer, options.consumer),
        *_providers(consumer, producer),
        *_consumer_entries(consumer),
        *_producer_entries(producer),
    ]
    path = f"{options.consumer}, {options.producer}"
    config, _ = explain_entries(path, _last_of_each(entries), overrides=overrides, notes=notes)
    (flow,) = config.flows
    legacy = LegacyConfig(
        group_id=group,
        offset_commit_interval_ms=options.offset_commit_interval_ms,
        abort_on_send_failure=options.abort_on_send_failure,
    )
    return config.model_copy(update={"flows": (flow.model_copy(update={"legacy": legacy}),)})


def named_after(config: MirrorConfig, cluster_id: str) -> MirrorConfig:
    """The same, the source being called after the group and the cluster's own id.

    What a flow remembers at its target stands under that name: so it is the same whenever the same mirror is started,
    and another one for each other mirror into that cluster.
    """
    (flow,) = config.flows
    assert flow.legacy is not None  # noqa: S101 - `load_legacy` has put it there
    group = re.sub(r"[^A-Za-z0-9._-]", "_", flow.legacy.group_id)[:_LONGEST_GROUP]
    source = flow.source.model_copy(update={"alias": f"{group}.{cluster_id}"})
    return config.model_copy(update={"flows": (flow.model_copy(update={"source": source}),)})


def included(regex: str) -> str:
    """The Java regex that `--include` stands for: commas are bars, spaces and quotes around it don't count."""
    return re.sub("[\"']+$", "", re.sub("^[\"']+", "", regex.strip().replace(",", "|").replace(" ", "")))


def _required(entries: Iterable[Entry], key: str, path: str, example: str) -> str:
    """The last value of a key; raises `ConfigError` if there is none, or ZooKeeper is named in its place."""
    values = [entry.value.strip() for entry in entries if entry.key == key]
    if values and values[-1]:
        return values[-1]
    for old in ("zookeeper.connect", "metadata.broker.list"):
        if key == "bootstrap.servers" and any(entry.key == old for entry in entries):
            reason = f"is of clients before Kafka 0.9; brokers are asked directly: write {key} = {example}"
            raise ConfigError(reason, where=path, key=old)
    raise ConfigError(f"is missing: write {key} = {example}", where=path, key=key)


def _notes(entries: Iterable[Entry], reasons: Mapping[str, str]) -> Iterator[str]:
    for entry in entries:
        if entry.key in reasons and entry.value.strip() != "false":
            yield entry.note(f"has no effect: {reasons[entry.key]}")


def _refresh(consumer: Sequence[Entry], path: str) -> Entry:
    """How often new topics are looked for."""
    written = "metadata.max.age.ms"
    ages = [entry for entry in consumer if entry.key == written]
    text = ages[-1].value.strip() if ages else str(METADATA_MAX_AGE_MS)
    if not re.fullmatch(r"[0-9]{1,15}", text):
        raise ConfigError(
            f"{text!r} is not allowed, it must be a whole number of milliseconds", where=path, key=written
        )
    return _Renamed("refresh.topics.interval.seconds", str(max(int(text) // 1000, 1)), path, written=written)


def _providers(*files: Sequence[Entry]) -> Iterator[Entry]:
    """The config providers of both files, under the one key that declares them."""
    stated = [entry for file in files for entry in file if entry.key == _PROVIDERS]
    if stated:
        yield Entry(_PROVIDERS, ",".join(entry.value for entry in stated), stated[-1].where)
    yield from (entry for file in files for entry in file if entry.key.startswith(f"{_PROVIDERS}."))


def _consumer_entries(entries: Iterable[Entry]) -> Iterator[Entry]:
    passed_over = {"group.id", "metadata.max.age.ms", "zookeeper.connect", *_NO_EFFECT}
    for entry in entries:
        if entry.key == "exclude.internal.topics":
            if entry.value.strip().lower() != "true":
                raise entry.error("the brokers' own topics can't be copied: take this key out")
        elif entry.key not in passed_over:
            yield from _renamed(entry, SOURCE, "consumer")


def _producer_entries(entries: Iterable[Entry]) -> Iterator[Entry]:
    for entry in entries:
        if entry.key not in ("producer.type", "metadata.broker.list"):
            yield from _renamed(entry, TARGET, "producer")


def _renamed(entry: Entry, alias: str, role: str) -> Iterator[Entry]:
    """Of the whole cluster what says where it is and how it is spoken with, of the one client all other keys."""
    if not entry.key.startswith(_PROVIDERS):
        whole = entry.key == "bootstrap.servers" or entry.key.startswith(_SECURITY)
        key = f"{alias}.{entry.key}" if whole else f"{alias}.{role}.{entry.key}"
        yield _Renamed(key, entry.value, entry.where, entry.line, entry.key)


def _last_of_each(entries: Iterable[Entry]) -> list[Entry]:
    """As Java reads a file."""
    return list({entry.key: entry for entry in entries}.values())
