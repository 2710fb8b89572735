"""A `Mirror`'s mm2.properties file, whichever form its spec has.

The forms are the file's text, a key in a Secret or ConfigMap, and short fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from javaproperties import join_key_value

from sparkmirror.config import MirrorConfig
from sparkmirror.config.entries import Entry
from sparkmirror.config.formats.files import file_of
from sparkmirror.config.formats.load import model_of, read_file
from sparkmirror.config.formats.secrets import Secrets
from sparkmirror.config.formats.strimzi_security import FieldError, security_settings
from sparkmirror.config.jaas import ELSEWHERE, jaas_has_secrets
from sparkmirror.config.model import REFERENCE
from sparkmirror.errors import ConfigError
from sparkmirror.operator.names import Key
from sparkmirror.operator.plan import mistakes_line, without_file
from sparkmirror.operator.references import Contents, ObjectReference, mounted_keys, secret_references

FILE = "mm2.properties"
DIRECTORY = "/etc/sparkmirror/config"
SECRETS = "/etc/sparkmirror/secrets"
"""Directory of the named Secrets in pods, as DIR/<name>/<key>.

The chart has the same.
"""
PROVIDER = "secrets"
"""Config provider for the Secrets that fields name."""

_FROM = {"secretKeyRef": "Secret", "configMapKeyRef": "ConfigMap"}
_SECRET = re.compile(
    r"(.*\.)?(\S*(password|secret|passphrase)|ssl\.keystore\.key|sasl\.jaas\.config|basic\.auth\.user\.info"
    r"|bearer\.auth\.token)"
)
"""Keys whose values are secrets."""
_LISTS = {
    "topics": "topics",
    "topicsExclude": "topics.exclude",
    "groups": "groups",
    "groupsExclude": "groups.exclude",
}


class FilePlace(NamedTuple):
    """Key in a Secret or ConfigMap with the file."""

    reference: ObjectReference
    key: str


def file_place(spec: Mapping[str, Any]) -> FilePlace | None:
    """Return the file's place; None if the spec itself has the file."""
    for field, kind in _FROM.items():
        named = (spec.get("propertiesFrom") or {}).get(field)
        if named:
            return FilePlace(ObjectReference(kind, str(named.get("name"))), str(named.get("key") or FILE))
    return None


def named_secrets(spec: Mapping[str, Any], namespace: str) -> tuple[ObjectReference, ...]:
    """Return the Secrets that the pods mount, in order.

    Raises `ConfigError` for a name that Kubernetes does not allow.
    """
    return secret_references(spec, namespace, ("clusters",), spec.get("secrets") or ())


def file_text(spec: Mapping[str, Any], key: Key, contents: Contents) -> str:
    """Return the file's text.

    Raises `ConfigError` if the text is missing, or if fields can't be used.
    """
    place = file_place(spec)
    if place is None:
        return spec["properties"] if spec.get("properties") else _text_of_fields(spec, key, contents)
    kind, name = place.reference
    values = contents.get(place.reference)
    if values is None:
        raise ConfigError(f"{kind} {name} is not there", origin=str(key), key="spec.propertiesFrom")
    if place.key not in values:
        reason = f"{kind} {name} has no key {place.key}; it has {', '.join(sorted(values)) or 'none'}"
        raise ConfigError(reason, origin=str(key), key="spec.propertiesFrom")
    try:
        return values[place.key].decode()
    except UnicodeDecodeError:
        reason = f"{kind} {name}: {place.key} is no text in UTF-8"
        raise ConfigError(reason, origin=str(key), key="spec.propertiesFrom") from None


class ReadMirror(NamedTuple):
    """Model of a Mirror's file, and the lines about keys without effect."""

    config: MirrorConfig
    warnings: tuple[str, ...]


def read_mirror(text: str, spec: Mapping[str, Any], key: Key) -> ReadMirror:
    """Read the file as `sparkmirror run` does, without resolving any reference.

    Raises `ConfigError` in one line: for mistakes, and for a password that is written out where others can read it.
    """
    try:
        reading = read_file(file_of(FILE, text), partly=True)
        if reading.format != "properties":
            raise ConfigError("has connectors: a Mirror takes a file of MirrorMaker 2's own", origin=str(key))
        config, _ = model_of(reading)
    except ConfigError as error:
        raise ConfigError(mistakes_line(error), origin=str(key)) from None
    place = file_place(spec)
    if place is None or place.reference.kind != "Secret":
        _refuse_passwords(reading.entries, key)
    return ReadMirror(config, tuple(dict.fromkeys(without_file(line, FILE) for line in config.warnings)))


def _refuse_passwords(entries: tuple[Entry, ...], key: Key) -> None:
    written = [entry.key for entry in entries if _is_written_out(entry)]
    if written:
        reason = (
            "a password is written out where all who may read the resource see it: put it into a Secret, name that in"
            f" spec.secrets, and write ${{{PROVIDER}:{SECRETS}/NAME:KEY}} here, or have the whole file in a Secret"
            " (spec.propertiesFrom.secretKeyRef)"
        )
        raise ConfigError(f"{written[0]}: {reason}", origin=str(key))


def _is_written_out(entry: Entry) -> bool:
    if not _SECRET.fullmatch(entry.key):
        return False
    value = REFERENCE.sub(ELSEWHERE, entry.value)
    if entry.key.endswith("jaas.config"):
        return jaas_has_secrets(value)
    return bool(value.replace(ELSEWHERE, "").strip())


def _text_of_fields(spec: Mapping[str, Any], key: Key, contents: Contents) -> str:
    return "".join(join_key_value(name, value) + "\n" for name, value in _settings_of_fields(spec, key, contents))


def _settings_of_fields(spec: Mapping[str, Any], key: Key, contents: Contents) -> Iterator[tuple[str, str]]:
    """Yield the mm2.properties keys that stand for the fields.

    `tls` and `authentication` are Strimzi's fields.
    """
    clusters, mirrors = spec.get("clusters") or (), spec.get("mirrors") or ()
    more = {str(name): str(value) for name, value in (spec.get("settings") or {}).items()}
    yield "clusters", ", ".join(str(cluster["alias"]) for cluster in clusters)
    if any(cluster.get("tls") or cluster.get("authentication") for cluster in clusters):
        names = [name.strip() for name in more.pop("config.providers", "").split(",") if name.strip()]
        yield "config.providers", ", ".join(dict.fromkeys((PROVIDER, *names)))
        yield f"config.providers.{PROVIDER}.class", "DirectoryConfigProvider"
    secrets = Secrets(mounted_keys(contents, SECRETS, PROVIDER))
    for index, cluster in enumerate(clusters):
        alias = cluster["alias"]
        yield f"{alias}.bootstrap.servers", str(cluster["bootstrapServers"])
        try:
            settings = list(security_settings(cluster, secrets))
        except FieldError as error:
            path = f"spec.clusters[{index}].{error.field}"
            raise ConfigError(error.reason, origin=str(key), key=path) from None
        for _, name, value in settings:
            yield f"{alias}.{name}", value
    if missing := secrets.missing():
        raise ConfigError("; ".join(missing), origin=str(key), key="spec.clusters")
    for mirror in mirrors:
        flow = f"{mirror['source']}->{mirror['target']}"
        yield f"{flow}.enabled", "true"
        for field, name in _LISTS.items():
            if mirror.get(field):
                yield f"{flow}.{name}", ", ".join(mirror[field])
        if mirror.get("tasksMax"):
            yield f"{flow}.tasks.max", str(mirror["tasksMax"])
    yield from sorted(more.items())
