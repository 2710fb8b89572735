"""The plug-ins: MirrorMaker 2's three connectors, and by which names Connect knows them."""

from __future__ import annotations

from sparkmirror.connect.definitions import COMMON, MIRROR, OWN, SOURCE_CONNECTOR, Definition
from sparkmirror.connect.plugin_versions import VersionRange

VERSION = "4.3.1"
"""Of the Kafka Connect whose interface and connectors these are; clients go by it."""

PACKAGE = "org.apache.kafka.connect.mirror."
CLASSES = tuple(sorted(PACKAGE + name for name in OWN))
_ALIAS_SUFFIX = "Connector"
_FAMILIES = {
    "converter": ("org.apache.kafka.connect.converters.ByteArrayConverter",),
    "header_converter": ("org.apache.kafka.connect.converters.ByteArrayConverter",),
}
"""Other plug-ins that can be named: records are copied as bytes, so these are the ones that do what is done."""


def find_class(name: str) -> str | None:
    """The connector's full class name; `name` may be short (`MirrorSourceConnector`), or an alias (`MirrorSource`)."""
    word = name.strip()
    for found in CLASSES:
        short = found.removeprefix(PACKAGE)
        if word in (found, short, short.removesuffix(_ALIAS_SUFFIX)):
            return found
    return None


def without_suffix(name: str) -> str:
    """A plug-in's name as Connect compares it."""
    return name[: -len(_ALIAS_SUFFIX)] if name.endswith(_ALIAS_SUFFIX) and name != _ALIAS_SUFFIX else name


def not_found(name: str) -> str:
    """What Connect says of a class that isn't a connector's."""
    available = ", ".join(
        f"PluginDesc{{klass=class {one}, name='{one}', version='{VERSION}', encodedVersion={VERSION}, "
        "type=source, typeName='source', location='classpath'}"
        for one in CLASSES
    )
    return (
        f"Failed to find any class that implements Connector and which name matches {name}, "
        f"available connectors are: {available}"
    )


def definitions(class_name: str) -> tuple[Definition, ...]:
    """All that a connector can be configured with, in the order in which Connect validates it."""
    return (*COMMON, *SOURCE_CONNECTOR, *MIRROR, *OWN[class_name.removeprefix(PACKAGE)])


def version_not_found(class_name: str, wanted: VersionRange) -> str:
    """What Connect says where it has a plug-in, and not in a version that fits."""
    return f"Plugin {class_name} not found that matches the version range {wanted}, available versions: [{VERSION}]"


def plugin_config(class_name: str) -> list[dict[str, object]]:
    """What `/connector-plugins/{plugin}/config` answers."""
    ordered = (*COMMON, *MIRROR, *OWN[class_name.removeprefix(PACKAGE)], *SOURCE_CONNECTOR)
    return [definition.as_json() for definition in ordered]


def plugin_list(*, connectors_only: bool) -> list[dict[str, str]]:
    """What `/connector-plugins` answers."""
    found = [{"class": name, "type": "source", "version": VERSION} for name in CLASSES]
    if not connectors_only:
        found += [
            {"class": name, "type": kind, "version": VERSION} for kind, names in _FAMILIES.items() for name in names
        ]
    return found
