"""`sparkmirror run`: a mirror, from any of the formats of files."""

from __future__ import annotations

import signal
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from sparkmirror.cli.flow_checks import check_flows
from sparkmirror.cli.loading import Clusters, File, Secrets, Spark, spark_overrides, wanted_clusters
from sparkmirror.cli.logs import LogFormat, set_up_logging, use_format, warn
from sparkmirror.cli.metrics import MetricsPort, MetricsProfiles, metrics_served, page_address
from sparkmirror.cli.output import Format, Output
from sparkmirror.cli.progress import ProgressView
from sparkmirror.cli.resource_watch import ResourceWatch, Taken
from sparkmirror.cli.status_file import RunStatus
from sparkmirror.config.formats import model_of, read
from sparkmirror.errors import ConfigError
from sparkmirror.mirror.engine.installed_spark import require_spark

if TYPE_CHECKING:
    from sparkmirror.config import MirrorConfig
    from sparkmirror.mirror.engine.queries import Queries
    from sparkmirror.snapshot.snapshot import Snapshot


def run(
    file: File,
    more_clusters: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
    clusters: Clusters = None,
    once: Annotated[bool, typer.Option("--once", help="Copy up to the end offsets of now, then exit.")] = False,
    spark: Spark = None,
    secrets: Secrets = None,
    status_file: Annotated[
        str | None,
        typer.Option("--status-file", metavar="PATH", help="Keep a Strimzi resource with its status in this file."),
    ] = None,
    metrics_port: MetricsPort = None,
    metrics_profile: MetricsProfiles = None,
    lease: Annotated[bool, typer.Option("--lease/--no-lease", hidden=True)] = True,
    output: Output = Format.TEXT,
    log_format: LogFormat = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log more.")] = False,
) -> None:
    """Mirror as FILE says, until stopped.

    A Strimzi resource that is changed is taken over while the mirror runs; a line says what
    changed.

    Exit codes: 0 done or stopped, 1 records were not copied (--once), 2 the file is wrong, 3 a
    cluster can't be reached or can't be a target, or Spark is missing.

    Example: sparkmirror run mm2.properties --clusters backup
    """
    set_up_logging(verbose, log_format)
    if more_clusters and not clusters:
        raise ConfigError("one file only; clusters go after --clusters", origin="command line", key=more_clusters[0])
    reading = read([file], secrets)
    wanted = wanted_clusters([*(clusters or ()), *(more_clusters or ())])
    with RunStatus(reading, status_file) as status:
        if reading.idle:
            warn(f"{reading.path}: {reading.idle}: nothing is run")
            return
        config, values = model_of(reading, clusters=wanted, overrides=spark_overrides(spark))
        if log_format is None:
            use_format(config.log_format)
        status.runs(config)
        for line in config.warnings:
            warn(line)
        check_flows(reading, config, values, wanted)
        require_spark()
        from sparkmirror.mirror.engine.mirror import Mirror  # Spark is slow to import; errors in the file come first

        with ProgressView(output) as view:

            def show(snapshot: Snapshot) -> None:
                view.show(snapshot)
                status.show(mirror.observer.snapshot)

            mirror = Mirror(config, once=once, use_lease=lease, on_progress=show, queries=_queries(config))
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: mirror.stop())

            def read_again() -> Taken:
                again = read([file], secrets)
                if again.idle:
                    return Taken(again, config.model_copy(update={"flows": (), "beats": ()}), ())
                return Taken(again, *model_of(again, clusters=wanted, overrides=spark_overrides(spark)))

            def take(new: Taken) -> None:
                check_flows(new.reading, new.config, new.values, wanted)
                for line in new.config.warnings:
                    if line not in config.warnings:
                        warn(line)
                mirror.change(new.config)
                status.changes(new.reading, new.config)

            mirror.observer.page = page_address(metrics_port, config)
            with ExitStack() as opened:
                opened.enter_context(
                    metrics_served(
                        metrics_port,
                        metrics_profile,
                        config,
                        mirror.observer.snapshot,
                        lambda: mirror.tick_age_s,
                        lambda: [driver.flow for driver in mirror.drivers],
                        history=mirror.observer.history,
                    )
                )
                if reading.resources and not once:
                    opened.enter_context(ResourceWatch(file, Taken(reading, config, values), read_again, take))
                mirror.run()


def _queries(config: MirrorConfig) -> Queries | None:
    """Return the runner of the file's Spark queries; None without any."""
    if not any(flow.transform_queries for flow in config.flows):
        return None
    from sparkmirror.queries.runner import QueryRunner

    return QueryRunner()
