"""Each flow's effective values and their origins, for `sparkmirror config`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from sparkmirror.config.clusters import ADMINS, COPIERS
from sparkmirror.config.duty_settings import (
    GROUP_SETTINGS,
    HEARTBEAT_SETTINGS,
    OFFSET_SYNC_SETTINGS,
    STORAGE_SETTINGS,
    TOPIC_SYNC_SETTINGS,
)
from sparkmirror.config.entries import Entry
from sparkmirror.config.lookup import Lookup
from sparkmirror.config.model import (
    IDENTITY_POLICY,
    ClusterConfig,
    FlowConfig,
    MirrorConfig,
    RegistryConfig,
    SchemasConfig,
)
from sparkmirror.config.originals import is_secret
from sparkmirror.config.schema_settings import REGISTRY_SETTINGS, REGISTRY_TLS, SIDES, Side
from sparkmirror.config.setting import ADMIN_PLACES, KeyScope, Setting, for_place
from sparkmirror.config.settings import (
    ADMIN_SETTINGS,
    BEAT_SETTINGS,
    ENABLED,
    FETCH_SETTINGS,
    FLOW_SETTINGS,
    LOSS_SETTINGS,
    PRODUCE_SETTINGS,
    SASL_SETTINGS,
    SECURITY_PROTOCOL,
    SOURCE_ALIAS,
    SOURCE_SERVERS,
    SSL_SETTINGS,
    TARGET_SERVERS,
)
from sparkmirror.values import Hidden, shown_text

MASK = "********"
DEFAULT = "default"
MEASURED = {
    "max.partition.fetch.bytes": "more on a long line, by its measured round trip and rate",
    "receive.buffer.bytes": "the operating system's own, which grows with the line",
    "send.buffer.bytes": "the operating system's own, which grows with the line",
}
"""Meaning of defaults that leave the size to what is measured."""
POLICY_CLASS = "replication.policy.class"


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveValue:
    """A setting's effective value in a flow.

    `value` is safe to show. `where` names the key that gave the value, or is `DEFAULT`.
    """

    flow: str
    key: str
    value: str
    where: str
    note: str = ""
    """One-line remark on a default that leaves something to what is measured."""


def effective_values(config: MirrorConfig, lookup: Lookup) -> Iterator[EffectiveValue]:
    """Yield the effective values, flow after flow.

    The settings for Spark come last, as the flow `*`.
    """
    for flow in config.flows:
        shown = _Shown(flow, lookup)
        yield shown.row(ENABLED, True)
        yield from shown.cluster(SOURCE_SERVERS, flow.source)
        yield from shown.cluster(TARGET_SERVERS, flow.target)
        yield from shown.part(FLOW_SETTINGS, flow)
        yield from shown.part(FETCH_SETTINGS, flow.fetch)
        yield from shown.part(PRODUCE_SETTINGS, flow.produce)
        yield from shown.part(LOSS_SETTINGS, flow.loss)
        yield from shown.part(TOPIC_SYNC_SETTINGS, flow.topic_sync)
        yield from shown.part(GROUP_SETTINGS, flow.group)
        yield from shown.part(OFFSET_SYNC_SETTINGS, flow.offset_sync)
        yield from shown.part(HEARTBEAT_SETTINGS, flow.heartbeat)
        yield from shown.part(STORAGE_SETTINGS, flow.connect)
        yield from shown.transforms()
        for side in SIDES:
            yield from shown.registry(side, getattr(config.schemas.get(flow.name, SchemasConfig()), side))
    for beat in config.beats:
        shown = _Shown(beat, lookup)
        yield shown.row(ENABLED, False)
        yield from shown.cluster(TARGET_SERVERS, beat.target)
        yield from shown.part(BEAT_SETTINGS, beat)
        yield from shown.part(HEARTBEAT_SETTINGS, beat.heartbeat)
    for key, value in config.spark.items():
        entry = lookup.properties[key]
        hidden = is_secret(key) or lookup.references(entry)
        shown_value = MASK if hidden else value
        yield EffectiveValue(flow="*", key=key, value=shown_value, where=_where(entry, lookup))


class _Shown:
    """A flow's settings, in the form that is shown."""

    def __init__(self, flow: FlowConfig, lookup: Lookup) -> None:
        self._flow = flow
        self._lookup = lookup
        self._pair = (flow.source.alias, flow.target.alias)

    def cluster(self, servers: Setting, cluster: ClusterConfig) -> Iterator[EffectiveValue]:
        yield from self.part((servers, *for_place(ADMIN_SETTINGS, ADMIN_PLACES[servers.place])), cluster)
        admins = list(self._security(ADMINS[servers.place], cluster))
        yield from admins
        if cluster.copier is not None:
            origins = {row.where for row in admins}
            copier = self._security(COPIERS[servers.place], cluster.copier)
            yield from (row for row in copier if row.where not in origins)

    def _security(self, place: KeyScope, cluster: ClusterConfig) -> Iterator[EffectiveValue]:
        yield from self.part(for_place((SECURITY_PROTOCOL,), place), cluster)
        if cluster.encrypted:
            yield from self.part(for_place(SSL_SETTINGS, place), cluster.ssl)
        if cluster.signs_in:
            yield from self.part(for_place(SASL_SETTINGS, place), cluster.sasl)

    def transforms(self) -> Iterator[EffectiveValue]:
        """Yield the keys of transforms and queries; nothing without any."""
        for key, value in self._flow.transform_keys.items():
            own = f"{self._flow.name}.{key}"
            entry = self._lookup.properties[own if own in self._lookup.properties else key]
            shown = MASK if self._lookup.references(entry) else value
            yield EffectiveValue(flow=self._flow.name, key=key, value=shown, where=_where(entry, self._lookup))

    def registry(self, side: Side, registry: RegistryConfig) -> Iterator[EffectiveValue]:
        """Yield a schema registry's settings; nothing without a registry."""
        if registry.url:
            yield from self.part(REGISTRY_SETTINGS[side], registry)
            if registry.url.startswith("https:"):
                yield from self.part(REGISTRY_TLS[side], registry.ssl)

    def part(self, settings: Sequence[Setting], part: BaseModel) -> Iterator[EffectiveValue]:
        for setting in settings:
            yield self.row(setting, getattr(part, setting.field))

    def row(self, setting: Setting, value: object) -> EffectiveValue:
        entry = self._lookup.entry(setting, self._pair)
        if setting.name == POLICY_CLASS and self._flow.source_cluster_alias is not None and value == IDENTITY_POLICY:
            entry = entry or self._lookup.entry(SOURCE_ALIAS, self._pair)
        text = shown_text(value)
        hidden = isinstance(setting.kind, Hidden) or (entry is not None and self._lookup.references(entry))
        origin = DEFAULT if entry is None else _where(entry, self._lookup)
        key = setting.place.general(setting.name, *self._pair)
        note = MEASURED.get(setting.name, "") if entry is None else ""
        shown = MASK if hidden and text else text
        return EffectiveValue(flow=self._flow.name, key=key, value=shown, where=origin, note=note)


def _where(entry: Entry, lookup: Lookup) -> str:
    """Return a value's origin: the key, and the references behind the value.

    References are no secrets, and the reader of the output looks for them.
    """
    references = lookup.references(entry)
    return f"{entry.where}: {entry.key}" + (f" = {' '.join(references)}" if references else "")
