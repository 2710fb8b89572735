"""Generator of `docs/configuration.md` from the declared settings.

So the page can't go stale. `python -m tools.configuration_page > docs/configuration.md` writes it again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from pydantic import SecretStr

from sparkmirror.config import known_keys
from sparkmirror.config.declared_providers import FAMILY, PACKAGE, PARAMETERS, PROVIDERS_KEY
from sparkmirror.config.duty_settings import (
    GROUP_SETTINGS,
    HEARTBEAT_SETTINGS,
    OFFSET_SYNC_SETTINGS,
    STORAGE_SETTINGS,
    TOPIC_SYNC_SETTINGS,
)
from sparkmirror.config.metrics_settings import METRICS_SETTINGS
from sparkmirror.config.providers import CLASSES
from sparkmirror.config.refusals import ACCEPTED, CHECKED
from sparkmirror.config.schema_settings import REGISTRY_SETTINGS, REGISTRY_TLS
from sparkmirror.config.setting import KeyScope, Setting
from sparkmirror.config.settings import (
    ADMIN_SETTINGS,
    ENABLED,
    FETCH_SETTINGS,
    FLOW_SETTINGS,
    LOG_FORMAT,
    LOSS_SETTINGS,
    PRODUCE_SETTINGS,
    SASL_SETTINGS,
    SECURITY_PROTOCOL,
    SOURCE_SERVERS,
    SSL_SETTINGS,
)
from sparkmirror.values import (
    INT_MAX,
    LONG_MAX,
    Additions,
    Boolean,
    Choice,
    ClassName,
    Flag,
    HttpUrl,
    Integer,
    Listeners,
    TlsVersions,
    ValueKind,
)

_AS_OF_CLUSTERS = {setting.name: setting for setting in SSL_SETTINGS}
"""A cluster's TLS keys, by name: listeners and registries have them, too, with more before them."""

_HEAD = """\
# Configuration

The file is MirrorMaker 2's own `mm2.properties`. `sparkmirror config FILE` prints what counts for each flow of a file
and which key gave each value. `python -m tools.configuration_page` writes this page.

`A->B.` before a key means this flow only, `A.` its source, `B.` its target, "alone" all flows. Of several places the
first with a value counts. As with MirrorMaker 2, `consumer.`, `producer.` and `admin.` without an alias count nowhere;
here mostly a warning says so.

Lists are separated by commas. An empty item stops the run; a repeated item counts once, in most lists with a warning.
If a key is written twice, its last value counts, with a warning. All mistakes of a file are reported at once, a line
each.

Values are read as Kafka's classes read them. A `#` after a value is a part of it. `A->B.enabled`, and
`A->B.emit.heartbeats.enabled` without that flow, is true if it says `true`, else false; any other boolean must be
`true` or `false`. A number has digits and a sign, nothing else. Brokers are `host:port`; an IPv6 address may stand in
brackets. A `scheme://` before it is ignored. A cluster's brokers may be written again in a key of a client or a flow,
if they are the same.
The old names `topics.blacklist`, `groups.blacklist` and `config.properties.blacklist` are read as `….exclude`.

A filter or policy of your own ([topics.md](topics.md#your-own-in-python)) is given the keys that MirrorMaker 2 would
give to a Java class, but no secrets, and from a config provider only lists of topics, groups and properties, separators
and `use.defaults.from`. Its own keys are written with `A->B.` before them; a policy's may also stand
alone, as `replication.policy.<name>`.
"""

_CLUSTERS = """
`clusters` names the aliases; every ordered pair of them with `A->B.enabled = true` is a flow. As with MirrorMaker 2,
the other pairs send heartbeats into their targets, too, unless `emit.heartbeats.enabled` is false for them. If no
flow is enabled the run stops, but not where `A->B.emit.heartbeats.enabled = true` asks for a pair's heartbeats.

A key that begins with `security.`, `ssl.` or `sasl.` may have another value
[for the clients that copy](security.md#where-keys-are-looked-for).
"""

_SPARK = """
A key that begins with `spark.` is a setting of Spark, for all flows of the file. `--spark KEY=VALUE` wins over it;
MirrorMaker 2 ignores these keys. One is sparkmirror's own: `spark.sparkmirror.standby.warm` ([spark.md](spark.md)).
"""

_REGISTRIES = """
For `sparkmirror schemas check` ([schemas.md](schemas.md)). Each key exists once more for the target's registry, with
`target.` instead of `source.`.
"""

_PROVIDERS = """
In any value, `${name:path:key}` is replaced by the value that the provider `name` has. Only providers listed in
`config.providers` count. A needed value that can't be found stops the run; Kafka would continue with the text itself.
`sparkmirror config` masks values that came from a provider. Passwords and keys of `ssl.` and `sasl.` are resolved in
[the process that makes the connection](security.md#secrets), all other values once, when a run starts.

| key | default | what it does here |
|---|---|---|"""

_REFUSED = f"""
These keys would change which records are copied, or how. Any value but the listed ones stops the run. So does a
word that Kafka doesn't know in
{", ".join(f"`{key}`" for key in CHECKED)}.

| key | value | why |
|---|---|---|
"""

_IDLE = """
MirrorMaker 2, Kafka Connect or Kafka's clients know these keys. They have no effect here. A warning says so, unless the
value asks for something that sparkmirror does anyway. The defaults are Kafka's.
"""


def reference() -> str:
    return "\n".join(_page()) + "\n"


def _page() -> Iterator[str]:
    yield _HEAD
    yield "## Clusters and flows"
    yield _CLUSTERS
    yield from _settings((ENABLED, SOURCE_SERVERS, SECURITY_PROTOCOL, *SSL_SETTINGS, *SASL_SETTINGS))
    sections = {
        "Asking a cluster": ADMIN_SETTINGS,
        "Copying": FLOW_SETTINGS,
        "Losses": LOSS_SETTINGS,
        "Fetching from the source": FETCH_SETTINGS,
        "Writing to the target": PRODUCE_SETTINGS,
        "Topics' properties and ACLs": TOPIC_SYNC_SETTINGS,
        "Consumer groups": GROUP_SETTINGS,
        "Offset syncs": OFFSET_SYNC_SETTINGS,
        "Heartbeats": HEARTBEAT_SETTINGS,
        "Offsets of Kafka Connect": STORAGE_SETTINGS,
        "Logging": (LOG_FORMAT,),
        "Metrics": METRICS_SETTINGS,
    }
    for title, settings in sections.items():
        yield f"## {title}\n"
        yield from _settings(settings)
    yield "## Spark"
    yield _SPARK
    yield "## Schema registries"
    yield _REGISTRIES
    yield from _settings((*REGISTRY_SETTINGS["source"], *REGISTRY_TLS["source"]))
    yield "## Config providers"
    yield _PROVIDERS
    yield from _providers()
    yield "## What is refused"
    yield _REFUSED + "\n".join(_refused()) + "\n"
    yield "## What has no effect"
    yield _IDLE
    titles: dict[str, Mapping[str, known_keys.IdleKey]] = {
        "Keys of MirrorMaker 2's connectors": known_keys.CONNECTOR,
        "Keys of every connector": known_keys.CONNECTOR_BASE,
        "Keys of Kafka Connect": known_keys.CONNECT,
        "Keys of consumers, producers and admin clients that no table above has": known_keys.CLIENT,
    }
    for title, keys in titles.items():
        yield f"### {title}\n"
        yield from _idle(keys.values())


def _settings(settings: Iterable[Setting]) -> Iterator[str]:
    """A table, with the usual place above it and other places in a column; keys as a cluster's have one row."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for setting in settings:
        known = _AS_OF_CLUSTERS.get(setting.name[setting.name.rfind(".ssl.") + 1 :])
        alike = known is not None and setting.name != known.name and _facts(setting) == _facts(known)
        facts = ("", "", "As the cluster's `ssl.` key of that name.") if alike else _facts(setting)
        rows.setdefault((*facts, _places(setting), "" if alike else setting.name), []).append(_code(setting.name))
    usual, _ = Counter(places for _, _, _, places, _ in rows).most_common(1)[0]
    others = {places for _, _, _, places, _ in rows} - {usual}
    yield f"Where{', unless a row says otherwise' if others else ''}: {usual}.\n"
    yield "| key | values | default | what it does here |" + (" where |" if others else "")
    yield "|---|---|---|---|" + ("---|" if others else "")
    for (values, default, doc, places, _), names in rows.items():
        cells = (", ".join(names), values, default, doc)
        yield _row((*cells, "" if places == usual else places) if others else cells)
    yield ""


def _facts(setting: Setting) -> tuple[str, str, str]:
    return _values(setting.kind), _default(setting), setting.doc


def _providers() -> Iterator[str]:
    environment, files, _ = CLASSES
    classes = ", ".join(map(_code, CLASSES)) + f"; also with `{PACKAGE}` before it."
    parameter = f"{FAMILY}<name>.param."
    yield _row((_code(PROVIDERS_KEY), "", "Names of the providers that count."))
    yield _row((_code(f"{FAMILY}<name>.class"), "", classes))
    allowed = "Environment variables that may be read: a regex that matches whole names."
    yield _row((_code(parameter + PARAMETERS[environment]), "`.*`", allowed))
    allowed = "Files and directories that may be read: absolute paths, separated by commas."
    yield _row((_code(parameter + PARAMETERS[files]), "all", allowed))
    yield ""


def _refused() -> Iterator[str]:
    rows: dict[tuple[str, str], list[str]] = {}
    for key, (accepted, reason) in ACCEPTED.items():
        values = ", ".join(_code(value) if value else "nothing" for value in accepted)
        rows.setdefault((values, reason), []).append(_code(key))
    yield from (_row((", ".join(keys), values, reason)) for (values, reason), keys in rows.items())


def _idle(keys: Iterable[known_keys.IdleKey]) -> Iterator[str]:
    rows: dict[str, list[str]] = {}
    for key in keys:
        default = "" if key.default == "-" else f" = {_code(key.default)}"
        rows.setdefault(key.reason, []).append(_code(key.name) + default)
    yield "| keys, with their defaults | why they have no effect |"
    yield "|---|---|"
    yield from (_row((", ".join(names), reason)) for reason, names in rows.items())
    yield ""


def _values(kind: ValueKind) -> str:
    match kind:
        case Boolean() | Flag():
            return "true, false"
        case Choice():
            return ", ".join(_code(option) if option else "nothing" for option in kind.options)
        case Integer():
            high = "" if kind.high in (INT_MAX, LONG_MAX, LONG_MAX // 1000) else f" to {kind.high}"
            also = "" if kind.also is None else f", or {kind.also}"
            return f"from {kind.low}{high}{also}"
        case ClassName():
            return ", ".join(map(_code, (*kind.known, "module:Class")))
        case HttpUrl():
            return "http://host:port/…"
        case Listeners():
            return "http://host:port, …"
        case TlsVersions():
            return ", ".join(map(_code, kind.spoken))
        case Additions():
            return "list, or `+item, …`"
    return {"Names": "list", "Endpoints": "host:port, …"}.get(type(kind).__name__, "text")


def _default(setting: Setting) -> str:
    value = setting.default
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ", ".join(map(_code, value))
    return "" if value is None or isinstance(value, SecretStr) or value == "" else _code(str(value))


def _places(setting: Setting) -> str:
    prefixes = [key.removesuffix(setting.name) for key in setting.place.keys(setting.name, "A", "B")]
    if prefixes[0] == "A.":
        prefixes[:1] = ["A.` or `B."]
    if setting.place is KeyScope.SOURCE_ADMIN:
        prefixes = ["A->B.source.admin.` or `A->B.target.admin.", "A.admin.` or `B.admin.", "A->B.admin."]
    return ", ".join(f"`{prefix}`" if prefix else "alone" for prefix in prefixes)


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _code(text: str) -> str:
    return "`" + text.replace("|", "\\|") + "`"


if __name__ == "__main__":
    print(reference(), end="")
