"""Reading of any format: an mm2.properties file's keys.

The typed model is made from these keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sparkmirror.config.entries import Entry
from sparkmirror.config.formats.connect_files import RUNNING, ConnectCluster
from sparkmirror.config.formats.yaml_files import Document
from sparkmirror.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Note on a setting without effect here, or without a place in another format."""

    path: str
    line: int
    key: str
    reason: str
    kind: str = ""
    """`mismatch`, `misplaced`, `idle`, `not needed`, `secret`, or empty.

    A `not needed` note is no reason to warn; `secret` is a missing Secret.
    """
    setting: str = ""
    """Kafka Connect's key, if `key` is a resource's field for it."""

    def __str__(self) -> str:
        return f"{place(self.path, self.line)}: {self.key}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """Resource `KafkaMirrorMaker2`, with the parts that a status needs."""

    document: Mapping[str, Any]
    """Document as it stands in the file."""
    path: str
    target: str
    connectors: tuple[tuple[str, str, str], ...]
    """Flow, Connect's name for the connector, and its wanted state."""
    replicas: int

    @property
    def name(self) -> str:
        return str((self.document.get("metadata") or {}).get("name") or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Contents of one or several files in a single format."""

    path: str
    """Path or paths, for messages."""
    format: str
    """`properties`, `connectors` or `strimzi`."""
    entries: tuple[Entry, ...]
    """An mm2.properties file's entries with the same meaning."""
    notes: tuple[Note, ...] = ()
    connect: tuple[ConnectCluster, ...] = ()
    resources: tuple[Resource, ...] = ()
    documents: tuple[Document, ...] = ()
    """All documents in the resource files."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Each alias's place in a resource, such as `spec.target`."""
    mistakes: tuple[ConfigError, ...] = ()
    """Mistakes in settings.

    `entries` has stand-ins for the settings, so that further mistakes are found, too.
    """
    wrong: tuple[ConfigError, ...] = ()
    """Mistakes in files that could not be read and were left out."""
    sealed: bool = False
    """True if no reference to a config provider may be resolved here."""

    @property
    def idle(self) -> str:
        """Reason for connectors or resources at rest; empty if a flow is to run."""
        if self.resources and all(resource.replicas == 0 for resource in self.resources):
            return "replicas is 0"
        states = [connector.state for cluster in self.connect for connector in cluster.connectors]
        return "every connector is paused or stopped" if states and RUNNING not in states else ""


def place(path: str, line: int) -> str:
    """Return the file, with the line if the line is known."""
    return f"{path}, line {line}" if line else path
