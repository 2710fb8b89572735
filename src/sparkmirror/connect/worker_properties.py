"""Read a Connect worker's own file, `connect-distributed.properties`.

Keys without effect are named in warnings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import SecretStr

from sparkmirror.config import ClusterConfig
from sparkmirror.config.clusters import read_cluster
from sparkmirror.config.declared_providers import declared_providers
from sparkmirror.config.entries import Entry, Properties, read_entries
from sparkmirror.config.known_keys import CLIENT, CONNECT, CONNECT_FAMILIES, CONNECTOR_BASE
from sparkmirror.config.lookup import Lookup
from sparkmirror.config.model import ProviderConfig, SslConfig
from sparkmirror.config.providers import resolve
from sparkmirror.config.settings import LOG_FORMAT, SSL_SETTINGS, TARGET_SERVERS
from sparkmirror.connect.basic_auth import EXTENSION
from sparkmirror.connect.loadable import KEYS, Loadable, read_loadable
from sparkmirror.connect.manners import CrossOrigin
from sparkmirror.errors import ConfigError
from sparkmirror.values import (
    FACTOR,
    PORT_MAX,
    Boolean,
    Choice,
    Integer,
    Names,
    Value,
    ValueKind,
    listener_parts,
)
from sparkmirror.web.browser_guard import Trusted, trusted_hosts
from sparkmirror.web.listener import Listener

ALIAS = "target"
"""Cluster alias in messages; each connector has its own alias for the cluster."""

_HTTPS = "listeners.https."
_CLIENT_AUTH = Choice(("none", "requested", "required"), any_case=True)
_NEEDED = {
    "group.id": "the name of the group of workers",
    "config.storage.topic": "where connectors' configurations are",
    "offset.storage.topic": "where connectors' offsets are",
    "status.storage.topic": "where connectors' states are",
}
_PASSED_ON = ("producer.", "admin.")
_READ_BY_FLOWS = ("offset.flush.interval.ms", "session.timeout.ms", *KEYS)
"""Keys that the connectors' runner reads for itself."""
_FOR_CONNECTORS = (
    *_READ_BY_FLOWS,
    *_PASSED_ON,
    "bootstrap.servers",
    "security.protocol",
    "ssl.",
    "sasl.",
    "offset.storage.",
    "config.providers",
    "group.id",
    "key.converter",
    "value.converter",
    "header.converter",
    "spark.",
)
"""Prefixes under which connectors' flows read the file's keys.

All other keys were obeyed, or named as ineffective, when the file was read.
"""
_READ_ELSEWHERE = ("ssl.", "sasl.", "spark.", "offset.storage.", _HTTPS)
_BYTES = "records are copied as bytes; where this is no ByteArrayConverter, each connector must name one"
_WHOSE = "say for which client, with producer. or admin. before it"
_NAMES = "access.control.allow.origin, as an origin (https://NAME)"
"""Key for a reverse proxy's name.

`rest.advertised.host.name` admits a name, too, but is the address that other processes use.
"""
_IDLE = {
    "admin.listeners": "the admin endpoints are at all listeners",
    "client.id": _WHOSE,
    "config.storage.": "the topic is compacted, and otherwise as the broker makes it",
    "consumer.": "it is for sink connectors; set a source's consumer in its connector, with consumer. before the key",
    "request.timeout.ms": _WHOSE,
    "status.storage.": "the topic is compacted, and otherwise as the broker makes it",
    "inter.worker.": "a request is sent on with its own credentials",
    "key.converter": _BYTES,
    "value.converter": _BYTES,
    "rest.host.name": "Kafka Connect dropped it in 3.0; write listeners = http://HOST:8083",
    "rest.port": "Kafka Connect dropped it in 3.0; write listeners = http://:8083",
    "sparkmirror.metrics.hosts": f"write a reverse proxy's name into {_NAMES}",
    "sparkmirror.metrics.": "metrics are at the interface's own listeners, and at --metrics-port",
    "sparkmirror.": "write it into the source connector, as it is here",
}
"""Reason by prefix of keys without effect, if different from MirrorMaker 2's file."""


@dataclass(frozen=True, slots=True)
class StorageSettings:
    """One storage topic's settings."""

    topic: str
    partitions: int
    replication_factor: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerConfig:
    """Content of the worker's file."""

    path: str
    settings: Mapping[str, Entry]
    """All the file's keys, unresolved, for the connectors' runner."""
    cluster: ClusterConfig
    """The worker's Kafka cluster, and its flows' default target."""
    group_id: str
    configs: StorageSettings
    statuses: StorageSettings
    session_timeout_ms: int
    listeners: tuple[Listener, ...]
    advertised: Listener
    cross_origin: CrossOrigin
    response_headers: tuple[tuple[str, str], ...]
    https: SslConfig | None
    """TLS settings for the https listeners; None without such a listener."""
    client_auth: str
    """Certificates from https clients: `none`, `requested` or `required`."""
    basic_auth: bool
    admin: bool
    """True if the REST interface has paths under `/admin`."""
    topic_tracking: bool
    topic_reset: bool
    """True if clients may reset the topics in use."""
    providers: tuple[ProviderConfig, ...]
    loadable: Loadable
    log_format: str
    warnings: tuple[str, ...]

    @property
    def for_connectors(self) -> dict[str, Entry]:
        """The file's settings that connectors' flows read."""
        return {
            key: entry
            for key, entry in self.settings.items()
            if key.startswith(_FOR_CONNECTORS) and key not in ("admin.listeners", LOG_FORMAT.name)
        }

    @property
    def worker_id(self) -> str:
        """Address `host:port`, as Connect names its workers."""
        return self.advertised.address

    def resolve(self, text: str) -> str:
        """Resolve references by the file's config providers.

        Raises `ValueError`, which names the reference and no value.
        """
        return resolve(text, self.providers)

    @property
    def trusted(self) -> Trusted:
        """Names for browsers, and origins whose pages may send requests."""
        hosts = (self.advertised.host, *(listener.host for listener in self.listeners))
        return trusted_hosts(hosts, _NAMES, self.cross_origin.origins)

    @property
    def url(self) -> str:
        """Advertised URL, at which other processes reach this process."""
        return self.advertised.url


def read_worker_properties(path: str) -> WorkerConfig:
    """Read a worker's file. Raises `ConfigError`."""
    entries = read_entries(path)
    lookup = Lookup(path, Properties(entries, [], ()), declared_providers(entries))
    return _WorkerReader(lookup).read()


class _WorkerReader:
    """Read a worker's file once."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
        self._known: set[str] = set()

    def read(self) -> WorkerConfig:
        lookup = self._lookup
        self._refuse_others()
        for key, what in _NEEDED.items():
            if not self._text(key):
                lookup.mistakes.add(ConfigError(f"is missing: write {key}, {what}", origin=lookup.path, key=key))
        lookup.mistakes.stop()
        listeners = self._listeners()
        encrypted = any(listener.scheme == "https" for listener in listeners)
        return WorkerConfig(
            path=lookup.path,
            settings=dict(lookup.properties),
            cluster=self._cluster(),
            group_id=self._text("group.id"),
            configs=self._storage("config", partitions=1),
            statuses=self._storage("status", partitions=5),
            session_timeout_ms=int(self._value("session.timeout.ms", Integer(1), 10_000)),
            listeners=listeners,
            advertised=self._advertised(listeners),
            cross_origin=self._cross_origin(),
            response_headers=self._response_headers(),
            https=self._https() if encrypted else None,
            client_auth=self._client_auth(),
            basic_auth=self._basic_auth(),
            admin=self._admin(),
            topic_tracking=bool(self._value("topic.tracking.enable", Boolean(), True)),
            topic_reset=bool(self._value("topic.tracking.allow.reset", Boolean(), True)),
            providers=lookup.providers,
            loadable=read_loadable(lookup.properties),
            log_format=self._log_format(),
            warnings=(*lookup.warnings, *self._unused()),
        )

    def _cluster(self) -> ClusterConfig:
        cluster = read_cluster(self._lookup, TARGET_SERVERS, ALIAS, ("", ALIAS))
        self._lookup.mistakes.stop()
        return cluster

    def _refuse_others(self) -> None:
        """Raise `ConfigError` with advice for a standalone worker's or a connector's file."""
        lookup = self._lookup
        alone = lookup.properties.get("offset.storage.file.filename")
        if alone is not None and not self._text("group.id"):
            raise alone.error(
                "is of a standalone worker, which has no REST interface's topics: give this file and its connectors'"
                " files, in one directory, to sparkmirror run; or write " + ", ".join(_NEEDED)
            )
        connector = lookup.properties.get("connector.class")
        if connector is not None:
            raise connector.error(
                "is of a connector: put it to a running sparkmirror serve, or give it to sparkmirror run"
            )

    def _text(self, key: str, default: str = "") -> str:
        self._known.add(key)
        entry = self._lookup.properties.get(key)
        return default if entry is None else self._lookup.text(entry).strip()

    def _value(self, key: str, kind: ValueKind, default: int) -> int:
        text = self._text(key)
        if not text:
            return default
        return int(_parsed(self._lookup.properties[key], kind, text))  # type: ignore[arg-type]

    def _names(self, key: str, default: Sequence[str] = ()) -> tuple[str, ...]:
        text = self._text(key)
        if not text:
            return tuple(default)
        names = _parsed(self._lookup.properties[key], Names(), text)
        return names if isinstance(names, tuple) else ()

    def _log_format(self) -> str:
        text = self._text(LOG_FORMAT.name)
        value = _parsed(self._lookup.properties[LOG_FORMAT.name], LOG_FORMAT.kind, text) if text else LOG_FORMAT.default
        return str(value)

    def _storage(self, kind: str, *, partitions: int) -> StorageSettings:
        prefix = f"{kind}.storage."
        own = partitions
        if kind != "config":  # the configuration topic has one partition, whatever the file states
            own = self._value(prefix + "partitions", Integer(1, also=-1), partitions)
        return StorageSettings(
            topic=self._text(prefix + "topic"),
            partitions=own,
            replication_factor=self._value(prefix + "replication.factor", FACTOR, 3),
        )

    def _listeners(self) -> tuple[Listener, ...]:
        listeners = []
        for text in self._names("listeners", ("http://:8083",)):
            try:
                listeners.append(Listener(*listener_parts(text)))
            except ValueError as error:
                raise self._lookup.properties["listeners"].error(str(error)) from None
        return tuple(listeners)

    def _advertised(self, listeners: Sequence[Listener]) -> Listener:
        """Return the advertised listener, as Connect's `RestServer.advertisedUrl`.

        Missing parts come from the first listener with the scheme.
        """
        scheme = self._text("rest.advertised.listener", self._text("listeners", "http").partition(":")[0]).lower()
        first = next((listener for listener in listeners if listener.scheme == scheme), listeners[0])
        port = self._value("rest.advertised.port", Integer(1, PORT_MAX), first.port)
        host = self._text("rest.advertised.host.name").strip("[]")
        return Listener(first.scheme, host or first.host or _own_address(), port)

    def _cross_origin(self) -> CrossOrigin:
        origins = self._names("access.control.allow.origin")
        methods = self._names("access.control.allow.methods", CrossOrigin().methods)
        return CrossOrigin(origins, methods)

    def _response_headers(self) -> tuple[tuple[str, str], ...]:
        """Parse items `[action] name: value`, separated by commas.

        Actions `set` and `add` are known; the actions for dates are refused.
        """
        headers = []
        for item in self._names("response.http.headers.config"):
            match = re.fullmatch(r'"?(set|add)\s+([\w-]+)\s*:\s*(.*?)"?', item.strip())
            if match is None:
                entry = self._lookup.properties["response.http.headers.config"]
                raise entry.error(f"{item!r} is not allowed, it must be: set NAME: VALUE, or add NAME: VALUE")
            headers.append((match[2], match[3]))
        return tuple(headers)

    def _https(self) -> SslConfig:
        """Read `listeners.https.ssl.*`, or `ssl.*` if no such key exists."""
        prefix = _HTTPS if any(key.startswith(_HTTPS) for key in self._lookup.properties) else ""
        fields: dict[str, object] = {}
        for setting in SSL_SETTINGS:
            key = prefix + setting.name
            self._known.add(key)
            if key not in self._lookup.properties:
                continue
            entry = self._lookup.properties[key]
            value = _parsed(entry, setting.kind, self._resolved(entry))
            fields[setting.field] = SecretStr(str(value)) if setting.secret else value
        if "keystore_location" not in fields and "keystore_key" not in fields:
            key = (prefix or _HTTPS) + "ssl.keystore.location"
            raise ConfigError(
                "is missing: https listeners need a key and a certificate", origin=self._lookup.path, key=key
            )
        return SslConfig.model_validate(fields)

    def _client_auth(self) -> str:
        """Read `listeners.https.ssl.client.auth`, or `ssl.client.auth` if missing."""
        keys = (_HTTPS + "ssl.client.auth", "ssl.client.auth")
        self._known.update(keys)
        entry = next((self._lookup.properties[key] for key in keys if key in self._lookup.properties), None)
        return "none" if entry is None else str(_parsed(entry, _CLIENT_AUTH, self._resolved(entry)))

    def _resolved(self, entry: Entry) -> str:
        try:
            return resolve(entry.value, self._lookup.providers)
        except ValueError as error:
            raise entry.error(str(error)) from None

    def _admin(self) -> bool:
        """Return False for an empty `admin.listeners`, which turns `/admin` off.

        Connect's `RestServer.configureAdminResources` does the same.
        """
        entry = self._lookup.properties.get("admin.listeners")
        if entry is None or entry.value.strip():
            return True
        self._known.add("admin.listeners")
        return False

    def _basic_auth(self) -> bool:
        extensions = self._names("rest.extension.classes")
        unknown = [name for name in extensions if name != EXTENSION]
        if unknown:
            entry = self._lookup.properties["rest.extension.classes"]
            raise entry.error(f"{unknown[0]}: Java classes can't be loaded; only {EXTENSION} is known here")
        return bool(extensions)

    def _unused(self) -> list[str]:
        """Return a warning for each key without effect."""
        lines = []
        for key, entry in self._lookup.properties.items():
            if key in self._known or key in self._lookup.looked_up:
                continue
            if key.startswith((*_PASSED_ON, "config.providers")) and key not in _IDLE:
                continue
            if key in _READ_BY_FLOWS or key in _NEEDED or key.startswith(_READ_ELSEWHERE):
                continue
            lines.append(entry.note(f"has no effect: {_why_idle(key)}"))
        return lines


def _why_idle(key: str) -> str:
    own = next((reason for start, reason in _IDLE.items() if key.startswith(start)), "")
    known = {**CLIENT, **CONNECTOR_BASE, **CONNECT}.get(key)
    family = next((reason for start, reason in CONNECT_FAMILIES.items() if key.startswith(start)), "")
    return own or (known.reason if known else family) or "it is no setting of a Connect worker"


def _parsed(entry: Entry, kind: ValueKind, text: str) -> Value:
    try:
        return kind.parse(text)
    except ValueError as error:
        resolved = text.strip() != entry.value.strip()
        raise entry.error("its value from the config provider is not allowed" if resolved else str(error)) from None


def _own_address() -> str:
    """Return this machine's address, for a listener on all addresses.

    Java's `InetAddress` would give the same address.
    """
    import socket

    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return "127.0.0.1"
