"""Config providers that a file declares, with their parameters.

`config/providers.py` resolves references to them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping

from sparkmirror.config.entries import Entry
from sparkmirror.config.model import ProviderConfig
from sparkmirror.config.providers import CLASSES
from sparkmirror.mistakes import Mistakes
from sparkmirror.policy.java_regex import compile_java
from sparkmirror.values import Names

PROVIDERS_KEY = "config.providers"
FAMILY = PROVIDERS_KEY + "."
PACKAGE = "org.apache.kafka.common.config.provider."
PARAMETERS = {CLASSES[0]: "allowlist.pattern", CLASSES[1]: "allowed.paths", CLASSES[2]: "allowed.paths"}
"""Each class's only parameter."""


def declared_providers(entries: Iterable[Entry], *, elsewhere: bool = False) -> tuple[ProviderConfig, ...]:
    """Return the providers that a file declares, in order; raise `ConfigError`.

    Each key's last statement counts. `elsewhere`: another machine will resolve the references, so that this one does
    not look for the allowed paths.
    """
    own = {entry.key: entry for entry in entries if entry.key == PROVIDERS_KEY or entry.key.startswith(FAMILY)}
    stated = own.get(PROVIDERS_KEY)
    if stated is None:
        return ()
    try:
        names = Names().parse(stated.value)
    except ValueError as error:
        raise stated.error(str(error)) from None
    mistakes = Mistakes()
    providers = []
    for name in dict.fromkeys(names):
        with mistakes.gathered():
            providers.append(_provider(name, stated, own, elsewhere=elsewhere))
    mistakes.stop()
    return tuple(providers)


def provider_keys(providers: Iterable[ProviderConfig]) -> Iterator[str]:
    """Yield the keys that have an effect on these providers."""
    yield PROVIDERS_KEY
    for provider in providers:
        yield f"{FAMILY}{provider.name}.class"
        yield f"{FAMILY}{provider.name}.param.{PARAMETERS[provider.kind]}"


def _provider(name: str, stated: Entry, own: Mapping[str, Entry], *, elsewhere: bool) -> ProviderConfig:
    class_entry = own.get(f"{FAMILY}{name}.class")
    known = ", ".join(PACKAGE + kind for kind in CLASSES)
    if class_entry is None:
        raise stated.error(f"{name} has no class: write {FAMILY}{name}.class = one of {known}")
    kind = class_entry.value.strip().removeprefix(PACKAGE)
    kind = kind if kind in CLASSES else f"{kind}ConfigProvider"
    if kind not in CLASSES:
        raise class_entry.error(f"Java classes can't be loaded: write one of {known}")
    parameter = own.get(f"{FAMILY}{name}.param.{PARAMETERS[kind]}")
    if parameter is None:
        return ProviderConfig(name=name, kind=kind)
    if kind == CLASSES[0]:
        return ProviderConfig(name=name, kind=kind, allowlist_pattern=_pattern(parameter))
    return ProviderConfig(name=name, kind=kind, allowed_paths=allowed_paths(parameter, elsewhere=elsewhere))


def _pattern(parameter: Entry) -> str:
    try:
        compile_java(parameter.value.strip())
    except ValueError as error:
        raise parameter.error(str(error)) from None
    return parameter.value.strip()


def allowed_paths(parameter: Entry, *, elsewhere: bool = False) -> tuple[str, ...] | None:
    """Return paths separated by commas, as Kafka's `AllowedPaths`; None: all paths.

    `elsewhere`: the paths are another machine's, and are not looked for. Raises `ConfigError`.
    """
    paths = [path.strip() for path in parameter.value.split(",") if path.strip()]
    for path in paths:
        if not os.path.isabs(path) or not (elsewhere or os.path.exists(path)):
            raise parameter.error(f"{path} must be an absolute path of something that exists")
    return tuple(os.path.normpath(path) for path in paths) or None
