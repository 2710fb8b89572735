"""Keys that can't be ignored: they ask for another copy, which isn't supported.

No message here repeats a value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sparkmirror.config.scopes import ScopedKey
from sparkmirror.errors import ConfigError
from sparkmirror.values import Choice, ValueKind, Words

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
"""Values that ask for nothing special, and the message for any other value.

The check is the same at every level and role.
"""


CHECKED: dict[str, ValueKind] = {
    "metric.names.formats": Words(("legacy", "new")),
    "errors.tolerance": Choice(("none", "all")),
    "exactly.once.source.support": Choice(("disabled", "preparing", "enabled"), any_case=True),
    "exactly.once.support": Choice(("requested", "required"), any_case=True),
}
"""Keys without effect that have a few fixed words as values.

Any other value is a mistake; Kafka refuses it, too.
"""


def refused(keys: Iterable[ScopedKey], flows: Iterable[tuple[str, str]]) -> Iterator[ConfigError]:
    """Yield an error for each key with an effect on the data that can't be left out."""
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
    """Refuse an alias that would lead the copy elsewhere.

    Aliases come from the flow's own name. An empty alias is allowed (`config.aliases`).
    """
    if key.name in ("source.cluster.alias", "target.cluster.alias"):
        end = 0 if key.name.startswith("source") else 1
        meant = {flow[end] for flow in flows if key.prefix in ("", "->".join(flow) + ".")}
        if key.entry.value.strip() and meant - {key.entry.value.strip()}:
            yield key.entry.error("aliases come from the flow's own name: take this key out")
