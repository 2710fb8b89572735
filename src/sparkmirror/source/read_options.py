"""Options of a reader, by the names of Spark's Kafka source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

from sparkmirror.config import ClusterConfig, FlowConfig, MirrorConfig
from sparkmirror.config.entries import Entry
from sparkmirror.config.known_keys import CLIENT
from sparkmirror.config.properties import explain_entries
from sparkmirror.config.settings import (
    ADMIN_SETTINGS,
    FETCH_SETTINGS,
    SASL_SETTINGS,
    SECURITY_PROTOCOL,
    SSL_SETTINGS,
)
from sparkmirror.errors import ConfigError
from sparkmirror.kafka.wire.topic_partition import TopicPartition
from sparkmirror.policy.java_regex import compile_java
from sparkmirror.source.option_values import ORIGIN, OptionValues, refused

RECORDS, BATCHES = "records", "batches"
OF_FLOWS = ("offset_map", "groups", "receipts", "losses")
"""Tables of a mirror's flows, read as batches only."""
TABLES = (RECORDS, BATCHES, *OF_FLOWS)

_CHOOSING = ("subscribe", "subscribePattern", "assign")
_STARTING = ("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets")
_ENDING = ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")
_WITHOUT_EFFECT = (
    "groupIdPrefix",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
)
"""Options of Spark's Kafka source about its own consumers."""
_LOGS = frozenset(
    (
        *_CHOOSING,
        *_STARTING,
        *_ENDING,
        *_WITHOUT_EFFECT,
        "startingOffsetsByTimestampStrategy",
        "maxOffsetsPerTrigger",
        "maxRecordsPerPartition",
        "minPartitions",
        "failOnDataLoss",
        "includeHeaders",
        "cluster",
    )
)
_EACH = frozenset(("table", "config", "flow"))
_REFUSED = {
    "minOffsetsPerTrigger": "is not there: a micro-batch has all records, or as many as maxOffsetsPerTrigger",
    "maxTriggerDelay": "is not there: a micro-batch has all records, or as many as maxOffsetsPerTrigger",
}
_ISOLATION = "kafka.isolation.level"
_OWN_CLIENT_SETTINGS = (_ISOLATION, "kafka.group.id")
_ALIAS, _NOWHERE = "kafka", "nowhere"
_PROVIDERS = "config.providers"
_OF_ROLES = frozenset(setting.name for setting in ADMIN_SETTINGS)
"""Settings that a mirror's file has for each role of a client."""
_OF_CLUSTERS = frozenset(
    (
        "bootstrap.servers",
        SECURITY_PROTOCOL.name,
        *(setting.name for setting in (*SSL_SETTINGS, *SASL_SETTINGS)),
    )
)
_OF_CONSUMERS = frozenset(setting.name for setting in FETCH_SETTINGS) - {"auto.offset.reset"}
"""Settings of Kafka's consumer, without an effect here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetPlace:
    """Begin or end of a query in each partition."""

    key: str
    """The option's name."""
    latest: bool = False
    """True for the log's end, False for its start, where nothing else is asked for."""
    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Offsets of partitions; -2 is the start, -1 the end."""
    times: Mapping[TopicPartition, int] = field(default_factory=dict)
    time_ms: int | None = None
    """Time of all partitions."""
    none_is_latest: bool = True
    """True if a partition without a record since the time has its end as the place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicChoice:
    """Topics or partitions that a query reads."""

    key: str
    topics: tuple[str, ...] = ()
    pattern: str = ""
    """Java's regular expression, for whole names."""
    partitions: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """All options of a reader."""

    table: str
    flows: tuple[FlowConfig, ...] = ()
    """Flows in the file `config`."""
    cluster: ClusterConfig | None = None
    choice: TopicChoice = TopicChoice(key="")
    starting: OffsetPlace = OffsetPlace(key="startingOffsets")
    ending: OffsetPlace = OffsetPlace(key="endingOffsets", latest=True)
    most_per_trigger: int | None = None
    most_per_range: int | None = None
    fewest_ranges: int | None = None
    fail_on_data_loss: bool = True
    include_headers: bool = False
    read_committed: bool = False

    @property
    def source(self) -> ClusterConfig:
        """Cluster to read records or batches from."""
        if self.cluster is None:
            raise AssertionError(f"the table {self.table} is not in a log")
        return self.cluster

    @property
    def has_secrets(self) -> bool:
        """True if tasks get passwords with the options, and not only references."""
        return any(flow.has_secrets for flow in self.flows) or (self.cluster is not None and self.cluster.has_secrets)


def read_options(options: Mapping[str, str], *, streaming: bool | None) -> ReadOptions:
    """Read a reader's options; `streaming` is None if that isn't known yet.

    Raises `ConfigError`.
    """
    given = OptionValues(options)
    table = given.choice("table", *TABLES)
    if table in OF_FLOWS:
        if streaming:
            raise refused("table", f"{table} can't be streamed: read it as a batch")
        _refuse_others(given, _EACH | {"minPartitions"}, table)
        flows = flows_of(given, table)
        return ReadOptions(table=table, flows=flows, fewest_ranges=given.count("minPartitions"))
    _refuse_others(given, _EACH | _LOGS, table)
    cluster, committed = _cluster(given)
    for key in _ENDING:
        if streaming and given.has(key):
            raise refused(key, "can't be used with a stream, which has no end")
    starting = _place(given, _STARTING, latest=bool(streaming))
    if streaming is False and (starting.latest or -1 in starting.offsets.values()):
        raise refused(starting.key, "a batch can't begin at the latest offsets: write earliest, or offsets")
    ending = _place(given, _ENDING, latest=True)
    if -2 in ending.offsets.values() or not ending.latest:
        raise refused(ending.key, "a batch can't end at the earliest offsets: write latest, or offsets")
    return ReadOptions(
        table=table,
        cluster=cluster,
        choice=_choice(given),
        starting=starting,
        ending=ending,
        most_per_trigger=given.count("maxOffsetsPerTrigger"),
        most_per_range=given.count("maxRecordsPerPartition"),
        fewest_ranges=given.count("minPartitions"),
        fail_on_data_loss=given.flag("failOnDataLoss", default=True),
        include_headers=given.flag("includeHeaders", default=False),
        read_committed=committed,
    )


def _refuse_others(given: OptionValues, known: frozenset[str], table: str) -> None:
    for key, reason in _REFUSED.items():
        if given.has(key):
            raise refused(key, reason)
    for key in given.others(known):
        if key in {name.lower() for name in _EACH | _LOGS}:
            raise refused(key, f"can't be used with the table {table}")
        raise refused(key, f"is not known{nearest(key, known)}")
    if table in OF_FLOWS and (settings := sorted(given.of_clients())):
        raise refused(settings[0], f"can't be used with the table {table}, whose clusters are those of the file config")


def nearest(key: str, known: frozenset[str]) -> str:
    """Return a hint at the known name that is most like this one; empty without."""
    names = {name.lower(): name for name in known}
    near = get_close_matches(key, list(names), 1)
    return f"; did you mean {names[near[0]]}?" if near else ""


def flows_of(given: OptionValues, table: str) -> tuple[FlowConfig, ...]:
    """Return the flows in the file `config`, or the one named by `flow`.

    Raises `ConfigError`.
    """
    path, name = given.text("config"), given.text("flow")
    if not path:
        raise refused("config", f"is missing: the table {table} is about the flows in a mirror's file")
    from sparkmirror.config.formats import model_of, read  # most readers name no file

    config: MirrorConfig = model_of(read([path]))[0]
    flows = tuple(flow for flow in config.flows if name in ("", flow.name))
    if not flows:
        raise refused("flow", f"there is no {name}; there are {', '.join(flow.name for flow in config.flows)}")
    return flows


def _cluster(given: OptionValues) -> tuple[ClusterConfig, bool]:
    """Return the cluster to read from, and True to read only what is committed."""
    levels = "read_uncommitted", "read_committed"
    if not given.has("config"):
        for key in ("flow", "cluster"):
            if given.has(key):
                raise refused(key, "is about the file config, which is not given")
        return stated_cluster(given, _OF_CONSUMERS), given.choice(_ISOLATION, *levels) == levels[1]
    if settings := sorted(set(given.of_clients()) - set(_OWN_CLIENT_SETTINGS)):
        raise refused(settings[0], "the file config has the clusters: take either of them out")
    flows = flows_of(given, RECORDS)
    if len(flows) > 1:
        raise refused("flow", f"is missing: there are {', '.join(flow.name for flow in flows)}; choose one")
    (flow,) = flows
    if given.has(_ISOLATION):
        committed = given.choice(_ISOLATION, *levels) == levels[1]
    else:
        committed = flow.fetch.isolation_level == levels[1]
    at_source = given.choice("cluster", "source", "target") == "source"
    return (flow.source.for_copying if at_source else flow.target), committed


def stated_cluster(given: OptionValues, idle: frozenset[str]) -> ClusterConfig:
    """Return the cluster that the options `kafka.*` describe.

    They are read as the settings of a cluster with the alias `kafka`; those of Kafka's clients and `idle` ones have no
    effect. Raises `ConfigError`.
    """
    if not given.text("kafka.bootstrap.servers"):
        raise refused("kafka.bootstrap.servers", "is missing: write HOST:PORT,…, or name a file with the option config")
    stated = {
        "clusters": f"{_ALIAS}, {_NOWHERE}",
        f"{_ALIAS}->{_NOWHERE}.enabled": "true",
        f"{_NOWHERE}.bootstrap.servers": "localhost:1",
    }
    for key, value in given.of_clients().items():
        name = key.removeprefix("kafka.")
        if name.startswith(_PROVIDERS):
            stated[name] = value
        elif name in _OF_CLUSTERS:
            stated[key] = value
        elif name in _OF_ROLES:
            stated[f"{_ALIAS}.admin.{name}"] = stated[f"{_ALIAS}.consumer.{name}"] = value
        elif name not in idle and name not in CLIENT:
            near = get_close_matches(name, sorted(_OF_CLUSTERS), 1)
            hint = f"; did you mean kafka.{near[0]}?" if near else ""
            raise refused(key, f"is no setting of a cluster's clients{hint}")
    entries = [Entry(key=key, value=value, where=ORIGIN) for key, value in stated.items()]
    try:
        config = explain_entries(ORIGIN, entries)[0]
    except ConfigError as error:
        wrong = error.mistakes[0]
        raise ConfigError(wrong.reason, origin=ORIGIN, key=wrong.key) from None
    return config.flows[0].source.for_copying


def _choice(given: OptionValues) -> TopicChoice:
    keys = [key for key in _CHOOSING if given.has(key)]
    if len(keys) != 1:
        problem = f"{' and '.join(keys)} are given" if keys else "none is given"
        raise refused(", ".join(_CHOOSING), f"{problem}: exactly one of them chooses what to read")
    (key,) = keys
    if key == "assign":
        partitions = given.partitions(key)
        if not partitions:
            raise refused(key, 'has no partition: write it like {"topic":[0,1]}')
        return TopicChoice(key=key, partitions=partitions)
    value = given.text(key)
    if key == "subscribePattern":
        try:
            compile_java(value)
        except ValueError as error:
            raise refused(key, f"is no regular expression: {error}") from error
        return TopicChoice(key=key, pattern=value)
    topics = tuple(dict.fromkeys(filter(None, map(str.strip, value.split(",")))))
    if not topics:
        raise refused(key, "names no topic")
    return TopicChoice(key=key, topics=topics)


def _place(given: OptionValues, keys: tuple[str, str, str], *, latest: bool) -> OffsetPlace:
    """Read where to begin or end; the first of the keys that is given counts."""
    at_time, by_time, plain = keys
    lenient = given.choice("startingOffsetsByTimestampStrategy", "error", "latest") == "latest"
    none_is_latest = lenient or keys is _ENDING
    if (time_ms := given.milliseconds(at_time)) is not None:
        return OffsetPlace(key=at_time, latest=keys is _ENDING, time_ms=time_ms, none_is_latest=none_is_latest)
    if given.has(by_time):
        times = given.by_partition(by_time)
        return OffsetPlace(key=by_time, latest=keys is _ENDING, times=times, none_is_latest=none_is_latest)
    value = given.text(plain, "latest" if latest else "earliest")
    if value.lower() in ("earliest", "latest"):
        return OffsetPlace(key=plain, latest=value.lower() == "latest")
    offsets = given.by_partition(plain)
    if any(offset < -2 for offset in offsets.values()):
        raise refused(plain, "has an offset below -2: -2 is the earliest, -1 the latest")
    return OffsetPlace(key=plain, latest=keys is _ENDING, offsets=offsets)
