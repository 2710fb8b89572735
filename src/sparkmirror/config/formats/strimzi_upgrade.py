"""Upgrade a `KafkaMirrorMaker2` from v1beta2 to v1, like Strimzi's own converter.

All other content stays.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from sparkmirror.config.duty_settings import CONFIG_EXCLUDE
from sparkmirror.config.formats.additions import in_full
from sparkmirror.config.formats.files import KIND
from sparkmirror.config.formats.reading import Note
from sparkmirror.config.formats.strimzi import GROUP, WORKERS_OWN
from sparkmirror.config.formats.yaml_files import Document, Path_, shown

_SOURCES = ("source", "sourceCluster", "targetCluster")
_CONNECTORS = ("sourceConnector", "checkpointConnector")
_NO_HEARTBEATS = "kafka.strimzi.io/v1 has no heartbeat connector: no heartbeats would be sent"
_NO_OAUTH = "kafka.strimzi.io/v1 has no type oauth: write type custom, and Kafka's sasl. settings into its config"
_UNUSED = "no mirror names this cluster, and v1 has no list of them"
_NO_PLACE = {
    "externalConfiguration": "kafka.strimzi.io/v1 has no such field: write env and volumes into template",
}


def upgraded(documents: Sequence[Document]) -> tuple[str, list[Note]]:
    """Return the documents with all resources as v1, and notes on the losses.

    The documents have been read without an error.
    """
    notes: list[Note] = []
    trees = []
    for document in documents:
        old = document.tree.get("kind") == KIND and document.tree["apiVersion"] == f"{GROUP}v1beta2"
        trees.append(_Upgrade(document, notes).tree() if old else document.tree)
    # A copy, as the next step changes the trees, and the caller's documents must stay as they are.
    trees = copy.deepcopy(trees)
    for tree in trees:
        if tree.get("kind") == KIND:
            _name_excluded(tree)
    text = yaml.safe_dump_all(trees, sort_keys=False, allow_unicode=True, width=120)
    return text, notes


def _name_excluded(tree: Mapping[str, Any]) -> None:
    """Write additions to the excluded properties as the whole list.

    Kafka knows only whole lists.
    """
    for mirror in tree["spec"]["mirrors"]:
        config = (mirror.get("sourceConnector") or {}).get("config") or {}
        if CONFIG_EXCLUDE.name in config:
            config[CONFIG_EXCLUDE.name] = in_full(str(config[CONFIG_EXCLUDE.name]))


class _Upgrade:
    """A single resource's upgrade."""

    def __init__(self, document: Document, notes: list[Note]) -> None:
        self._document = document
        self._notes = notes
        self._spec: Mapping[str, Any] = document.tree["spec"]
        listed = self._spec.get("clusters") if "target" not in self._spec else ()
        self._clusters = {cluster["alias"]: cluster for cluster in listed or ()}

    def tree(self) -> dict[str, Any]:
        return {**self._document.tree, "apiVersion": f"{GROUP}v1", "spec": dict(self._fields())}

    def _fields(self) -> Iterator[tuple[str, Any]]:
        stated = self._spec.get("replicas")
        yield "replicas", 3 if stated is None else stated
        yield "target", self._target()
        yield "mirrors", [self._mirror(index, mirror) for index, mirror in enumerate(self._spec["mirrors"])]
        self._name_unused()
        for field, value in self._spec.items():
            if field in _NO_PLACE:
                self._note(("spec", field), _NO_PLACE[field])
            elif field not in ("replicas", "target", "mirrors", "connectCluster", "clusters"):
                yield field, value

    def _target(self) -> dict[str, Any]:
        """Return the target cluster, with the names of the operator's Connect."""
        if "target" in self._spec:
            self._name_oauth(self._spec["target"], ("spec", "target"))
            return dict(self._spec["target"])
        alias = self._spec["connectCluster"]
        cluster = dict(self._clusters[alias])
        config = dict(cluster.pop("config", None) or {})
        names = {field: config.pop(key, default) for field, (key, default) in WORKERS_OWN.items()}
        self._name_oauth(cluster, self._place(alias))
        return {**cluster, **names, **({"config": config} if config else {})}

    def _mirror(self, index: int, mirror: Mapping[str, Any]) -> dict[str, Any]:
        steps: Path_ = ("spec", "mirrors", index)
        source, place = mirror.get("source") or {}, (*steps, "source")
        if self._clusters:
            source, place = self._clusters[mirror["sourceCluster"]], self._place(mirror["sourceCluster"])
        self._name_oauth(source, place)
        others = {field: value for field, value in mirror.items() if field not in _SOURCES}
        new = {"source": source, **others}
        if new.pop("heartbeatConnector", None) is not None:
            self._note((*steps, "heartbeatConnector"), _NO_HEARTBEATS)
        for field in _CONNECTORS:
            if new.get(field):
                new[field] = _connector(new[field])
        for kind in ("topics", "groups"):
            excluded = new.pop(f"{kind}BlacklistPattern", None)
            if excluded is not None and new.get(f"{kind}ExcludePattern") is None:
                new[f"{kind}ExcludePattern"] = excluded
        return new

    def _place(self, alias: str) -> Path_:
        return ("spec", "clusters", list(self._clusters).index(alias))

    def _name_unused(self) -> None:
        used = {self._spec.get("connectCluster"), *(mirror.get("sourceCluster") for mirror in self._spec["mirrors"])}
        for alias in [alias for alias in self._clusters if alias not in used]:
            self._note(self._place(alias), _UNUSED)

    def _name_oauth(self, cluster: Mapping[str, Any], steps: Path_) -> None:
        if (cluster.get("authentication") or {}).get("type") == "oauth":
            self._note((*steps, "authentication", "type"), _NO_OAUTH)

    def _note(self, steps: Path_, reason: str) -> None:
        self._notes.append(
            Note(path=self._document.path, line=self._document.line(*steps), key=shown(steps), reason=reason)
        )


def _connector(old: Mapping[str, Any]) -> dict[str, Any]:
    new = {field: value for field, value in old.items() if field != "pause"}
    if old.get("pause") is True and not old.get("state"):
        new["state"] = "paused"
    return new
