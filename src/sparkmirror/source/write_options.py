"""Options of a writer, by the names of Spark's Kafka sink."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sparkmirror.config import ClusterConfig
from sparkmirror.config.settings import PRODUCE_SETTINGS
from sparkmirror.kafka.wire.batches import CODECS
from sparkmirror.kafka.wire.codecs import Codec
from sparkmirror.source.option_values import OptionValues, refused
from sparkmirror.source.read_options import flows_of, nearest, stated_cluster

_APPLICATION, _VERSION = "txnAppId", "txnVersion"
_COMPRESSION = "kafka.compression.type"
_OF_SPARK = ("checkpointLocation", "path", "queryName", "includeHeaders")
"""Options that Spark hands on to each sink; the last has no effect here."""
_KNOWN = frozenset(("topic", "config", "flow", _APPLICATION, _VERSION, *_OF_SPARK))
_OF_PRODUCERS = frozenset(setting.name for setting in PRODUCE_SETTINGS)


class WriteOptions(NamedTuple):
    """All options of a writer."""

    cluster: ClusterConfig
    topic: str
    codec: Codec
    application: str
    """Name of a job that may run again as a whole; empty without."""
    version: int


def write_options(options: Mapping[str, str]) -> WriteOptions:
    """Read a writer's options. Raises `ConfigError`."""
    given = OptionValues(options)
    for key in given.others(_KNOWN):
        raise refused(key, f"is not known{nearest(key, _KNOWN)}")
    if given.text("path"):
        raise refused("path", "is for files: name the topic by the option topic, or by a column")
    application, version = given.text(_APPLICATION), given.text(_VERSION)
    if bool(application) != bool(version):
        raise refused(_VERSION if application else _APPLICATION, "is missing: the two name a job that may run again")
    if version and not (version.isascii() and version.isdigit()):
        raise refused(_VERSION, f"is {version!r}: write a number")
    codec = given.choice(_COMPRESSION, "lz4", *(name for name in CODECS if name != "lz4"))
    cluster = _cluster(given)
    if cluster.has_secrets:
        raise refused(
            "config" if given.has("config") else "kafka.*",
            "has passwords, and a format can't see whether this Spark hands them to its tasks in clear: write"
            " ${name:path:key} with kafka.config.providers, or use foreachBatch(sm.Sink(...))",
        )
    return WriteOptions(
        cluster=cluster,
        topic=given.text("topic"),
        codec=Codec(CODECS.index(codec)),
        application=application,
        version=int(version or 0),
    )


def _cluster(given: OptionValues) -> ClusterConfig:
    if not given.has("config"):
        if given.has("flow"):
            raise refused("flow", "is about the file config, which is not given")
        cluster = stated_cluster(given, _OF_PRODUCERS)
        return cluster.model_copy(update={"alias": cluster.bootstrap_servers[0]})
    if settings := sorted(set(given.of_clients()) - {_COMPRESSION}):
        raise refused(settings[0], "the file config has the clusters: take either of them out")
    flows = flows_of(given, "")
    if len(flows) > 1:
        raise refused("flow", f"is missing: there are {', '.join(flow.name for flow in flows)}; choose one")
    return flows[0].target
