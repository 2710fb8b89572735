"""Arguments that verbs share, and the files and flows that the arguments choose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from sparkmirror.config import FlowConfig, MirrorConfig
from sparkmirror.config.formats import model_of, read
from sparkmirror.errors import ConfigError
from sparkmirror.policy import NamePatterns

File = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="An mm2.properties file as MirrorMaker 2 takes it, a Strimzi KafkaMirrorMaker2 (YAML or JSON), a"
        " connector's file, or a directory of connectors' files and their worker's.",
    ),
]

Secrets = Annotated[
    str | None,
    typer.Option(
        "--secrets",
        metavar="DIR",
        envvar="SPARKMIRROR_SECRETS",
        help="Directory of a Strimzi resource's Secrets: mounted as DIR/<name>/<key>, or their manifests.",
    ),
]

Clusters = Annotated[
    list[str] | None,
    typer.Option("--clusters", help="Only the flows into these clusters: --clusters B C, as with MirrorMaker 2."),
]

Spark = Annotated[list[str] | None, typer.Option("--spark", metavar="KEY=VALUE", help="A setting of Spark.")]
Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...",
        help="An mm2.properties file, a Strimzi KafkaMirrorMaker2 (YAML or JSON), or connectors' files (JSON or"
        " properties) with their worker's file, or a directory of these.",
    ),
]
Flow = Annotated[str | None, typer.Option("--flow", help="Only this flow, as SOURCE->TARGET.")]


def load(file: str, clusters: list[str] | None, spark: list[str] | None = None, *, secrets: str | None) -> MirrorConfig:
    """Return the file's configuration.

    The command line's Spark settings win over the file's.
    """
    return model_of(read([file], secrets), clusters=wanted_clusters(clusters), overrides=spark_overrides(spark))[0]


def wanted_clusters(clusters: list[str] | None) -> list[str]:
    """Return the aliases of `--clusters`, separated in any way."""
    return [alias for group in clusters or () for alias in group.replace(",", " ").split()]


def spark_overrides(spark: list[str] | None) -> dict[str, str]:
    """Return the settings of `--spark`.

    Raises `ConfigError`.
    """
    settings = {}
    for setting in spark or ():
        key, equals, value = setting.partition("=")
        if not equals or not key.startswith("spark."):
            raise ConfigError("write spark.KEY=VALUE", origin="--spark", key=key)
        settings[key] = value
    return settings


def chosen_flows(config: MirrorConfig, wanted: str | None) -> list[FlowConfig]:
    """Return the flows that `--flow` chooses; all without `--flow`.

    Raises `ConfigError` if there is no such flow, or none at all.
    """
    if not config.flows:
        raise ConfigError("has no flow, only heartbeats", origin=config.path)
    names = [flow.name for flow in config.flows]
    if wanted is not None and wanted not in names:
        raise ConfigError(f"{config.path} has no such flow; it has {', '.join(names)}", origin="--flow", key=wanted)
    return [flow for flow in config.flows if wanted in (None, flow.name)]


def only_flow(config: MirrorConfig, wanted: str | None) -> FlowConfig:
    """Return the flow that `--flow` chooses, or the only one; raises `ConfigError`."""
    flows = chosen_flows(config, wanted)
    if len(flows) != 1:
        names = ", ".join(flow.name for flow in flows)
        raise ConfigError(f"{config.path} has several flows: {names}; choose one", origin="--flow")
    return flows[0]


def chosen_topics(names: str) -> Callable[[str], bool]:
    """Return the test whether `--topics` chooses a topic.

    Raises `ConfigError` if `names` is empty or no list of patterns.
    """
    patterns = [pattern.strip() for pattern in names.split(",") if pattern.strip()]
    if not patterns:
        raise ConfigError("name the topics", origin="--topics", key=names)
    try:
        return NamePatterns(patterns).accepts
    except ValueError as error:
        raise ConfigError(str(error), origin="--topics") from error
