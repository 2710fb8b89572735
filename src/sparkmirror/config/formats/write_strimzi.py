"""Connect clusters as Strimzi's resources, kafka.strimzi.io/v1, with Secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from sparkmirror.config.declared_providers import FAMILY, PROVIDERS_KEY
from sparkmirror.config.formats.connect_files import (
    RUNNING,
    SOURCE_ALIAS,
    TARGET_ALIAS,
    ConnectCluster,
    Connector,
    ConnectorRole,
)
from sparkmirror.config.formats.files import KIND
from sparkmirror.config.formats.merge import CONNECTS_OWN, CONVERTER_KEYS, SECURITY, role_of
from sparkmirror.config.formats.reading import Note
from sparkmirror.config.formats.strimzi import GROUP, LEFT_IN, TAKEN_OUT
from sparkmirror.config.originals import is_secret
from sparkmirror.config.providers import CLASSES

NAMESPACE = "kafka"
"""The written resources' namespace, for the user to change.

References to Secrets must name a namespace.
"""

_TOPICS = {"configStorageTopic": "config", "offsetStorageTopic": "offset", "statusStorageTopic": "status"}
_PATTERNS = {
    "topics": "topicsPattern",
    "topics.exclude": "topicsExcludePattern",
    "groups": "groupsPattern",
    "groups.exclude": "groupsExcludePattern",
}
_HEARTBEATS = "kafka.strimzi.io/v1 has no heartbeat connector: no heartbeats would be sent"


def strimzi_text(clusters: Sequence[ConnectCluster], path: str) -> tuple[str, list[Note]]:
    """Return a resource for each target and set of workers, Secrets, and notes.

    The notes name settings without a place in a resource.
    """
    writer = _Writer(path)
    merged: dict[str, list[ConnectCluster]] = {}
    for cluster in clusters:
        mirrored = any(connector.role is not ConnectorRole.HEARTBEAT for connector in cluster.connectors)
        for connector in cluster.connectors:
            if connector.role is ConnectorRole.HEARTBEAT:
                writer.note("->".join(connector.flow) + ".emit.heartbeats.enabled", _HEARTBEATS)
        if mirrored:
            merged.setdefault(_workers(cluster), []).append(cluster)
    for group in merged.values():
        writer.resource(group)
    documents = [*writer.secrets.values(), *writer.resources]
    return yaml.safe_dump_all(documents, sort_keys=False, allow_unicode=True, width=120), writer.notes


def _workers(cluster: ConnectCluster) -> str:
    """Return a text that is equal for flows that can be in the same resource."""
    settings = {key: entry.value for key, entry in (cluster.worker.settings if cluster.worker else {}).items()}
    if not settings.get("offset.storage.topic", "").startswith("mm2-offsets."):
        # The file has its own offsets topic for all flows into this target, as Strimzi has.
        settings = {key: value for key, value in settings.items() if key not in CONNECTS_OWN}
    return repr((cluster.target, sorted(settings.items())))


class _Writer:
    def __init__(self, path: str) -> None:
        self._path = path
        self.notes: list[Note] = []
        self.secrets: dict[str, dict[str, Any]] = {}
        self.resources: list[dict[str, Any]] = []

    def note(self, key: str, reason: str) -> None:
        self.notes.append(Note(path=self._path, line=0, key=key, reason=reason))

    def resource(self, clusters: Sequence[ConnectCluster]) -> None:
        """Add a resource; the clusters have the same target and workers."""
        first = clusters[0].connectors[0]
        worker = {
            key: entry.value for key, entry in (clusters[0].worker.settings if clusters[0].worker else {}).items()
        }
        target = {
            "alias": first.flow[1],
            "bootstrapServers": first.text("target.cluster.bootstrap.servers"),
            "groupId": worker.get("group.id", ""),
            **{field: worker.get(f"{kind}.storage.topic", "") for field, kind in _TOPICS.items()},
            **self._security("target", first, worker),
        }
        config = {key: value for key, value in worker.items() if self._is_workers(key, value)}
        config |= _left_in("target", first)
        if config:
            target["config"] = config
        names = "-".join(cluster.connectors[0].flow[0] for cluster in clusters)
        spec = {"replicas": 1, "target": target, "mirrors": [self._mirror(cluster, worker) for cluster in clusters]}
        self.resources.append(
            {
                "apiVersion": GROUP + "v1",
                "kind": KIND,
                "metadata": {"name": _name(f"{names}-to-{first.flow[1]}"), "namespace": NAMESPACE},
                "spec": spec,
            }
        )

    def _is_workers(self, key: str, value: str) -> bool:
        if key.startswith(TAKEN_OUT) or SECURITY.fullmatch(key.removeprefix(role_of(key))):
            return False
        # Strimzi's workers use this converter anyway.
        return not (key in CONVERTER_KEYS and value.endswith("ByteArrayConverter"))

    def _mirror(self, cluster: ConnectCluster, worker: Mapping[str, str]) -> dict[str, Any]:
        connectors = {connector.role: connector for connector in cluster.connectors}
        source = connectors.get(ConnectorRole.SOURCE) or connectors[ConnectorRole.CHECKPOINT]
        place: dict[str, Any] = {
            "alias": source.flow[0],
            "bootstrapServers": source.text("source.cluster.bootstrap.servers"),
            **self._security("source", source, worker),
        }
        config = _left_in("source", source)
        for key, entry in source.settings.items():
            name = key.removeprefix("source.cluster.")
            if name != key and not name.startswith((*TAKEN_OUT, "alias")):
                config[name] = entry.value
        if config:
            place["config"] = config
        mirror: dict[str, Any] = {"source": place}
        for role in (ConnectorRole.SOURCE, ConnectorRole.CHECKPOINT):
            if role in connectors:
                mirror[f"{role.word}Connector"] = self._connector(connectors[role])
        for key, field in _PATTERNS.items():
            holder = next(
                (
                    candidate
                    for candidate in (source, connectors.get(ConnectorRole.CHECKPOINT))
                    if candidate and key in candidate.settings
                ),
                None,
            )
            if holder is not None:
                mirror[field] = holder.text(key)
        return mirror

    def _connector(self, connector: Connector) -> dict[str, Any]:
        left = ("source.cluster.", "target.cluster.", "name", "connector.class", "tasks.max")
        config = {
            key: entry.value
            for key, entry in connector.settings.items()
            if key not in _PATTERNS and not (key in left or key.startswith(left[:2]))
        }
        # Strimzi requires an alias for each cluster; a connector's config may say that the alias is empty.
        config |= {key: "" for key in (SOURCE_ALIAS, TARGET_ALIAS) if not connector.text(key, "target")}
        tasks = connector.text("tasks.max", "1")
        said: dict[str, Any] = {} if connector.state == RUNNING else {"state": connector.state}
        if connector.role is ConnectorRole.SOURCE or tasks != "1":
            said["tasksMax"] = int(tasks) if tasks.isdigit() else tasks
        return {**said, "config": config}

    # --- security -------------------------------------------------------------------------------

    def _security(self, end: str, connector: Connector, worker: Mapping[str, str]) -> dict[str, Any]:
        prefix = f"{end}.cluster."
        own = {
            key.removeprefix(prefix): entry.value for key, entry in connector.settings.items() if key.startswith(prefix)
        }
        alias = own["alias"]
        protocol = own.get("security.protocol", "PLAINTEXT").upper().strip()
        said: dict[str, Any] = {}
        if protocol.endswith("SSL"):
            said["tls"] = {"trustedCertificates": self._trusted(alias, own, worker)}
        keystore = {key: value for key, value in own.items() if key.startswith("ssl.keystore.")}
        sasl = {key: value for key, value in own.items() if key.startswith("sasl.")}
        inline = {"ssl.keystore.key", "ssl.keystore.certificate.chain"} <= keystore.keys()
        if protocol.startswith("SASL"):
            shown = keystore if protocol.endswith("SSL") else {}
            config = {key: self._hidden(alias, key, value) for key, value in {**sasl, **shown}.items()}
            said["authentication"] = {"type": "custom", "sasl": True, "config": config}
        elif protocol.endswith("SSL") and inline and "ssl.keystore.location" not in keystore:
            said["authentication"] = {"type": "tls", "certificateAndKey": self._pair(alias, keystore, worker)}
        elif protocol.endswith("SSL") and keystore:
            config = {key: self._hidden(alias, key, value) for key, value in keystore.items()}
            said["authentication"] = {"type": "custom", "sasl": False, "config": config}
        if protocol.endswith("SSL") and "ssl.key.password" in own:
            self.note(
                f"{alias}.ssl.key.password", "Strimzi has no place for a key's password: give the key without one"
            )
        return said

    def _trusted(self, alias: str, own: Mapping[str, str], worker: Mapping[str, str]) -> list[dict[str, str]]:
        if "ssl.truststore.location" in own:
            self.note(
                f"{alias}.ssl.truststore.location",
                f"Strimzi takes trusted certificates from Secrets, as PEM: make one, and name it at {alias}'s tls",
            )
        text = own.get("ssl.truststore.certificates", "").strip()
        if not text:
            return []
        mounted = [_mounted(line, worker) for line in text.splitlines()]
        if all(mounted):
            return [{"secretName": place[0], "certificate": place[1]} for place in mounted if place]
        return [{"secretName": self._secret(alias, "trusted", "ca.crt", text), "certificate": "ca.crt"}]

    def _pair(self, alias: str, keystore: Mapping[str, str], worker: Mapping[str, str]) -> dict[str, str]:
        chain, key = keystore["ssl.keystore.certificate.chain"].strip(), keystore["ssl.keystore.key"].strip()
        there = _mounted(chain, worker), _mounted(key, worker)
        if there[0] and there[1] and there[0][0] == there[1][0]:
            return {"secretName": there[0][0], "certificate": there[0][1], "key": there[1][1]}
        self._secret(alias, "client", "client.crt", chain)
        return {
            "secretName": self._secret(alias, "client", "client.key", key),
            "certificate": "client.crt",
            "key": "client.key",
        }

    def _hidden(self, alias: str, key: str, value: str) -> str:
        """Put a secret value into a Secret; a value that is a reference already may stay."""
        if not is_secret(key) or "${" in value:
            return value
        return f"${{strimzisecrets:{NAMESPACE}/{self._secret(alias, 'client', key, value)}:{key}}}"

    def _secret(self, alias: str, kind: str, key: str, value: str) -> str:
        name = _name(f"{alias}-{kind}")
        document = self.secrets.setdefault(
            name,
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": name, "namespace": NAMESPACE},
                "stringData": {},
            },
        )
        document["stringData"][key] = value
        return name


def _left_in(end: str, connector: Connector) -> dict[str, str]:
    """Return the TLS settings that Strimzi lets through in a cluster's config."""
    return {
        key: connector.text(f"{end}.cluster.{key}") for key in LEFT_IN if f"{end}.cluster.{key}" in connector.settings
    }


def _mounted(text: str, worker: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the Secret and key in a reference to a mounted value; else None."""
    names = [name.strip() for name in worker.get(PROVIDERS_KEY, "").split(",")]
    directories = {name for name in names if worker.get(f"{FAMILY}{name}.class", "").strip().endswith(CLASSES[2])}
    match = re.fullmatch(r"\$\{([^:}]+):([^:}]+):([^:}]+)\}", text.strip())
    if match is None or match[1] not in directories:
        return None
    return match[2].rstrip("/").rpartition("/")[2], match[3]


def _name(text: str) -> str:
    """Return a name that Kubernetes takes."""
    return re.sub(r"[^a-z0-9-]+", "-", text.lower()).strip("-")
