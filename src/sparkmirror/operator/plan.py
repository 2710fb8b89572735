"""A resource's plan: the worker's file, and connectors with their states.

The resource is read in the same way as by `sparkmirror run`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from javaproperties import join_key_value

from sparkmirror.config.formats.connect_files import ConnectCluster
from sparkmirror.config.formats.files import File, file_of
from sparkmirror.config.formats.load import model_of, read_file
from sparkmirror.config.formats.reading import Note, Reading
from sparkmirror.config.formats.secrets import MountedKeys
from sparkmirror.config.formats.split import as_connect
from sparkmirror.config.formats.strimzi_fields import OPERATED
from sparkmirror.config.named_places import URLS_KEY, token_servers
from sparkmirror.errors import ConfigError
from sparkmirror.operator.names import METRICS_PORT, REST_PORT, Key
from sparkmirror.operator.references import Contents, mounted_keys

SECRETS = "/opt/sparkmirror/secrets"
"""Directory of the resource's Secrets and ConfigMaps in pods, as DIR/<name>/<key>."""
ADDRESS_VARIABLE = "SPARKMIRROR_POD_IP"
"""Environment variable with a pod's address, for the other pods."""

_FILE = "mirror.json"
_PROVIDERS = "config.providers"
_PACKAGE = "org.apache.kafka.common.config.provider."
_ENVIRONMENT, _DIRECTORY = "strimzienv", "strimzidir"
_STORAGE = re.compile(r"\.config\.(config|status)\.storage\.")
"""Pattern of settings needed by a worker in a pod, but not by `sparkmirror run`."""
_JVM_MEMORY = {"-Xmx": "spark.driver.memory"}


@dataclass(frozen=True, slots=True)
class WantedConnector:
    """One connector in the plan.

    `config` has references to secrets; it holds a secret only if the resource itself does.
    """

    name: str
    config: Mapping[str, str]
    state: str
    """The connector's state: `running`, `paused` or `stopped`."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One resource's plan."""

    worker: Mapping[str, str]
    connectors: tuple[WantedConnector, ...]
    replicas: int
    warnings: tuple[str, ...]
    """One line for each field without effect."""

    @property
    def worker_file(self) -> str:
        return "".join(join_key_value(key, value) + "\n" for key, value in sorted(self.worker.items()))


def make_plan(resource: Mapping[str, Any], key: Key, contents: Contents) -> Plan:
    """Make a resource's plan, given the contents of its Secrets and ConfigMaps.

    No reference is resolved, since the operator may read more than the resource's writer may: names and keys are looked
    for, and the pods find the values. Raises `ConfigError`, whose words name no file.
    """
    metadata = {"name": key.name, "namespace": key.namespace}
    tree = {name: resource.get(name) for name in ("apiVersion", "kind", "spec")} | {"metadata": metadata}
    try:
        return _read(tree, mounted_keys(contents, SECRETS))
    except ConfigError as error:
        raise ConfigError(mistakes_line(error), origin=str(key)) from None


def mistakes_line(error: ConfigError) -> str:
    """Return all mistakes in one line, without the file."""
    return "; ".join(f"{item.key}: {item.reason}" if item.key else item.reason for item in error.mistakes)


def _read(tree: dict[str, Any], mounted: MountedKeys) -> Plan:
    reading = read_file(_file(tree), mounted)
    awake = _awake(tree)
    # Checks paused and stopped connectors, too.
    config = model_of(reading if awake == tree else read_file(_file(awake), mounted))[0]
    clusters, _ = as_connect(reading, None)
    operated = {without_file(str(note), _FILE) for note in reading.notes if _is_operated(note)}
    told = [without_file(line, _FILE) for line in config.warnings]
    warnings = [line for line in told if line not in operated and not _STORAGE.search(line)]
    connectors = [
        WantedConnector(item.name, {name: entry.value for name, entry in item.settings.items()}, item.state)
        for cluster in clusters
        for item in cluster.connectors
    ]
    servers = sorted({url for item in connectors for url in token_servers(item.config)})
    worker = _worker(clusters[0], reading) | ({URLS_KEY: ",".join(servers)} if servers else {})
    return Plan(
        worker,
        tuple(connectors),
        reading.resources[0].replicas,
        tuple(dict.fromkeys(warnings)),
    )


def _file(tree: Mapping[str, Any]) -> File:
    return file_of(_FILE, json.dumps(tree, indent=1))


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


def _worker(cluster: ConnectCluster, reading: Reading) -> dict[str, str]:
    """Return the worker's settings for all flows; all flows have the same target."""
    read_settings = cluster.worker.settings if cluster.worker else {}
    settings = {key: entry.value for key, entry in read_settings.items()}
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
    kinds = {"jmxPrometheusExporter": ["strimzi"], "strimziMetricsReporter": ["strimzi-reporter"]}
    return kinds.get((spec.get("metricsConfig") or {}).get("type", ""), [])


def worker_arguments(spec: Mapping[str, Any], file: str) -> list[str]:
    more = [word for profile in metrics_profiles(spec) for word in ("--metrics-profile", profile)]
    return ["serve", file, "--metrics-port", str(METRICS_PORT), *more]


def _is_operated(note: Note) -> bool:
    field = re.sub(r"\[\d+\]", "[]", note.key.removeprefix("spec."))
    return any(field == path or field.startswith(f"{path}.") for path in OPERATED)


def without_file(line: str, path: str) -> str:
    """Return a warning without the file that it begins with."""
    return re.sub(rf"^{re.escape(path)}(, line \d+)?: ", "", line)
