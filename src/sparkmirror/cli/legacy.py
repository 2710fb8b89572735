"""`sparkmirror legacy`: MirrorMaker 1's two files and its flags."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Annotated

import typer

from sparkmirror.cli import flow_lines
from sparkmirror.cli.loading import Spark, spark_overrides
from sparkmirror.cli.logs import LogFormatAlone, set_up_logging, warn
from sparkmirror.cli.metrics import MetricsPort, MetricsProfiles, metrics_served
from sparkmirror.cli.output import Format, Output, print_version
from sparkmirror.cli.progress import ProgressView
from sparkmirror.config.legacy import LegacyOptions, included, load_legacy, named_after
from sparkmirror.config.model import MirrorConfig
from sparkmirror.errors import ConfigError
from sparkmirror.kafka.cluster.admin import ClusterAdmin
from sparkmirror.mirror.engine.installed_spark import require_spark
from sparkmirror.policy.name_patterns import NamePatterns

if TYPE_CHECKING:
    from sparkmirror.snapshot.snapshot import Snapshot

CONNECT_TIMEOUT_S = 15.0
MOST_INT = 2**31 - 1

_COMMAND_LINE = "command line"
_JAVA = "Java classes can't be loaded"
_HANDLER = (
    f"{_JAVA}: take it out. One that renames topics: write an mm2.properties for `sparkmirror run`, whose"
    " replication.policy.class names them (DefaultReplicationPolicy, or your own in Python as module:Class). One that"
    " changes or drops records has no counterpart: records are copied as bytes"
)
_LISTENER = f"{_JAVA}, and nothing is rebalanced here: take it out"


def legacy(
    consumer: Annotated[
        str,
        typer.Option("--consumer.config", "--consumer", metavar="FILE", help="consumer.properties, of the source."),
    ],
    producer: Annotated[
        str,
        typer.Option("--producer.config", "--producer", metavar="FILE", help="producer.properties, of the target."),
    ],
    include: Annotated[
        str | None,
        typer.Option("--include", metavar="REGEX", help="Java regex of whole topics' names; a comma is a bar."),
    ] = None,
    whitelist: Annotated[
        str | None, typer.Option("--whitelist", metavar="REGEX", help="Old name of --include, which wins.")
    ] = None,
    num_streams: Annotated[
        int, typer.Option("--num.streams", min=1, max=MOST_INT, help="Most tasks the flow is spread over.")
    ] = 1,
    offset_commit_interval_ms: Annotated[
        int,
        typer.Option(
            "--offset.commit.interval.ms",
            min=1,
            max=MOST_INT,
            help="Milliseconds between commits of copied offsets to the consumer's group.id at the source.",
        ),
    ] = 60_000,
    abort_on_send_failure: Annotated[
        str,
        typer.Option(
            "--abort.on.send.failure",
            metavar="true|false",
            help="End the run, with exit code 1, if a partition can't be copied.",
        ),
    ] = "true",
    consumer_rebalance_listener: Annotated[
        str | None, typer.Option("--consumer.rebalance.listener", metavar="CLASS", help="Refused: a Java class.")
    ] = None,
    rebalance_listener_args: Annotated[
        str | None, typer.Option("--rebalance.listener.args", help="Arguments of the rebalance listener: no effect.")
    ] = None,
    message_handler: Annotated[
        str | None, typer.Option("--message.handler", metavar="CLASS", help="Refused: a Java class.")
    ] = None,
    message_handler_args: Annotated[
        str | None, typer.Option("--message.handler.args", help="Arguments of the message handler: no effect.")
    ] = None,
    new_consumer: Annotated[bool, typer.Option("--new.consumer", help="Has no effect, as in Kafka 2.8.")] = False,
    spark: Spark = None,
    metrics_port: MetricsPort = None,
    metrics_profile: MetricsProfiles = None,
    output: Output = Format.TEXT,
    log_format: LogFormatAlone = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log more.")] = False,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=print_version, help="Print the version.")
    ] = False,
) -> None:
    """Mirror as MirrorMaker 1 did, with its files and flags, until stopped.

    Begins at the offsets that MirrorMaker 1 committed under its group.id, and commits under it,
    too.

    Exit codes: 0 stopped, 1 a partition can't be copied (--abort.on.send.failure true), 2 a file or
    a flag is wrong, 3 a cluster can't be reached or can't be a target, or Spark is missing.

    Example: sparkmirror legacy --consumer.config c.properties --producer.config p.properties --include 'orders|bills'
    """
    set_up_logging(verbose, log_format)
    _refuse("--consumer.rebalance.listener", consumer_rebalance_listener, _LISTENER)
    _refuse("--message.handler", message_handler, _HANDLER)
    for flag, given, of in (
        ("--rebalance.listener.args", rebalance_listener_args, "--consumer.rebalance.listener"),
        ("--message.handler.args", message_handler_args, "--message.handler"),
    ):
        if given is not None:
            warn(f"{flag} has no effect without {of}, as in MirrorMaker 1")
    if new_consumer:
        warn("--new.consumer has no effect: there is no old consumer")
    options = LegacyOptions(
        consumer=consumer,
        producer=producer,
        include=_topics(include, whitelist),
        num_streams=num_streams,
        offset_commit_interval_ms=offset_commit_interval_ms,
        abort_on_send_failure=_boolean("--abort.on.send.failure", abort_on_send_failure),
    )
    config = load_legacy(options, overrides=spark_overrides(spark))
    for line in config.warnings:
        warn(line)
    require_spark()
    config = named_after(config, _source_id(config))
    from sparkmirror.mirror.engine.mirror import Mirror  # Spark is slow to import; errors in the files come first

    newest: Snapshot | None = None
    with ProgressView(output) as view:

        def show(snapshot: Snapshot) -> None:
            nonlocal newest
            newest = snapshot
            view.show(snapshot)

        mirror = Mirror(config, on_progress=show)
        mirror.observer.mode = "legacy"
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: mirror.stop())
        observer = mirror.observer
        with metrics_served(
            metrics_port,
            metrics_profile,
            config,
            observer.snapshot,
            lambda: mirror.tick_age_s,
            history=observer.history,
        ):
            mirror.run()
    for parked in filter(None, map(flow_lines.parked, newest.flows if newest is not None else ())):
        warn(f"{len(parked)} partitions could not be copied to the end, first: {parked[0]}")


def _refuse(flag: str, given: str | None, reason: str) -> None:
    if given:
        raise ConfigError(reason, origin=_COMMAND_LINE, key=flag)


def _topics(include: str | None, whitelist: str | None) -> str:
    """Return the regular expression that counts.

    Raises `ConfigError` if it is missing or invalid.
    """
    flag, text = ("--include", include) if include is not None else ("--whitelist", whitelist)
    if text is None or not included(text):
        reason = (
            "is missing: write --include '.*' for all topics, or --include 'orders|bills' for some; MirrorMaker 1 stops"
            " without one, too"
        )
        raise ConfigError(reason, origin=_COMMAND_LINE, key="--include")
    if include is not None and whitelist is not None:
        warn("--whitelist has no effect with --include, as in MirrorMaker 1")
    try:
        NamePatterns([included(text)], [])
    except ValueError as error:
        raise ConfigError(str(error), origin=_COMMAND_LINE, key=flag) from error
    return text


def _boolean(flag: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ConfigError(f"{text!r} is not allowed, it must be true or false", origin=_COMMAND_LINE, key=flag)
    return text.lower() == "true"


def _source_id(config: MirrorConfig) -> str:
    (flow,) = config.flows
    with ClusterAdmin.connect(flow.source, "sparkmirror-cli", CONNECT_TIMEOUT_S) as admin:
        return admin.cluster_id()
