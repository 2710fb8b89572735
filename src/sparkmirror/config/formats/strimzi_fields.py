"""Fields of Strimzi's `KafkaMirrorMaker2`, each with its effect.

`docs/strimzi.md` is made from this table. Source of the fields: the custom resource definitions of Strimzi 0.49 and
1.2, kafka.strimzi.io/v1beta2 and v1.
"""

from __future__ import annotations

from dataclasses import dataclass

HONOURED, IDLE, NOT_NEEDED = "honoured", "no effect", "not needed"
"""Effects of a field.

A field is not needed if Strimzi requires it, or it has a single natural value; no warning names it.
"""


@dataclass(frozen=True, slots=True)
class StrimziField:
    """Field with all fields below, except for the fields with longer paths here."""

    path: str
    effect: str
    words: str
    versions: str = ""
    """`v1` or `v1beta2`, if only a single version has the field."""


_POD = "the pod is described by your own deployment of sparkmirror"


def _table(text: str) -> tuple[StrimziField, ...]:
    """Parse lines of `effect: words`, each followed by indented paths.

    A path may have `(version)` behind it.
    """
    fields: list[StrimziField] = []
    effect = words = ""
    for line in filter(None, map(str.rstrip, text.splitlines())):
        if not line.startswith(" "):
            effect, _, words = line.partition(": ")
            continue
        path, _, versions = line.strip().partition(" (")
        fields.append(StrimziField(path, effect, words, versions.rstrip(")")))
    return tuple(fields)


FIELDS = _table(f"""
honoured: the aliases, and the brokers to start from
    target.alias (v1)
    target.bootstrapServers (v1)
    mirrors[].source.alias (v1)
    mirrors[].source.bootstrapServers (v1)
    clusters[].alias (v1beta2)
    clusters[].bootstrapServers (v1beta2)
    mirrors[].sourceCluster (v1beta2)
    mirrors[].targetCluster (v1beta2)
honoured: the alias of the cluster that is mirrored into
    connectCluster (v1beta2)
honoured: where the operator's Connect kept its offsets; they are taken over
    target.offsetStorageTopic (v1)
not needed: a flow's processes agree through a group of their own, `<source>-mm2`
    target.groupId (v1)
not needed: the resource itself is read, so that no configuration is stored
    target.configStorageTopic (v1)
not needed: no connectors' states are stored; see `--status-file`
    target.statusStorageTopic (v1)
honoured: TLS; certificates come from `--secrets`, and an empty list means the system's own
    target.tls (v1)
    mirrors[].source.tls (v1)
    clusters[].tls (v1beta2)
honoured: `tls`, `scram-sha-256`, `scram-sha-512`, `plain`, `custom`, `oauth`; secrets come from `--secrets`
    target.authentication (v1)
    mirrors[].source.authentication (v1)
    clusters[].authentication (v1beta2)
honoured: workers' settings, such as `producer.`; settings that Strimzi forbids are left out
    target.config (v1)
honoured: `ssl.` settings that Strimzi lets through; others reach no client, as there
    mirrors[].source.config (v1)
honoured: as `target.config` or `source.config`; `group.id` and storage topics as v1's fields
    clusters[].config (v1beta2)
honoured: if absent, nothing is copied; groups are translated by sparkmirror's earlier copies
    mirrors[].sourceConnector
honoured: if absent, no groups are translated
    mirrors[].checkpointConnector
honoured: if absent, no heartbeats are sent
    mirrors[].heartbeatConnector (v1beta2)
honoured: of the source connector; the two other connectors' tasks are not spread here
    mirrors[].sourceConnector.tasksMax
not needed: groups are translated by the driver, all at once
    mirrors[].checkpointConnector.tasksMax
not needed: one beat goes to one partition
    mirrors[].heartbeatConnector.tasksMax (v1beta2)
honoured: MirrorMaker 2's own keys, as docs/configuration.md has them
    mirrors[].sourceConnector.config
    mirrors[].checkpointConnector.config
    mirrors[].heartbeatConnector.config (v1beta2)
honoured: `paused` or `stopped`: no records are copied, and progress is kept; the other connectors continue
    mirrors[].sourceConnector.state
honoured: `paused` or `stopped`: no groups are translated; the other connectors continue
    mirrors[].checkpointConnector.state
honoured: `paused` or `stopped`: no heartbeats are sent; the other connectors continue
    mirrors[].heartbeatConnector.state (v1beta2)
honoured: as `state: paused`
    mirrors[].sourceConnector.pause (v1beta2)
    mirrors[].checkpointConnector.pause (v1beta2)
    mirrors[].heartbeatConnector.pause (v1beta2)
no effect: a failed request is tried again until it succeeds, without restarts
    mirrors[].sourceConnector.autoRestart
    mirrors[].checkpointConnector.autoRestart
    mirrors[].heartbeatConnector.autoRestart (v1beta2)
no effect: no config map is written here: see docs/groups.md for offsets; `sparkmirror serve` lists the connector's own
    mirrors[].sourceConnector.listOffsets
    mirrors[].checkpointConnector.listOffsets
    mirrors[].heartbeatConnector.listOffsets (v1beta2)
no effect: no annotation asks for it here: `sparkmirror serve` alters them exactly (PATCH /connectors/NAME/offsets)
    mirrors[].sourceConnector.alterOffsets
    mirrors[].checkpointConnector.alterOffsets
    mirrors[].heartbeatConnector.alterOffsets (v1beta2)
no effect: there are no plug-ins to choose from
    mirrors[].sourceConnector.version
    mirrors[].checkpointConnector.version
    mirrors[].heartbeatConnector.version (v1beta2)
honoured: which topics are copied
    mirrors[].topicsPattern
    mirrors[].topicsExcludePattern
honoured: which groups are translated
    mirrors[].groupsPattern
    mirrors[].groupsExcludePattern
honoured: as `topicsExcludePattern`, if that is absent
    mirrors[].topicsBlacklistPattern (v1beta2)
honoured: as `groupsExcludePattern`, if that is absent
    mirrors[].groupsBlacklistPattern (v1beta2)
honoured: 0 stops everything; more than 1 has no effect: one process works, further processes on the same file stand by
    replicas
not needed: the brokers' versions are found out
    version
honoured: `type: environment-variable`: the variable that holds the rack, for fetching from a follower nearby
    rack
no effect: sparkmirror is no image of Strimzi's; {_POD}
    image
    clientRackInitImage
no effect: {_POD}
    resources
    livenessProbe
    readinessProbe
    template
    externalConfiguration (v1beta2)
no effect: memory and options of Spark's JVM are `spark.driver` settings
    jvmOptions
no effect: records are copied outside of Spark's JVM, so JMX would show nothing of a flow
    jmxOptions
no effect: there is no JMX; `sparkmirror run --metrics-port 9404 --metrics-profile strimzi` has Strimzi's names
    metricsConfig
no effect: `sparkmirror run --verbose` logs more
    logging
no effect: sparkmirror does not look into records, so there is nothing to trace
    tracing
""")

_RESTARTED = (
    "failed connectors and tasks are restarted, too: their flow starts again, at once and then after 2, 6, 12 minutes "
    "and so on, 60 at most; after `maxRestarts` no more. Other partitions of the flow pause while it begins"
)
OPERATED = {
    "target.groupId": "pods of one group are one deployment: one works, the others stand by",
    "target.configStorageTopic": "where the connectors are kept, in Connect's own records",
    "target.statusStorageTopic": "where their states are kept, in Connect's own records",
    "replicas": "number of pods; 0 starts none; `kubectl scale` sets it",
    "resources": "of the container",
    "livenessProbe": "its times; the probe asks `/health`: does the control loop turn?",
    "readinessProbe": "its times; the probe asks `/ready`: does the pod work or stand by?",
    "jvmOptions": "`-Xmx` is `spark.driver.memory`; other options have no effect",
    "metricsConfig": "the names of that exporter, besides sparkmirror's own: port 9404, `tcp-prometheus`, `/metrics`",
    "logging": "levels: the root's is `sparkmirror`'s, others of loggers below it; inline or from a ConfigMap; at once;"
    " a removed one stays until new pods",
    "externalConfiguration": "`env` and `volumes`, mounted below `/opt/kafka/external-configuration` as there",
    "template": "`pod`, `connectContainer`, `apiService`, `podDisruptionBudget`, `serviceAccount`, the metadata of"
    " `deployment` or `podSet`, and `deployment.deploymentStrategy`",
    "mirrors[].sourceConnector.autoRestart": _RESTARTED,
    "mirrors[].checkpointConnector.autoRestart": _RESTARTED,
    "mirrors[].heartbeatConnector.autoRestart": _RESTARTED,
    "mirrors[].sourceConnector.listOffsets": "the ConfigMap that `strimzi.io/connector-offsets: list` writes",
    "mirrors[].checkpointConnector.listOffsets": "the ConfigMap that `strimzi.io/connector-offsets: list` writes",
    "mirrors[].heartbeatConnector.listOffsets": "the ConfigMap that `strimzi.io/connector-offsets: list` writes",
    "mirrors[].sourceConnector.alterOffsets": "the ConfigMap that `strimzi.io/connector-offsets: alter` reads; exactly",
    "mirrors[].checkpointConnector.alterOffsets": "the ConfigMap that `strimzi.io/connector-offsets: alter` reads",
    "mirrors[].heartbeatConnector.alterOffsets": "the ConfigMap that `strimzi.io/connector-offsets: alter` reads",
}
"""Fields with a further or another meaning under `sparkmirror operator`."""


def field_of(path: str) -> StrimziField | None:
    """Return the field that a path such as `mirrors[].source.alias` comes under.

    None if Strimzi has no such field.
    """
    while path:
        for field in FIELDS:
            if field.path == path:
                return field
        path = path.rpartition(".")[0]
    return None
