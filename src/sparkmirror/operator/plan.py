"""Plan of a resource: the worker's file, and connectors with their states.

The resource is read in the same way as by `sparkmirror run`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from javaproperties import join_key_value

from sparkmirror.connect.loadable import URLS_KEY, token_servers
from sparkmirror.errors import ConfigError
from sparkmirror.formats.connect_files import ConnectCluster
from sparkmirror.formats.load import explain, read
from sparkmirror.formats.reading import Note, Reading
from sparkmirror.formats.split import as_connect
from sparkmirror.formats.strimzi_fields import OPERATED
from sparkmirror.operator.names import METRICS_PORT, REST_PORT, Key
from sparkmirror.operator.references import Contents

SECRETS = "/opt/sparkmirror/secrets"
"""Directory of the resource's Secrets and ConfigMaps in pods, as DIR/<name>/<key>."""
ADDRESS_VARIABLE = "SPARKMIRROR_POD_IP"
"""Environment variable with a pod's address, for the other pods."""

_PROVIDERS = "config.providers"
_PACKAGE = "org.apache.kafka.common.config.provider."
_ENVIRONMENT, _DIRECTORY = "strimzienv", "strimzidir"
_STORAGE = re.compile(r"\.config\.(config|status)\.storage\.")
"""Pattern of settings needed by a worker in a pod, but not by `sparkmirror run`."""
_JVM_MEMORY = {"-Xmx": "spark.driver.memory"}


@dataclass(frozen=True, slots=True)
class WantedConnector:
    """One connector of the plan.

    `config` has references to secrets; it holds a secret only if the resource itself does.
    """

    name: str
    config: Mapping[str, str]
    state: str
    """State of the connector: `running`, `paused` or `stopped`."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Plan of one resource."""

    worker: Mapping[str, str]
    connectors: tuple[WantedConnector, ...]
    replicas: int
    warnings: tuple[str, ...]
    """One line for each field without effect."""

    @property
    def worker_file(self) -> str:
        """Text of `connect-distributed.properties`."""
        return "".join(join_key_value(key, value) + "\n" for key, value in sorted(self.worker.items()))


def make_plan(resource: Mapping[str, Any], key: Key, contents: Contents) -> Plan:
    """Make the plan of a resource, given the contents of its Secrets and ConfigMaps.

    No reference is resolved, since the operator may read more than the writer of the resource may: names and keys are
    looked for, and the pods find the values. Raises `ConfigError`, whose words name no file.
    """
    metadata = {"name": key.name, "namespace": key.namespace}
    tree = {name: resource.get(name) for name in ("apiVersion", "kind", "spec")} | {"metadata": metadata}
    with TemporaryDirectory() as directory:
        file, secrets = Path(directory, "mirror.json"), Path(directory, "secrets")
        secrets.mkdir(mode=0o700)
        for reference, values in contents.items():
            for name in values:
                place = secrets / reference.name / name
                place.parent.mkdir(exist_ok=True)
                place.touch()
        try:
            return _read(file, tree, str(secrets))
        except ConfigError as error:
            words = "; ".join(f"{item.key}: {item.reason}" if item.key else item.reason for item in error.mistakes)
            raise ConfigError(_without_paths(words, str(secrets)), origin=str(key)) from None


def _read(file: Path, tree: dict[str, Any], secrets: str) -> Plan:
    file.write_text(json.dumps(tree, indent=1))
    reading = read([str(file)], secrets, sealed=True)
    file.write_text(json.dumps(_awake(tree), indent=1))
    config = explain(read([str(file)], secrets, sealed=True))[0]  # checks paused and stopped connectors, too
    clusters, _ = as_connect(reading, None)
    operated = {_without_file(str(note), file) for note in reading.notes if _is_operated(note)}
    told = [_without_file(line, file) for line in config.warnings]
    warnings = [line for line in told if line not in operated and not _STORAGE.search(line)]
    connectors = [
        WantedConnector(
            item.name,
            {name: entry.value.replace(secrets, SECRETS) for name, entry in item.settings.items()},
            item.state,
        )
        for cluster in clusters
        for item in cluster.connectors
    ]
    servers = sorted({url for item in connectors for url in token_servers(item.config)})
    worker = _worker(clusters[0], reading, secrets) | ({URLS_KEY: ",".join(servers)} if servers else {})
    return Plan(
        worker,
        tuple(connectors),
        reading.resources[0].replicas,
        tuple(dict.fromkeys(warnings)),
    )


def _awake(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return the resource as if every connector in it were running."""
    if not isinstance(tree["spec"], dict):
        return dict(tree)
    spec = dict(tree["spec"])
    if isinstance(spec.get("mirrors"), list):
        spec["mirrors"] = [_awake_mirror(mirror) for mirror in spec["mirrors"]]
    if spec.get("replicas") == 0:
        spec["replicas"] = 1
    return {**tree, "spec": spec}


def _awake_mirror(mirror: Any) -> Any:
    if not isinstance(mirror, dict):
        return mirror
    return {
        name: {key: value for key, value in below.items() if key not in ("state", "pause")}
        if name.endswith("Connector") and isinstance(below, dict)
        else below
        for name, below in mirror.items()
    }


def _worker(cluster: ConnectCluster, reading: Reading, secrets: str) -> dict[str, str]:
    """Return the settings of the worker for all flows; all flows have the same target."""
    read_settings = cluster.worker.settings if cluster.worker else {}
    settings = {key: entry.value.replace(secrets, SECRETS) for key, entry in read_settings.items()}
    names = [name.strip() for name in settings.get(_PROVIDERS, "").split(",") if name.strip()]
    settings[_PROVIDERS] = ",".join(dict.fromkeys((*names, _ENVIRONMENT, _DIRECTORY)))
    settings[f"{_PROVIDERS}.{_ENVIRONMENT}.class"] = f"{_PACKAGE}EnvVarConfigProvider"
    settings[f"{_PROVIDERS}.{_DIRECTORY}.class"] = f"{_PACKAGE}DirectoryConfigProvider"
    settings["listeners"] = f"http://0.0.0.0:{REST_PORT}"
    settings["rest.advertised.host.name"] = f"${{{_ENVIRONMENT}:{ADDRESS_VARIABLE}}}"
    settings["rest.advertised.port"] = str(REST_PORT)
    spec = reading.resources[0].document.get("spec") or {}
    jvm = spec.get("jvmOptions") or {}
    settings |= {key: str(jvm[name]) for name, key in _JVM_MEMORY.items() if jvm.get(name)}
    return settings


def metrics_profiles(spec: Mapping[str, Any]) -> list[str]:
    """Return the metrics profiles for `metricsConfig`."""
    kinds = {"jmxPrometheusExporter": ["strimzi"], "strimziMetricsReporter": ["strimzi-reporter"]}
    return kinds.get((spec.get("metricsConfig") or {}).get("type", ""), [])


def worker_arguments(spec: Mapping[str, Any], file: str) -> list[str]:
    """Return the command line of the pods."""
    more = [word for profile in metrics_profiles(spec) for word in ("--metrics-profile", profile)]
    return ["serve", file, "--metrics-port", str(METRICS_PORT), *more]


def _is_operated(note: Note) -> bool:
    field = re.sub(r"\[\d+\]", "[]", note.key.removeprefix("spec."))
    return any(field == path or field.startswith(f"{path}.") for path in OPERATED)


def _without_paths(text: str, secrets: str) -> str:
    """Remove the directory of Secrets from messages about missing Secrets."""
    text = re.sub(rf": neither {re.escape(secrets)}\S* nor a manifest of it", "", text)
    text = re.sub(rf": there is no file {re.escape(secrets)}\S*", "", text)
    return text.replace(secrets, SECRETS)


def _without_file(line: str, file: Path) -> str:
    return re.sub(rf"^{re.escape(str(file))}(, line \d+)?: ", "", line)
