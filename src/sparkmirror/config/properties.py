"""MirrorMaker 2's own file, `mm2.properties` of its dedicated mode, as the typed model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from itertools import permutations
from types import MappingProxyType

from sparkmirror.config.advice import Advisor
from sparkmirror.config.entries import COMMAND_LINE, Entry, Properties, read_entries, seen_aliases
from sparkmirror.config.model import (
    ClusterConfig,
    ConnectStorage,
    FetchConfig,
    FlowConfig,
    GroupConfig,
    HeartbeatConfig,
    LossPolicy,
    MirrorConfig,
    OffsetSyncConfig,
    ProduceConfig,
    SslConfig,
    TopicSyncConfig,
)
from sparkmirror.config.refusals import refuse_expression, refuse_unsupported
from sparkmirror.config.scopes import Level, ScopedKey, Scopes
from sparkmirror.config.security import refuse_exceptions
from sparkmirror.config.settings import (
    CLUSTERS_KEY,
    ENABLED,
    FETCH_SETTINGS,
    FLOW_SETTINGS,
    GROUP_SETTINGS,
    HEARTBEAT_SETTINGS,
    LOSS_SETTINGS,
    NAME_CHARACTERS,
    OFFSET_SYNC_SETTINGS,
    PRODUCE_SETTINGS,
    SECURITY_PROTOCOL,
    SOURCE_SERVERS,
    SSL_SETTINGS,
    STORAGE_SETTINGS,
    TARGET_SERVERS,
    TOPIC_SYNC_SETTINGS,
    Setting,
    for_place,
)
from sparkmirror.config.values import Names, Value, repeated
from sparkmirror.errors import ConfigError

SPARK = "spark."
NOTHING: Mapping[str, str] = MappingProxyType({})


def load_mm2_properties(
    path: str, *, clusters: Sequence[str] = (), overrides: Mapping[str, str] = NOTHING
) -> MirrorConfig:
    """Read the file at `path` as MirrorMaker 2 would (`mm2.md` section 1.6).

    `clusters` leaves only the flows into these targets, as `--clusters` does. `overrides` are keys and
    values that replace the file's. Raises `ConfigError` for what can't be run, or can't be run as written.
    """
    in_file = read_entries(path)
    on_top = [Entry(key, value, COMMAND_LINE) for key, value in overrides.items()]
    aliases = _aliases(path, [*in_file, *on_top])
    return _Reader(path, Properties(in_file, on_top, aliases), aliases).read(clusters)


def _aliases(path: str, entries: Sequence[Entry]) -> tuple[str, ...]:
    """The clusters' aliases, each once; the last statement counts."""
    stated = next((entry for entry in reversed(entries) if entry.key == CLUSTERS_KEY), None)
    text = stated.value.strip() if stated else ""
    if stated is None or not text or text.startswith("#"):
        suggested = ", ".join(seen_aliases(entries)) or "source, target"
        reason = f"names no clusters: write {CLUSTERS_KEY} = {suggested}"
        raise ConfigError(reason, where=stated.where if stated else path, key=CLUSTERS_KEY)
    try:
        return tuple(NAME_CHARACTERS.parse(alias) for alias in dict.fromkeys(Names().parse(text)))
    except ValueError as error:
        raise stated.error(str(error)) from None


class _Reader:
    """One reading of one file: remembers which keys were looked up, to explain the others."""

    def __init__(self, path: str, properties: Properties, aliases: tuple[str, ...]) -> None:
        self._path = path
        self._properties = properties
        self._aliases = aliases
        self._warnings = properties.warnings
        self._looked_up = {CLUSTERS_KEY}

    def read(self, clusters: Sequence[str]) -> MirrorConfig:
        """The whole file as the model."""
        pairs = self._running_pairs(clusters)
        scopes = Scopes(self._aliases, pairs)
        keys = [key for entry in self._properties.values() if (key := scopes.split(entry)) is not None]
        for_spark = [key for key in keys if key.level is Level.TOP and key.name.startswith(SPARK)]
        refuse_unsupported(keys, pairs)
        flows = tuple(self._flow(source, target) for source, target in pairs)
        encrypted = {cluster.alias for flow in flows for cluster in (flow.source, flow.target) if cluster.encrypted}
        refuse_exceptions(keys, pairs, encrypted, self._properties)
        self._looked_up.update(key.name for key in for_spark)
        self._explain(keys, Advisor(scopes, encrypted))
        return MirrorConfig(
            path=self._path,
            flows=flows,
            spark={key.name: key.entry.value.strip() for key in for_spark},
            warnings=tuple(self._warnings),
        )

    def _running_pairs(self, clusters: Sequence[str]) -> list[tuple[str, str]]:
        """The enabled flows, in the order of `clusters` in the file, into the targets chosen."""
        for alias in clusters:
            if alias not in self._aliases:
                meant = get_close_matches(alias, self._aliases, n=1)
                hint = f"did you mean {meant[0]}?" if meant else f"there are {', '.join(self._aliases)}"
                raise ConfigError(f"{alias} is not among the file's clusters: {hint}", where="--clusters")
        enabled = [pair for pair in permutations(self._aliases, 2) if self._value(ENABLED, *pair)]
        if not enabled:
            raise ConfigError(f"no flow is enabled: write {self._example_flow()}", where=self._path)
        pairs = [pair for pair in enabled if not clusters or pair[1] in clusters]
        if not pairs:
            there = ", ".join(f"{source}->{target}" for source, target in enabled)
            raise ConfigError(f"no enabled flow leads into {', '.join(clusters)}: {there}", where="--clusters")
        return pairs

    def _example_flow(self) -> str:
        if len(self._aliases) == 1:
            return f"a second alias into {CLUSTERS_KEY}, and {self._aliases[0]}-><alias>.enabled = true"
        return f"{self._aliases[0]}->{self._aliases[1]}.enabled = true"

    def _flow(self, source: str, target: str) -> FlowConfig:
        fields: dict[str, object] = {
            **self._given(FLOW_SETTINGS, source, target),
            "source": self._cluster(SOURCE_SERVERS, source, source, target),
            "target": self._cluster(TARGET_SERVERS, target, source, target),
            "fetch": FetchConfig.model_validate(self._given(FETCH_SETTINGS, source, target)),
            "produce": ProduceConfig.model_validate(self._given(PRODUCE_SETTINGS, source, target)),
            "loss": LossPolicy.model_validate(self._given(LOSS_SETTINGS, source, target)),
            "topic_sync": TopicSyncConfig.model_validate(self._given(TOPIC_SYNC_SETTINGS, source, target)),
            "group": GroupConfig.model_validate(self._given(GROUP_SETTINGS, source, target)),
            "offset_sync": OffsetSyncConfig.model_validate(self._given(OFFSET_SYNC_SETTINGS, source, target)),
            "heartbeat": HeartbeatConfig.model_validate(self._given(HEARTBEAT_SETTINGS, source, target)),
            "connect": ConnectStorage.model_validate(self._given(STORAGE_SETTINGS, source, target)),
        }
        return FlowConfig.model_validate(fields)

    def _cluster(self, servers: Setting, alias: str, source: str, target: str) -> ClusterConfig:
        protocol, *ssl = for_place((SECURITY_PROTOCOL, *SSL_SETTINGS), servers.place)
        fields: dict[str, object] = {"alias": alias, **self._given((servers, protocol), source, target)}
        if servers.field not in fields:
            key = f"{alias}.{servers.name}"
            raise ConfigError(f"is missing: write {key} = host:9092", where=self._path, key=key)
        cluster = ClusterConfig.model_validate(fields)
        if not cluster.encrypted:
            return cluster
        return cluster.model_copy(update={"ssl": SslConfig.model_validate(self._given(ssl, source, target))})

    def _given(self, settings: Sequence[Setting], source: str, target: str) -> dict[str, Value]:
        values = ((setting.field, self._value(setting, source, target)) for setting in settings)
        return {field: value for field, value in values if value is not None}

    def _value(self, setting: Setting, source: str, target: str) -> Value | None:
        """What the strongest of the setting's keys says; None if none of them is there."""
        keys = setting.place.keys(setting.name, source, target)
        self._looked_up.update(keys)
        entry = next((self._properties[key] for key in keys if key in self._properties), None)
        if entry is None:
            return None
        refuse_expression(entry)
        try:
            value = setting.kind.parse(entry.value)
        except ValueError as error:
            raise entry.error(str(error)) from None
        return self._without_repetitions(entry, value) if isinstance(value, tuple) else value

    def _without_repetitions(self, entry: Entry, items: tuple[str, ...]) -> tuple[str, ...]:
        """Kafka 4.2 and later take repeated items out of a list and warn."""
        if again := repeated(items):
            self._warn(entry.note(f"names {', '.join(again)} more than once"))
        return tuple(dict.fromkeys(items))

    def _explain(self, keys: Sequence[ScopedKey], advisor: Advisor) -> None:
        """Say what became of the keys that no flow has looked up."""
        for key in keys:
            if key.entry.key not in self._looked_up and (text := advisor.advise(key)) is not None:
                self._warn(text)

    def _warn(self, text: str) -> None:
        if text not in self._warnings:
            self._warnings.append(text)
