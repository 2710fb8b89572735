"""Config providers: values kept elsewhere, written `${provider:path:name}`.

KIP-297, KIP-421 and KIP-887 define them. Each provider behaves like Kafka's class with the same name, with a
difference: a name that a declared provider lacks is an error here, and Kafka leaves the text as it stands. Only
references to the names in `config.providers` are looked for; any other text stays.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

import javaproperties
from pydantic import SecretStr

from sparkmirror.config.model import REFERENCE, ClusterConfig, ProviderConfig, SaslConfig, SslConfig
from sparkmirror.config.named_file import is_allowed, read_named_file
from sparkmirror.policy.java_regex import compile_java
from sparkmirror.veil import VEIL, Veil

CLASSES = ("EnvVarConfigProvider", "FileConfigProvider", "DirectoryConfigProvider")


def resolve(text: str, providers: Iterable[ProviderConfig], veil: Veil = VEIL) -> str:
    """Replace the references in `text` by the providers' values.

    `veil` hides the values from now on. Raise `ValueError` with the reference's name, never with a value.
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
    """Return a value from a properties file; this provider reads the file as UTF-8."""
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
    """Return a whole file's text; the file is in the directory itself."""
    path = Path(directory, name)
    if "/" in name or not path.is_file():
        raise ValueError("the directory has no such file")
    try:
        return read_named_file(path).decode("utf-8")
    except OSError as error:
        raise ValueError(f"the file can't be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError("the file is no text in UTF-8") from None
