"""Read MirrorMaker 2's own file, `mm2.properties` in its dedicated mode."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from itertools import permutations
from types import MappingProxyType

from pydantic import BaseModel

from sparkmirror.config.advice import Advisor
from sparkmirror.config.aliases import aliases_alike, in_other_case, with_aliases
from sparkmirror.config.clusters import read_cluster
from sparkmirror.config.combinations import combination_notes
from sparkmirror.config.declared_providers import declared_providers, provider_keys
from sparkmirror.config.duty_settings import (
    GROUP_SETTINGS,
    HEARTBEAT_SETTINGS,
    OFFSET_SYNC_SETTINGS,
    STORAGE_SETTINGS,
    TOPIC_SYNC_SETTINGS,
)
from sparkmirror.config.effective import EffectiveValue, effective_values
from sparkmirror.config.entries import COMMAND_LINE, Entry, Properties, read_entries, seen_aliases
from sparkmirror.config.heartbeats import heartbeat_pairs, is_stated, read_beats
from sparkmirror.config.lookup import Lookup, Pair
from sparkmirror.config.metrics_settings import read_metrics
from sparkmirror.config.model import (
    ConnectStorage,
    FetchConfig,
    FlowConfig,
    GroupConfig,
    HeartbeatConfig,
    LossPolicy,
    MirrorConfig,
    OffsetSyncConfig,
    ProduceConfig,
    ProviderConfig,
    TopicSyncConfig,
)
from sparkmirror.config.originals import originals_for
from sparkmirror.config.patterns import check_patterns
from sparkmirror.config.providers import references, resolve
from sparkmirror.config.refusals import refused
from sparkmirror.config.repeated_brokers import check_repeated, check_scheme
from sparkmirror.config.schema_settings import read_schemas
from sparkmirror.config.scopes import Level, ScopedKey, Scopes
from sparkmirror.config.security import refused_exceptions
from sparkmirror.config.setting import Setting
from sparkmirror.config.settings import (
    CLUSTERS_KEY,
    ENABLED,
    FETCH_SETTINGS,
    FLOW_SETTINGS,
    LOG_FORMAT,
    LOSS_SETTINGS,
    PRODUCE_SETTINGS,
    SOURCE_SERVERS,
    TARGET_SERVERS,
)
from sparkmirror.config.transforms import read_connect_transforms, with_queries
from sparkmirror.errors import ConfigError
from sparkmirror.mistakes import Mistakes, veiled
from sparkmirror.values import NAME_CHARACTERS, Flag, Names
from sparkmirror.veil import Veil

SPARK = "spark."
NOTHING: Mapping[str, str] = MappingProxyType({})


def explain_mm2_properties(
    path: str, *, clusters: Sequence[str] = (), overrides: Mapping[str, str] = NOTHING
) -> tuple[MirrorConfig, tuple[EffectiveValue, ...]]:
    """Read the file like `load_mm2_properties`, and return each value's origin, too."""
    return explain_entries(path, read_entries(path), clusters=clusters, overrides=overrides)


def explain_entries(
    path: str,
    in_file: Sequence[Entry],
    *,
    clusters: Sequence[str] = (),
    overrides: Mapping[str, str] = NOTHING,
    notes: Sequence[str] = (),
    sealed: bool = False,
) -> tuple[MirrorConfig, tuple[EffectiveValue, ...]]:
    """Read any format's entries like `explain_mm2_properties`.

    `notes` are the warnings from the other format's reader. `sealed`: no reference to a config provider is resolved,
    for the operator, whose own files and variables are not a resource's business. The model then lacks the values
    behind references.
    """
    veil = Veil()
    on_top = [Entry(key=key, value=value, where=COMMAND_LINE) for key, value in overrides.items()]
    mistakes = Mistakes()
    providers: Sequence[ProviderConfig] | None = None
    with mistakes.gathered():
        providers = declared_providers([*in_file, *on_top], elsewhere=sealed)
    aliases = seen_aliases([*in_file, *on_top])
    with mistakes.gathered():
        aliases = _aliases(path, [*in_file, *on_top], () if sealed else providers, veil)
    lookup = Lookup(path, Properties(in_file, on_top, aliases), providers, sealed=sealed)
    lookup.mistakes, lookup.veil = mistakes, veil
    for note in (*notes, *aliases_alike(lookup.properties.get(CLUSTERS_KEY), aliases)):
        lookup.warn(note)
    try:
        config = _PropertiesReader(lookup, aliases).read(clusters)
    except ConfigError as error:
        raise veiled(error, veil) from None
    return config, tuple(effective_values(config, lookup))


def _aliases(path: str, entries: Sequence[Entry], providers: Sequence[ProviderConfig] | None, veil: Veil) -> list[str]:
    """Return the clusters' aliases, each once; the last statement counts.

    An alias behind a reference is hidden, unless it begins a key in the file.
    """
    stated = next((entry for entry in reversed(entries) if entry.key == CLUSTERS_KEY), None)
    text = stated.value.strip() if stated else ""
    if providers is None and references(text, ())[1]:
        return seen_aliases(entries)
    if stated is None or not text or text.startswith("#"):
        suggested = ", ".join(seen_aliases(entries)) or "source, target"
        reason = f"names no clusters: write {CLUSTERS_KEY} = {suggested}"
        raise ConfigError(reason, origin=stated.spot if stated else path, key=CLUSTERS_KEY)
    hidden = Veil()
    try:
        resolved = resolve(text, providers or (), hidden)
        aliases = [NAME_CHARACTERS.parse(alias) for alias in dict.fromkeys(Names().parse(resolved))]
    except ValueError as error:
        raise veiled(stated.error(str(error)), hidden) from None
    if resolved != text and not {re.split(r"->|\.", entry.key)[0] for entry in entries} >= set(aliases):
        veil.put(text, resolved)
    return aliases


class _PropertiesReader:
    """Reader that reads a single file once."""

    def __init__(self, lookup: Lookup, aliases: Sequence[str]) -> None:
        self._lookup = lookup
        self._aliases = aliases
        lookup.looked_up.update((CLUSTERS_KEY, *provider_keys(lookup.declared)))

    def read(self, clusters: Sequence[str]) -> MirrorConfig:
        """Return the whole file as the model.

        Raise `ConfigError` for the mistakes, after a look at everything.
        """
        mistakes = self._lookup.mistakes
        pairs = self._running_pairs(clusters)
        scopes = Scopes(self._aliases, pairs)
        keys = [key for entry in self._lookup.properties.values() if (key := scopes.split(entry)) is not None]
        for_spark = [key for key in keys if key.level is Level.TOP and key.name.startswith(SPARK)]
        for error in refused(keys, pairs):
            mistakes.add(error)
        flows = tuple(self._flow(pair) for pair in pairs)
        schemas = {"->".join(pair): read_schemas(self._lookup, pair) for pair in pairs}
        spoken = {cluster.alias: cluster for flow in flows for cluster in (flow.source, flow.target)}
        check_repeated(self._lookup, keys, pairs, spoken)
        for cluster in spoken.values():
            check_scheme(self._lookup, cluster)
        for error in refused_exceptions(keys, self._lookup.looked_up, pairs, spoken, self._lookup.properties):
            mistakes.add(error)
        beats = read_beats(self._lookup, heartbeat_pairs(self._aliases, pairs, clusters))
        log_format = self._lookup.value(LOG_FORMAT, ("", "")) or LOG_FORMAT.default
        metrics = read_metrics(self._lookup)
        spark = {}
        for key in for_spark:
            with mistakes.gathered():
                spark[key.name] = self._for_spark(key.entry)
        mistakes.stop(self._lookup.properties)
        self._lookup.looked_up.update(key.name for key in for_spark)
        self._explain(keys, Advisor(scopes, spoken, {flow.name for flow in flows if flow.originals}))
        return MirrorConfig(
            path=self._lookup.path,
            flows=flows,
            spark=spark,
            log_format=str(log_format),
            warnings=tuple(map(self._lookup.veil.over, self._lookup.warnings)),
            metrics=metrics,
            beats=beats,
            schemas=schemas,
        )

    def _running_pairs(self, clusters: Sequence[str]) -> list[Pair]:
        """Return the enabled flows into the chosen targets, in the order of `clusters`.

        There may be no flow if the file itself asks for a pair's heartbeats. Heartbeats by default are no reason to
        start, as they are for MirrorMaker 2: a user who forgot `enabled` must be told. After such a mistake the result
        is the flows with settings that can be checked all the same.
        """
        mistakes = self._lookup.mistakes
        strangers = [alias for alias in clusters if alias not in self._aliases]
        for alias in strangers if self._aliases else ():
            meant = get_close_matches(alias, self._aliases, n=1)
            hint = f"did you mean {meant[0]}?" if meant else f"there are {', '.join(self._aliases)}"
            mistakes.add(ConfigError(f"{alias} is not among the file's clusters: {hint}", origin="--clusters"))
        enabled = [pair for pair in permutations(self._aliases, 2) if self._lookup.value(ENABLED, pair)]
        pairs = [pair for pair in enabled if not clusters or pair[1] in clusters]
        if pairs or any(is_stated(self._lookup, pair) for pair in heartbeat_pairs(self._aliases, enabled, clusters)):
            return pairs
        if not enabled:
            if self._aliases:
                self._nothing_enabled()
            return list(permutations(self._aliases, 2))[:1]
        if not strangers:
            there = ", ".join(f"{source}->{target}" for source, target in enabled)
            reason = f"no enabled flow leads into {', '.join(clusters)}: {there}"
            mistakes.add(ConfigError(reason, origin="--clusters"))
        return enabled

    def _nothing_enabled(self) -> None:
        """Report the entries that were meant to enable a flow, else the missing key."""
        keys = [ENABLED.place.keys(ENABLED.name, *pair)[0] for pair in permutations(self._aliases, 2)]
        stated = [self._lookup.properties[key] for key in keys if key in self._lookup.properties]
        odd = [
            (entry, words)
            for entry in stated
            if not self._lookup.references(entry) and (words := Flag().odd(entry.value))
        ]
        for entry, words in odd:
            self._lookup.mistakes.add(entry.error(f"{words}; so no flow is enabled"))
        if not odd:
            case = next(filter(None, (in_other_case(key, self._lookup.properties) for key in keys)), "")
            reason = f"no flow is enabled: write {self._example_flow()}{case}"
            self._lookup.mistakes.add(ConfigError(reason, origin=self._lookup.path))

    def _example_flow(self) -> str:
        if len(self._aliases) == 1:
            return f"a second alias into {CLUSTERS_KEY}, and {self._aliases[0]}-><alias>.enabled = true"
        return f"{self._aliases[0]}->{self._aliases[1]}.enabled = true"

    def _flow(self, pair: Pair) -> FlowConfig:
        source, target = pair

        def part(model: type[BaseModel], settings: Sequence[Setting]) -> BaseModel:
            return model.model_validate(self._lookup.given(settings, pair))

        fields: dict[str, object] = {
            **self._lookup.given(FLOW_SETTINGS, pair),
            "source": read_cluster(self._lookup, SOURCE_SERVERS, source, pair),
            "target": read_cluster(self._lookup, TARGET_SERVERS, target, pair),
            "fetch": part(FetchConfig, FETCH_SETTINGS),
            "produce": part(ProduceConfig, PRODUCE_SETTINGS),
            "loss": part(LossPolicy, LOSS_SETTINGS),
            "topic_sync": part(TopicSyncConfig, TOPIC_SYNC_SETTINGS),
            "group": part(GroupConfig, GROUP_SETTINGS),
            "offset_sync": part(OffsetSyncConfig, OFFSET_SYNC_SETTINGS),
            "heartbeat": part(HeartbeatConfig, HEARTBEAT_SETTINGS),
            "connect": part(ConnectStorage, STORAGE_SETTINGS),
            "connect_transforms": read_connect_transforms(self._lookup, pair),
        }
        flow = with_queries(self._lookup, with_aliases(self._lookup, FlowConfig.model_validate(fields)))
        for note in combination_notes(self._lookup, flow):
            self._lookup.warn(note)
        check_patterns(self._lookup, flow)
        return flow.model_copy(update={"originals": originals_for(flow, self._lookup)})

    def _for_spark(self, entry: Entry) -> str:
        """Resolve references to declared providers; Spark resolves its own references."""
        try:
            return resolve(entry.value, self._lookup.providers, self._lookup.veil).strip()
        except ValueError as error:
            raise entry.error(str(error)) from None

    def _explain(self, keys: Sequence[ScopedKey], advisor: Advisor) -> None:
        """Warn about the keys that no flow has looked up, with the reasons."""
        for key in keys:
            if key.entry.key not in self._lookup.looked_up and (text := advisor.advise(key)) is not None:
                self._lookup.warn(text)
