"""A resource to change, connectors to write, and what they come to."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from sparkmirror.config.formats import Reading, read
from sparkmirror.config.formats.strimzi_shapes import SPEC, Shape

TARGET = {
    "alias": "eu",
    "bootstrapServers": "eu1:9092",
    "groupId": "g",
    "configStorageTopic": "g-configs",
    "offsetStorageTopic": "g-offsets",
    "statusStorageTopic": "g-status",
}
RESOURCE: dict[str, Any] = {
    "apiVersion": "kafka.strimzi.io/v1",
    "kind": "KafkaMirrorMaker2",
    "metadata": {"name": "ours", "generation": 7},
    "spec": {
        "replicas": 1,
        "target": TARGET,
        "mirrors": [
            {
                "source": {"alias": "us", "bootstrapServers": "us1:9092"},
                "sourceConnector": {"tasksMax": 4, "config": {"replication.factor": -1}},
                "checkpointConnector": {"config": {"sync.group.offsets.enabled": True}},
                "topicsPattern": "orders.*",
                "groupsPattern": "billing-.*",
            }
        ],
    },
}

Change = Callable[[dict[str, Any]], object]


def values(reading: Reading) -> dict[str, str]:
    """Its keys in terms of mm2.properties."""
    return {entry.key: entry.value for entry in reading.entries}


def change(path: str, value: Any) -> Change:
    """Put a value at a path of the spec, such as `mirrors.0.source.tls`."""
    *steps, last = path.split(".")

    def put(spec: dict[str, Any]) -> None:
        there: Any = spec
        for step in steps:
            there = there[int(step)] if isinstance(there, list) else there.setdefault(step, {})
        there[last] = value

    return put


def shape_at(path: str) -> Shape | None:
    """What a field of the spec must hold, if it is read."""
    shape: Shape | None = SPEC
    for step in path.split("."):
        shape = shape.get(step.removesuffix("[]")) if isinstance(shape, dict) else None
        if step.endswith("[]"):
            shape = shape[0] if isinstance(shape, list) else None
    return shape


def read_resource(
    directory: Path, change: Change = lambda spec: None, *others: dict[str, Any], version: str = "v1"
) -> Reading:
    """Read the ordinary resource, its spec changed by a function, with other documents next to it."""
    resource = copy.deepcopy(RESOURCE)
    resource["apiVersion"] = f"kafka.strimzi.io/{version}"
    change(resource["spec"])
    path = directory / "mirror.yaml"
    path.write_text(yaml.safe_dump_all([*others, resource], sort_keys=False))
    return read([str(path)], str(directory))


def write_connectors(directory: Path, **files: Any) -> list[str]:
    """Write connectors' JSON files, by name; returns their paths."""
    paths = []
    for name, content in files.items():
        path = directory / f"{name}.json"
        path.write_text(json.dumps(content, indent=1))
        paths.append(str(path))
    return paths
