"""A flow's settings as published, and how two deployments differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import BaseModel

from sparkmirror.config.duty_settings import (
    GROUP_SETTINGS,
    HEARTBEAT_SETTINGS,
    OFFSET_SYNC_SETTINGS,
    STORAGE_SETTINGS,
    TOPIC_SYNC_SETTINGS,
)
from sparkmirror.config.model import FlowConfig
from sparkmirror.config.setting import Setting
from sparkmirror.config.settings import FETCH_SETTINGS, FLOW_SETTINGS, LOSS_SETTINGS, PRODUCE_SETTINGS
from sparkmirror.values import Hidden, shown_text
from sparkmirror.veil import shown_patterns

ALWAYS = frozenset(
    {
        "topics",
        "groups",
        "replication.policy.class",
        "isolation.level",
        "compression.type",
        "sync.group.offsets.enabled",
        "emit.checkpoints.enabled",
        "emit.heartbeats.enabled",
    }
)
"""Settings that are told also where they have their default."""
OF_A_HOST = frozenset({"client.id", "client.rack"})
"""Settings that may differ between a deployment's hosts."""
_LONGEST = 200


def flow_settings(flow: FlowConfig) -> dict[str, str]:
    """Return the flow's settings by name: all in `ALWAYS`, others but for defaults.

    Secrets are left out.
    """
    settings = {}
    for setting, value in _values(flow):
        if not isinstance(setting.kind, Hidden) and (setting.name in ALWAYS or value != setting.default):
            settings[setting.name] = shown_patterns(shown_text(value))
    return settings | {key: shown_patterns(text) for key, text in flow.transform_keys.items()}


def differences(flow: FlowConfig, others: Mapping[str, str]) -> tuple[str, ...]:
    """Return how the flow differs from the working process's settings, a line each.

    `others` is what `flow_settings` returned there. Settings that another release did not tell are not compared.
    """
    if not others.keys() >= ALWAYS:
        return ()
    own = flow_settings(flow)
    names = sorted((own.keys() | others.keys()) - OF_A_HOST)
    defaults = {setting.name: shown_text(setting.default) for setting, _ in _values(flow)}
    told = ((name, others.get(name, defaults.get(name)), own.get(name, defaults.get(name))) for name in names)
    return tuple(f"{name}: {_short(there)} there, {_short(here)} here" for name, there, here in told if there != here)


def _short(value: str | None) -> str:
    text = value or ""
    return f"`{text}`" if len(text) <= _LONGEST else f"`{text[:_LONGEST]}…`"


def _values(flow: FlowConfig) -> Iterator[tuple[Setting, object]]:
    parts: tuple[tuple[tuple[Setting, ...], BaseModel], ...] = (
        (FLOW_SETTINGS, flow),
        (FETCH_SETTINGS, flow.fetch),
        (PRODUCE_SETTINGS, flow.produce),
        (LOSS_SETTINGS, flow.loss),
        (TOPIC_SYNC_SETTINGS, flow.topic_sync),
        (GROUP_SETTINGS, flow.group),
        (OFFSET_SYNC_SETTINGS, flow.offset_sync),
        (HEARTBEAT_SETTINGS, flow.heartbeat),
        (STORAGE_SETTINGS, flow.connect),
    )
    for settings, part in parts:
        for setting in settings:
            yield setting, getattr(part, setting.field)
