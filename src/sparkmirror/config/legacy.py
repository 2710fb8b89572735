"""MirrorMaker 1's two files and its flags as a flow.

The input is what Kafka 2.8's `kafka-mirror-maker.sh` takes. Each key in the files becomes the key with the same meaning
in MirrorMaker 2's file; messages name the key as the user wrote it. Facts: `kafka.tools.MirrorMaker` in Kafka 2.8.
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
"""Policy under which every topic keeps its name.

Topics with names that end like MirrorMaker 2's heartbeats keep their names, too.
"""

METADATA_MAX_AGE_MS = 300_000
"""Interval at which MirrorMaker 1 saw new topics and partitions.

Kafka's default for `metadata.max.age.ms`.
"""

RESET = "latest"
"""Kafka's default for `auto.offset.reset`, which MirrorMaker 1 left alone.

MirrorMaker 2's default is `earliest`.
"""

_LONGEST_GROUP = 150
"""Longest group id in the names of sparkmirror's topics, in characters.

Kafka allows 249 characters in a topic's name.
"""

_SECURITY = ("security.protocol", "ssl.", "sasl.")
_PROVIDERS = "config.providers"

_FLOW = {
    CLUSTERS_KEY: f"{SOURCE}, {TARGET}",
    f"{SOURCE}->{TARGET}.enabled": "true",
    "replication.policy.class": SAME_NAMES,
    "topics.exclude": "",
    # The broker's default, as for topics that a broker creates by itself.
    "replication.factor": "-1",
    "sync.topic.configs.enabled": "false",
    "sync.topic.acls.enabled": "false",
    "emit.heartbeats.enabled": "false",
    "heartbeats.replication.enabled": "false",
    "emit.checkpoints.enabled": "false",
    "emit.offset-syncs.enabled": "false",
}
"""MirrorMaker 1's behaviour, in MirrorMaker 2's keys."""

_NO_EFFECT = {
    "client.id": "it gave its consumers ids made of group.id",
    "enable.auto.commit": "acknowledged records are committed each --offset.commit.interval.ms",
    "auto.commit.interval.ms": "acknowledged records are committed each --offset.commit.interval.ms",
}
"""Keys in the consumer's file that have no effect, with the reasons."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LegacyOptions:
    """MirrorMaker 1's flags, checked one by one; `include` is as the user wrote it."""

    consumer: str
    producer: str
    include: str
    num_streams: int = 1
    offset_commit_interval_ms: int = 60_000
    abort_on_send_failure: bool = True


@dataclass(frozen=True, slots=True)
class _Renamed(Entry):
    """Entry under another key than the user wrote; messages name the user's key."""

    def error(self, reason: str) -> ConfigError:
        return ConfigError(self._ours_out(reason), origin=self.spot, key=self.written)

    def note(self, text: str) -> str:
        return f"{self.where}: {self.written}: {self._ours_out(text)}"

    def _ours_out(self, text: str) -> str:
        """Take the aliases out of a message: the user has never heard of them."""
        return text.replace(f"{SOURCE}.consumer.", "").replace(f"{TARGET}.producer.", "")


def load_legacy(options: LegacyOptions, *, overrides: Mapping[str, str] = NOTHING) -> MirrorConfig:
    """Return the flow that the files and flags describe; raise `ConfigError`.

    The caller gives the flow its own name with `named_after` before the flow runs: any number of such flows may lead
    into a cluster.
    """
    consumer, producer = read_entries(options.consumer), read_entries(options.producer)
    group = _required(consumer, "group.id", options.consumer, "the group under which MirrorMaker 1 committed")
    for entries, path in ((consumer, options.consumer), (producer, options.producer)):
        _required(entries, "bootstrap.servers", path, "host:9092")
    notes = [*_notes(consumer, _NO_EFFECT), *_notes(producer, {"producer.type": "no record waits for another one"})]
    entries = [
        *(Entry(key=key, value=value, where=COMMAND_LINE) for key, value in _FLOW.items()),
        _Renamed(key="topics", value=included(options.include), where=COMMAND_LINE, written="--include"),
        _Renamed(key="tasks.max", value=str(options.num_streams), where=COMMAND_LINE, written="--num.streams"),
        _Renamed(
            key=f"{SOURCE}.consumer.auto.offset.reset", value=RESET, where=options.consumer, written="auto.offset.reset"
        ),
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
    """Return the configuration with the source named after group and cluster id.

    A flow keeps its data at the target under this name. So the name is the same whenever the same mirror starts, and
    different for each other mirror into the cluster.
    """
    (flow,) = config.flows
    assert flow.legacy is not None  # noqa: S101 - `load_legacy` has put it there
    group = re.sub(r"[^A-Za-z0-9._-]", "_", flow.legacy.group_id)[:_LONGEST_GROUP]
    source = flow.source.model_copy(update={"alias": f"{group}.{cluster_id}"})
    return config.model_copy(update={"flows": (flow.model_copy(update={"source": source}),)})


def included(regex: str) -> str:
    """Return the Java regex that `--include` stands for.

    Commas become bars; spaces, and quotes at either end, are dropped.
    """
    return re.sub("[\"']+$", "", re.sub("^[\"']+", "", regex.strip().replace(",", "|").replace(" ", "")))


def _required(entries: Iterable[Entry], key: str, path: str, example: str) -> str:
    """Return a key's last value; raise `ConfigError` if there is none.

    The error says so if the file has an old client's key (for ZooKeeper or a broker list) in place of the brokers.
    """
    values = [entry.value.strip() for entry in entries if entry.key == key]
    if values and values[-1]:
        return values[-1]
    for old in ("zookeeper.connect", "metadata.broker.list"):
        if key == "bootstrap.servers" and any(entry.key == old for entry in entries):
            reason = f"is of clients before Kafka 0.9; brokers are asked directly: write {key} = {example}"
            raise ConfigError(reason, origin=path, key=old)
    raise ConfigError(f"is missing: write {key} = {example}", origin=path, key=key)


def _notes(entries: Iterable[Entry], reasons: Mapping[str, str]) -> Iterator[str]:
    for entry in entries:
        if entry.key in reasons and entry.value.strip() != "false":
            yield entry.note(f"has no effect: {reasons[entry.key]}")


def _refresh(consumer: Sequence[Entry], path: str) -> Entry:
    """Return the entry for the interval at which the flow looks for new topics."""
    written = "metadata.max.age.ms"
    ages = [entry for entry in consumer if entry.key == written]
    text = ages[-1].value.strip() if ages else str(METADATA_MAX_AGE_MS)
    if not re.fullmatch(r"[0-9]{1,15}", text):
        raise ConfigError(
            f"{text!r} is not allowed, it must be a whole number of milliseconds", origin=path, key=written
        )
    return _Renamed(
        key="refresh.topics.interval.seconds", value=str(max(int(text) // 1000, 1)), where=path, written=written
    )


def _providers(*files: Sequence[Entry]) -> Iterator[Entry]:
    """Yield the config providers in both files, under the key that declares them."""
    stated = [entry for file in files for entry in file if entry.key == _PROVIDERS]
    if stated:
        yield Entry(key=_PROVIDERS, value=",".join(entry.value for entry in stated), where=stated[-1].where)
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
    """Yield the entry under MirrorMaker 2's key.

    Brokers and security become the whole cluster's settings, all other keys the client's. Config providers' keys are
    left out.
    """
    if not entry.key.startswith(_PROVIDERS):
        whole = entry.key == "bootstrap.servers" or entry.key.startswith(_SECURITY)
        key = f"{alias}.{entry.key}" if whole else f"{alias}.{role}.{entry.key}"
        yield _Renamed(key=key, value=entry.value, where=entry.where, line=entry.line, written=entry.key)


def _last_of_each(entries: Iterable[Entry]) -> list[Entry]:
    """Return each key's last entry, as Java reads a file."""
    return list({entry.key: entry for entry in entries}.values())
