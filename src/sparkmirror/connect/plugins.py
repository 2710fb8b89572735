"""Plug-ins: MirrorMaker 2's three connectors and their names in Connect."""

from __future__ import annotations

from sparkmirror.connect.definitions import COMMON, MIRROR, OWN, SOURCE_CONNECTOR, Definition
from sparkmirror.connect.plugin_versions import VersionRange

VERSION = "4.3.1"
"""Version of Kafka Connect whose REST interface and connectors these are.

Clients decide by this version.
"""

PACKAGE = "org.apache.kafka.connect.mirror."
CLASSES = tuple(sorted(PACKAGE + name for name in OWN))
_ALIAS_SUFFIX = "Connector"
_FAMILIES = {
    "converter": ("org.apache.kafka.connect.converters.ByteArrayConverter",),
    "header_converter": ("org.apache.kafka.connect.converters.ByteArrayConverter",),
}
"""Converters that connectors can name.

Records are copied as bytes, as ByteArrayConverter does.
"""


def find_class(name: str) -> str | None:
    """Return a connector's full class name, or None.

    `name` may be the full name, the short name (`MirrorSourceConnector`) or the alias (`MirrorSource`).
    """
    word = name.strip()
    for class_name in CLASSES:
        short = class_name.removeprefix(PACKAGE)
        if word in (class_name, short, short.removesuffix(_ALIAS_SUFFIX)):
            return class_name
    return None


def without_suffix(name: str) -> str:
    """Return a plug-in's name without the suffix `Connector`.

    Connect compares names so.
    """
    return name[: -len(_ALIAS_SUFFIX)] if name.endswith(_ALIAS_SUFFIX) and name != _ALIAS_SUFFIX else name


def not_found(name: str) -> str:
    """Return Connect's message for a class that is no known connector."""
    available = ", ".join(
        f"PluginDesc{{klass=class {class_name}, name='{class_name}', version='{VERSION}', encodedVersion={VERSION}, "
        "type=source, typeName='source', location='classpath'}"
        for class_name in CLASSES
    )
    return (
        f"Failed to find any class that implements Connector and which name matches {name}, "
        f"available connectors are: {available}"
    )


def definitions(class_name: str) -> tuple[Definition, ...]:
    """Return all settings of a connector in the order of Connect's validation."""
    return (*COMMON, *SOURCE_CONNECTOR, *MIRROR, *OWN[class_name.removeprefix(PACKAGE)])


def version_not_found(class_name: str, wanted: VersionRange) -> str:
    """Return Connect's message for a known plug-in without a fitting version."""
    return f"Plugin {class_name} not found that matches the version range {wanted}, available versions: [{VERSION}]"


def plugin_config(class_name: str) -> list[dict[str, object]]:
    """Return the answer of `/connector-plugins/{plugin}/config`."""
    ordered = (*COMMON, *MIRROR, *OWN[class_name.removeprefix(PACKAGE)], *SOURCE_CONNECTOR)
    return [definition.as_json() for definition in ordered]


def plugin_list(*, connectors_only: bool) -> list[dict[str, str]]:
    plugins = [{"class": name, "type": "source", "version": VERSION} for name in CLASSES]
    if not connectors_only:
        plugins += [
            {"class": name, "type": kind, "version": VERSION} for kind, names in _FAMILIES.items() for name in names
        ]
    return plugins
