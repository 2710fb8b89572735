"""Keys that can't be ignored: what they ask for would change what is copied, and isn't supported.

No message here repeats a value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sparkmirror.config.scopes import ScopedKey
from sparkmirror.config.values import Choice, ValueKind, Words
from sparkmirror.errors import ConfigError

CONVERTERS = (
    "org.apache.kafka.connect.converters.ByteArrayConverter",
    "ByteArrayConverter",
    "ByteArray",
    "io.confluent.connect.replicator.util.ByteArrayConverter",
)

_UNCHANGED = "records are copied unchanged: take this key out"
_CONVERTER = "records are copied as bytes: take this key out, or write " + CONVERTERS[0]
_JAVA = "Java classes can't be loaded: take this key out, or write "
_ASSERTION = "tokens are asked for with a client's id and secret, or come from a file: take this key out"

ACCEPTED: dict[str, tuple[tuple[str, ...], str]] = {
    "transforms": (("",), _UNCHANGED),
    "predicates": (("",), _UNCHANGED),
    "interceptor.classes": (("",), _UNCHANGED),
    "key.converter": (CONVERTERS, _CONVERTER),
    "value.converter": (CONVERTERS, _CONVERTER),
    "header.converter": (CONVERTERS, _CONVERTER),
    "forwarding.admin.class": (
        ("org.apache.kafka.clients.admin.ForwardingAdmin",),
        _JAVA + "org.apache.kafka.clients.admin.ForwardingAdmin",
    ),
    "ssl.engine.factory.class": (("",), "Java classes can't be loaded: take this key out"),
    "sasl.login.class": (("",), "Java classes can't be loaded: take this key out"),
    "sasl.oauthbearer.assertion.file": (("",), _ASSERTION),
    "sasl.oauthbearer.assertion.private.key.file": (("",), _ASSERTION),
}
"""The values that ask for nothing special, and what to say about any other; at every level and role."""


CHECKED: dict[str, ValueKind] = {
    "metric.names.formats": Words(("legacy", "new")),
    "errors.tolerance": Choice(("none", "all")),
    "exactly.once.source.support": Choice(("disabled", "preparing", "enabled"), any_case=True),
    "exactly.once.support": Choice(("requested", "required"), any_case=True),
}
"""Keys without effect whose values are Kafka's few words: any other is a mistake, which Kafka refuses, too."""


def refused(keys: Iterable[ScopedKey], flows: Iterable[tuple[str, str]]) -> Iterator[ConfigError]:
    """An error for each key whose effect on the data can't be left out."""
    pairs = tuple(flows)
    for key in keys:
        yield from _refused_value(key)
        yield from _refused_cluster(key, pairs)


def _refused_value(key: ScopedKey) -> Iterator[ConfigError]:
    if key.name in ACCEPTED:
        accepted, reason = ACCEPTED[key.name]
        if key.entry.value.strip() not in accepted:
            yield key.entry.error(reason)
    if key.name in CHECKED:
        try:
            CHECKED[key.name].parse(key.entry.value)
        except ValueError as error:
            yield key.entry.error(str(error))


def _refused_cluster(key: ScopedKey, flows: tuple[tuple[str, str], ...]) -> Iterator[ConfigError]:
    """Aliases come from one place; a second one would lead the copy elsewhere, but an empty one (`config.aliases`)."""
    if key.name in ("source.cluster.alias", "target.cluster.alias"):
        end = 0 if key.name.startswith("source") else 1
        meant = {flow[end] for flow in flows if key.prefix in ("", "->".join(flow) + ".")}
        if key.entry.value.strip() and meant - {key.entry.value.strip()}:
            yield key.entry.error("aliases come from the flow's own name: take this key out")
