"""What any format is read into before it becomes the typed model: the keys of an mm2.properties file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sparkmirror.config import Entry
from sparkmirror.errors import ConfigError
from sparkmirror.formats.connect import RUNNING, ConnectCluster
from sparkmirror.formats.yaml_files import Document


@dataclass(frozen=True, slots=True)
class Note:
    """Something in the file that has no effect here, or that another format can't say."""

    path: str
    line: int
    key: str
    reason: str
    kind: str = ""
    """`mismatch`, `misplaced`, `idle`, `not needed` or `secret`, where it is one of these.

    `not needed` is no reason to warn; `secret` is a Secret that is not there."""
    setting: str = ""
    """Kafka Connect's key, where `key` is a resource's field for it."""

    def __str__(self) -> str:
        return f"{place(self.path, self.line)}: {self.key}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Resource:
    """A `KafkaMirrorMaker2` resource, and what a status needs of it."""

    document: Mapping[str, Any]
    """As it stands in the file."""
    path: str
    target: str
    connectors: tuple[tuple[str, str, str], ...]
    """Flow, Connect's name of the connector, and its wanted state."""
    replicas: int

    @property
    def name(self) -> str:
        """Of the resource."""
        return str((self.document.get("metadata") or {}).get("name") or "")


@dataclass(frozen=True, slots=True)
class Reading:
    """One or several files of one format."""

    path: str
    """To be named in messages."""
    format: str
    """`properties`, `connectors` or `strimzi`."""
    entries: tuple[Entry, ...]
    """Keys and values of an mm2.properties file that says the same."""
    notes: tuple[Note, ...] = ()
    connect: tuple[ConnectCluster, ...] = ()
    resources: tuple[Resource, ...] = ()
    documents: tuple[Document, ...] = ()
    """All that stands in the files of resources."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Where in a resource each alias is, such as `spec.target`."""
    mistakes: tuple[ConfigError, ...] = ()
    """What can't be run as it is; stand-ins are among `entries`, so that what else is wrong is found, too."""
    wrong: tuple[ConfigError, ...] = ()
    """What could not be read at all, and was left out."""

    @property
    def idle(self) -> str:
        """Why connectors or resources ask for nothing to be run; nothing if they do ask."""
        if self.resources and all(resource.replicas == 0 for resource in self.resources):
            return "replicas is 0"
        states = [connector.state for cluster in self.connect for connector in cluster.connectors]
        return "every connector is paused or stopped" if states and RUNNING not in states else ""


def place(path: str, line: int) -> str:
    """A file, and the line if it is known."""
    return f"{path}, line {line}" if line else path
