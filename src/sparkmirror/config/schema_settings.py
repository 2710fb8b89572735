"""Settings for a flow's schema registries: addresses, users and TLS.

The settings stay in the process that asks a registry; no order to Spark's workers has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from sparkmirror.config.lookup import Lookup, Pair
from sparkmirror.config.model import RegistryConfig, SchemasConfig, SslConfig
from sparkmirror.config.setting import KeyScope, Setting
from sparkmirror.config.settings import SSL_SETTINGS
from sparkmirror.values import Hidden, HttpUrl

Side: TypeAlias = Literal["source", "target"]
SIDES: tuple[Side, Side] = ("source", "target")

SCHEMAS = "sparkmirror.schemas."
"""Prefix of all schema registry settings."""

_PAGE = "docs/schemas.md"


def _own(side: Side) -> tuple[Setting, ...]:
    def setting(name: str, kind: HttpUrl | Hidden, doc: str) -> Setting:
        field = name.replace(".", "_")
        return Setting(
            name=f"{SCHEMAS}{side}.{name}",
            kind=kind,
            place=KeyScope.CONNECTOR,
            doc=doc,
            origin=_PAGE,
            model=RegistryConfig,
            renamed=field,
        )

    return (
        setting(
            "url", HttpUrl(), "URL of the schema registry, up to the path where Confluent's API begins; no commas."
        ),
        setting("basic.auth.user.info", Hidden(), "`user:password` for the registry."),
        setting("bearer.auth.token", Hidden(), "A token for the registry, instead of user and password."),
    )


def _tls(side: Side) -> tuple[Setting, ...]:
    return tuple(
        replace(setting, name=f"{SCHEMAS}{side}.{setting.name}", place=KeyScope.CONNECTOR, renamed=setting.field)
        for setting in SSL_SETTINGS
    )


REGISTRY_SETTINGS: dict[Side, tuple[Setting, ...]] = {side: _own(side) for side in SIDES}
REGISTRY_TLS: dict[Side, tuple[Setting, ...]] = {side: _tls(side) for side in SIDES}
SCHEMA_SETTINGS = tuple(setting for side in SIDES for setting in (*REGISTRY_SETTINGS[side], *REGISTRY_TLS[side]))


def read_schemas(lookup: Lookup, pair: Pair) -> SchemasConfig:
    """Read a flow's registries; mistakes go into `lookup.mistakes`.

    Secrets behind references stay references.
    """
    return SchemasConfig(**{side: _registry(lookup, side, pair) for side in SIDES})


def _registry(lookup: Lookup, side: Side, pair: Pair) -> RegistryConfig:
    own, tls = REGISTRY_SETTINGS[side], REGISTRY_TLS[side]
    config = RegistryConfig.model_validate(lookup.given(own, pair))
    ssl = SslConfig.model_validate(lookup.given(tls, pair))
    providers = lookup.providers if _refers(lookup, (*own, *tls), pair) else ()
    return config.model_copy(update={"ssl": ssl, "providers": providers})


def _refers(lookup: Lookup, settings: Sequence[Setting], pair: Pair) -> bool:
    entries = [entry for setting in settings if setting.secret and (entry := lookup.entry(setting, pair)) is not None]
    return any(map(lookup.references, entries))
