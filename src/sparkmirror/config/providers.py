"""Config providers: values kept elsewhere, written `${provider:path:name}`.

KIP-297, KIP-421 and KIP-887 define them. Each provider behaves like Kafka's class of the same name, with a difference:
a name that a declared provider lacks is an error here, and Kafka leaves the text as it stands. Only references to the
names in `config.providers` are looked for; any other text stays.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import javaproperties
from pydantic import SecretStr

from sparkmirror.config.entries import Entry
from sparkmirror.config.mistakes import Mistakes
from sparkmirror.config.model import REFERENCE, ClusterConfig, ProviderConfig, SaslConfig, SslConfig
from sparkmirror.config.named_file import allowed_paths, is_allowed, read_named_file
from sparkmirror.config.values import Names
from sparkmirror.policy.java_regex import compile_java
from sparkmirror.veil import VEIL, Veil

PROVIDERS_KEY = "config.providers"
FAMILY = PROVIDERS_KEY + "."
PACKAGE = "org.apache.kafka.common.config.provider."
CLASSES = ("EnvVarConfigProvider", "FileConfigProvider", "DirectoryConfigProvider")
PARAMETERS = {CLASSES[0]: "allowlist.pattern", CLASSES[1]: "allowed.paths", CLASSES[2]: "allowed.paths"}
"""Only parameter of each class."""


def declared_providers(entries: Iterable[Entry], *, elsewhere: bool = False) -> tuple[ProviderConfig, ...]:
    """Return the providers that a file declares, in order; raise `ConfigError`.

    The last statement of each key counts. `elsewhere`: another machine will resolve the references, so that this one
    does not look for the allowed paths.
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


def resolve(text: str, providers: Iterable[ProviderConfig], veil: Veil = VEIL) -> str:
    """Replace the references in `text` by the providers' values.

    `veil` hides the values from now on. Raise `ValueError` with the name of the reference, never with a value.
    """
    by_name = {provider.name: provider for provider in providers}

    def value(reference: re.Match[str]) -> str:
        provider = by_name.get(reference[1])
        if provider is None:
            return reference[0]
        try:
            resolved = _value(provider, reference[3] or "", reference[4])
        except ValueError as error:
            raise ValueError(f"{reference[0]} has no value: {error}") from None
        veil.put(reference[0], resolved)
        return resolved

    return REFERENCE.sub(value, text)


def references(text: str, providers: Iterable[ProviderConfig]) -> tuple[list[str], list[str]]:
    """Return `text`'s references to declared providers, then to unknown providers."""
    names = {provider.name for provider in providers}
    all_matches = list(REFERENCE.finditer(text))
    return [match[0] for match in all_matches if match[1] in names], [
        match[0] for match in all_matches if match[1] not in names
    ]


def with_secrets(cluster: ClusterConfig) -> ClusterConfig:
    """Return the cluster with secrets in place of references; raise `ValueError`.

    The process that connects resolves the references: so secrets don't travel, and renewed secrets count.
    """
    if not cluster.providers:
        return cluster

    def resolved(part: SslConfig | SaslConfig) -> SslConfig | SaslConfig:
        secrets = {
            field: SecretStr(resolve(value.get_secret_value(), cluster.providers).strip())
            for field, value in part
            if isinstance(value, SecretStr)
        }
        return part.model_copy(update=secrets)

    return cluster.model_copy(update={"ssl": resolved(cluster.ssl), "sasl": resolved(cluster.sasl), "providers": ()})


def _value(provider: ProviderConfig, path: str, name: str) -> str:
    if provider.kind == CLASSES[0]:
        return _variable(provider, path, name)
    if not path:
        raise ValueError("it names no path: write ${" + provider.name + ":path:name}")
    if not is_allowed(path, provider.allowed_paths):
        raise ValueError("its path is not among allowed.paths")
    return _property(path, name) if provider.kind == CLASSES[1] else _file(path, name)


def _variable(provider: ProviderConfig, path: str, name: str) -> str:
    if path:
        raise ValueError("an environment variable has no path: write ${" + provider.name + ":" + name + "}")
    if not compile_java(provider.allowlist_pattern).fullmatch(name):
        raise ValueError("its name does not match allowlist.pattern")
    if name not in os.environ:
        raise ValueError("there is no such environment variable")
    return os.environ[name]


def _property(path: str, name: str) -> str:
    """Return a value of a properties file; this provider reads the file as UTF-8."""
    try:
        properties = javaproperties.loads(read_named_file(path).decode("utf-8"))
    except OSError as error:
        raise ValueError(f"the file can't be read: {error.strerror}") from None
    except (UnicodeDecodeError, javaproperties.InvalidUEscapeError):
        raise ValueError("the file is no properties file in UTF-8") from None
    if name not in properties:
        raise ValueError("the file has no such key")
    return str(properties[name])


def _file(directory: str, name: str) -> str:
    """Return the text of a whole file; the file lies in the directory itself."""
    path = Path(directory, name)
    if "/" in name or not path.is_file():
        raise ValueError("the directory has no such file")
    try:
        return read_named_file(path).decode("utf-8")
    except OSError as error:
        raise ValueError(f"the file can't be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError("the file is no text in UTF-8") from None
