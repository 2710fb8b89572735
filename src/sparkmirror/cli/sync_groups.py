"""`sparkmirror sync-groups`: the consumer group offset sync app."""

from __future__ import annotations

import signal
import threading
import time
from typing import Annotated

import typer

from sparkmirror.cli.logs import LogFormatAlone, set_up_logging, warn
from sparkmirror.cli.output import Format, Output, print_line
from sparkmirror.client.group_sync import GroupSync, GroupTurn
from sparkmirror.client.group_sync_file import DEFAULT_FILE, read_group_sync_file
from sparkmirror.config import DEFAULT_POLICY

DEFAULT_GROUP, DEFAULT_SOURCE, DEFAULT_INTERVAL_S = "mm2TestConsumer1", "msksource", 20


def sync_groups(
    groups: Annotated[
        list[str] | None,
        typer.Option("--consumerGroupID", "-cgi", help=f"The group; may be given more than once ({DEFAULT_GROUP})."),
    ] = None,
    source: Annotated[
        str, typer.Option("--sourceCluster", "-src", help="The source's alias in MirrorMaker 2's configuration.")
    ] = DEFAULT_SOURCE,
    file: Annotated[
        str,
        typer.Option("--propertiesFilePath", "-pfp", help="The target cluster: bootstrap servers, stores, passwords."),
    ] = DEFAULT_FILE,
    mtls: Annotated[bool, typer.Option("--mTLSEnable", "-mtls", help="TLS, with a client certificate.")] = False,
    tls: Annotated[bool, typer.Option("--sslEnable", "-ssl", help="TLS.")] = False,
    policy: Annotated[
        str, typer.Option("--replicationPolicyClass", "-rpc", help="MirrorMaker 2's setting.", show_default=False)
    ] = DEFAULT_POLICY,
    separator: Annotated[
        str, typer.Option("--replicationPolicySeparator", "-rps", help="MirrorMaker 2's setting.")
    ] = ".",
    interval_s: Annotated[
        int, typer.Option("--interval", "-int", min=1, metavar="SEC", help="Seconds between two syncs.")
    ] = DEFAULT_INTERVAL_S,
    run_for_s: Annotated[
        int, typer.Option("--runFor", "-rf", min=0, metavar="SEC", help="Seconds until the program exits; 0: never.")
    ] = 0,
    topic: Annotated[str | None, typer.Option("--topic", "-t", hidden=True)] = None,
    output: Output = Format.TEXT,
    log_format: LogFormatAlone = None,
) -> None:
    """Set groups' offsets at the target by their checkpoints, again and again.

    For a MirrorMaker 2 that writes checkpoints without sync.group.offsets.enabled; sparkmirror run
    needs none of it. Sets only groups without members, and never sets offsets back.

    Example: sparkmirror sync-groups -cgi mm2TestConsumer1 -src msksource -pfp consumer.properties -mtls

    Exit codes: 0 stopped, or the time is up; 2 a flag or the file is wrong.
    """
    set_up_logging(verbose=False, log_format=log_format)
    if topic is not None:
        warn("--topic has no effect: the checkpoints name the topics")
    settings = read_group_sync_file(file, tls=tls, mtls=mtls) | {
        "replication.policy.class": policy,
        "replication.policy.separator": separator,
        "source.cluster.alias": source,
    }
    sync = GroupSync(settings, source, groups or [DEFAULT_GROUP])
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    sync.run(interval_s, stop, run_for_s, _print_turn if output is Format.JSON else lambda _: None)


def _print_turn(turn: GroupTurn) -> None:
    print_line(
        {
            "time_ms": int(time.time() * 1000),
            "group": turn.group,
            "state": turn.state,
            "updated": [{**tp._asdict(), "offset": position.offset} for tp, position in turn.updated.items()],
            "refused": [{**tp._asdict(), "error": error} for tp, error in turn.refused.items()],
            "error": turn.error,
        }
    )
