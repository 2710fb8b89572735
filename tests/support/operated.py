"""Resources, and a Kubernetes API in memory, for the operator's tests."""

from __future__ import annotations

import base64
import copy
import itertools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from sparkmirror.operator.kube import KubeRefused, kind_path, object_path, resource_path
from sparkmirror.operator.names import CLASS, GROUP, MIRROR, PLURAL, STRIMZI, Key, key_of
from sparkmirror.operator.peers import Peers
from sparkmirror.operator.pod_flows import AskPod
from sparkmirror.operator.turn import Turns
from sparkmirror.operator.turn_settings import Memory, Settings

KEY = Key("kafka", "ours")
PATH = resource_path(f"{GROUP}/v1", PLURAL, KEY.namespace, KEY.name)
MIRROR_KEY = Key(KEY.namespace, KEY.name, MIRROR)
MIRROR_PATH = kind_path(MIRROR_KEY, "v1alpha1")
SOURCE = "us->eu.MirrorSourceConnector"
CHECKPOINT = "us->eu.MirrorCheckpointConnector"
PASSWORD = {"secretName": "mirror-user", "password": "password"}


def resource(change: Callable[[dict[str, Any]], object] | None = None, **annotations: str) -> dict[str, Any]:
    """A resource of the operator's class; `change` is given its spec; `a_b` is `strimzi.io/a-b`."""
    own = {
        name: f"ours-{name}" for name in ("groupId", "configStorageTopic", "offsetStorageTopic", "statusStorageTopic")
    }
    spec: dict[str, Any] = {
        "replicas": 2,
        "target": {
            **own,
            "alias": "eu",
            "bootstrapServers": "eu:9092",
            "authentication": {"type": "scram-sha-512", "username": "mirror", "passwordSecret": PASSWORD},
        },
        "mirrors": [
            {
                "source": {"alias": "us", "bootstrapServers": "us:9092"},
                "sourceConnector": {"tasksMax": 2},
                "checkpointConnector": {},
                "topicsPattern": "orders.*",
            }
        ],
    }
    if change is not None:
        change(spec)
    named = {f"strimzi.io/{name.replace('_', '-')}": value for name, value in annotations.items()}
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "KafkaMirrorMaker2",
        "metadata": {
            "name": KEY.name,
            "namespace": KEY.namespace,
            "uid": "0815",
            "generation": 3,
            "annotations": {CLASS: "sparkmirror", **named},
        },
        "spec": spec,
    }


def properties(source: str = "us", servers: str = "eu:9092") -> str:
    """An mm2.properties file of the flow `source->eu`."""
    return (
        f"clusters = {source}, eu\n{source}.bootstrap.servers = {source}:9092\neu.bootstrap.servers = {servers}\n"
        f"{source}->eu.enabled = true\n{source}->eu.topics = orders.*\n"
    )


PROPERTIES = properties()


def mirror(name: str = KEY.name, **spec: Any) -> dict[str, Any]:
    """A Mirror with this spec, or with `PROPERTIES`."""
    return {
        "apiVersion": "sparkmirror.io/v1alpha1",
        "kind": "Mirror",
        "metadata": {"name": name, "namespace": KEY.namespace, "uid": "0816", "generation": 3},
        "spec": spec or {"replicas": 2, "properties": PROPERTIES},
    }


def put(spec: dict[str, Any], field: str, value: str) -> None:
    """Put a value at a field's path, such as `mirrors[].topicsPattern`, over whatever is in the way."""
    at: Any = spec
    *parents, last = field.split(".")
    for parent in parents:
        name = parent.removesuffix("[]")
        below = at.get(name)
        if not isinstance(below, dict | list) or not below:
            below = at[name] = [{}] if parent.endswith("[]") else {}
        at = below[0] if isinstance(below, list) else below
        if not isinstance(at, dict):
            return
    at[last.removesuffix("[]")] = [value] if last.endswith("[]") else value


def secret(name: str = "mirror-user", **values: str) -> dict[str, Any]:
    data = {key: base64.b64encode(value.encode()).decode() for key, value in (values or {"password": "hush"}).items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": KEY.namespace}, "data": data}


def config_map(name: str, **data: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": KEY.namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


class MemoryApi:
    """Objects by their paths; what is applied replaces what was there, as if one manager had all fields."""

    def __init__(self, *objects: Mapping[str, Any]) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.refused: dict[str, KubeRefused] = {}
        """What is answered for requests to change paths that begin so."""
        self.unready: dict[str, int] = {}
        """What of Deployments' status is not as if all pods were ready at once."""
        self.changes = 0
        self.path = PATH
        """Where the resource is."""
        self._numbers = itertools.count()
        for item in objects:
            metadata = item["metadata"]
            paths = {"KafkaMirrorMaker2": PATH, "Mirror": MIRROR_PATH}
            path = paths.get(item["kind"]) or object_path(item["kind"], KEY.namespace, metadata["name"])
            self.objects[path] = copy.deepcopy(dict(item))
            if item["kind"] in paths:
                self.path = path

    def get(self, path: str) -> dict[str, Any] | None:
        bare, _, query = path.partition("?")
        if query:
            items = [value for name, value in self.objects.items() if name.startswith(f"{bare}/")]
            return {"items": copy.deepcopy(items)}
        return copy.deepcopy(self.objects.get(bare))

    def apply(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        metadata = manifest["metadata"]
        path = object_path(manifest["kind"], metadata["namespace"], metadata["name"])
        self._refuse(path)
        kept = {"status": self.objects[path]["status"]} if "status" in self.objects.get(path, {}) else {}
        if manifest["kind"] == "Deployment":
            pods = manifest["spec"]["replicas"]
            kept = {"status": dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas"), pods)}
            kept["status"] |= self.unready
        self.objects[path] = copy.deepcopy({**manifest, **kept})
        return self.objects[path]

    def merge(self, path: str, patch: Mapping[str, Any]) -> dict[str, Any]:
        self._refuse(path)
        target = self.objects[path.removesuffix("/status")]
        _merge(target, patch)
        return target

    def create(self, path: str, manifest: Mapping[str, Any]) -> dict[str, Any]:
        metadata = manifest["metadata"]
        name = metadata.get("name") or f"{metadata['generateName']}{next(self._numbers)}"
        self._refuse(path)
        self.objects[f"{path}/{name}"] = copy.deepcopy(dict(manifest))
        return self.objects[f"{path}/{name}"]

    def delete(self, path: str) -> None:
        self.changes += 1
        self.objects.pop(path, None)

    def _refuse(self, path: str) -> None:
        self.changes += 1
        for begin, refusal in self.refused.items():
            if path.startswith(begin):
                raise refusal

    def of(self, kind: str, name: str) -> dict[str, Any]:
        """An object that must be there."""
        return self.objects[object_path(kind, KEY.namespace, name)]

    @property
    def status(self) -> dict[str, Any]:
        """The resource's."""
        return dict(self.objects[self.path].get("status") or {})

    @property
    def annotations(self) -> dict[str, str]:
        """The resource's, but its class."""
        annotations = dict(self.objects[PATH]["metadata"]["annotations"])
        annotations.pop(CLASS, None)
        return annotations

    def conditions(self) -> list[tuple[str, str]]:
        """Types and reasons."""
        return [(item["type"], item.get("reason", "")) for item in self.status["conditions"]]


def _merge(target: dict[str, Any], patch: Mapping[str, Any]) -> None:
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, Mapping):
            below = target.setdefault(key, {})
            _merge(below, value)
        else:
            target[key] = copy.deepcopy(value)


SETTINGS = Settings(
    class_name="sparkmirror",
    image="sparkmirror:test",
    versions={STRIMZI: "v1", MIRROR: "v1alpha1"},
    operator_labels={"app": "operator"},
    operator_namespace="operators",
)


def turns(api: MemoryApi, rest: Any, *others: dict[str, Any]) -> Callable[[], bool]:
    """Turns of the one resource, with one memory; `others` are resources that the operator knows, too."""
    peers = Peers(SETTINGS.class_name)
    for other in others:
        peers.see(key_of(other, MIRROR if other["kind"] == "Mirror" else STRIMZI), other)
    memory, taken = Memory(), Turns(api, lambda _: rest, SETTINGS, peers)
    return lambda: taken.take(KEY, memory)


def mirror_turns(
    api: MemoryApi, ask: AskPod, *others: dict[str, Any], class_name: str = SETTINGS.class_name
) -> Callable[[], bool]:
    """Turns of the one Mirror; `ask` is asked for pods' snapshots."""
    settings = replace(SETTINGS, class_name=class_name)
    peers = Peers(class_name)
    for other in others:
        peers.see(key_of(other, MIRROR if other["kind"] == "Mirror" else STRIMZI), other)
    memory, taken = Memory(), Turns(api, lambda _: None, settings, peers, ask)  # type: ignore[arg-type,return-value]
    return lambda: taken.take(MIRROR_KEY, memory)
