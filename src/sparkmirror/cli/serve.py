"""`sparkmirror serve`: a Kafka Connect worker's own file, and its REST interface."""

from __future__ import annotations

import signal
import threading
from contextlib import closing
from typing import Annotated

import typer

from sparkmirror.cli.logs import LogFormat, set_up_logging, use_format, warn
from sparkmirror.cli.metrics import MetricsPort, MetricsProfiles, metrics_served
from sparkmirror.cli.output import Format, Output, print_line
from sparkmirror.cli.progress import ProgressView
from sparkmirror.config import MirrorConfig
from sparkmirror.mirror.engine.installed_spark import require_spark

File = Annotated[
    str, typer.Argument(metavar="FILE", help="A connect-distributed.properties file, as a Connect worker takes it.")
]


def serve(
    file: File,
    jaas: Annotated[
        str | None,
        typer.Option("--jaas", metavar="FILE", help="The JAAS file of basic authentication, if KAFKA_OPTS names none."),
    ] = None,
    metrics_port: MetricsPort = None,
    metrics_profile: MetricsProfiles = None,
    output: Output = Format.TEXT,
    log_format: LogFormat = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log more.")] = False,
) -> None:
    """Run MirrorMaker 2's connectors with Kafka Connect's REST interface.

    Runs until stopped. Each process answers /metrics and the live page, /page/, for itself next to
    the interface, to the same people; with --metrics-port also on a port of its own, with /health
    and /ready.

    Connectors are put as with a Connect worker: curl -X PUT -H "Content-Type: application/json"
    --data @mm2-msc.json http://localhost:8083/connectors/mm2-msc/config

    Exit codes: 0 stopped, 2 the file is wrong, 3 a cluster can't be reached, or Spark is missing
    or has ended.

    Example: sparkmirror serve connect-distributed.properties
    """
    set_up_logging(verbose, log_format)
    from sparkmirror.connect.basic_auth import jaas_file, read_users
    from sparkmirror.connect.worker_properties import read_worker_properties

    config = read_worker_properties(file)
    if log_format is None:
        use_format(config.log_format)
    for line in config.warnings:
        warn(line)
    users = read_users(jaas or jaas_file(), file) if config.basic_auth else None
    if users is not None and users.warning:
        warn(users.warning)
    require_spark()
    # Spark is slow to import; errors in the file come first
    from sparkmirror.config.formats.connect_files import WorkerSettings as WorkerFile
    from sparkmirror.connect.server import ConnectServer
    from sparkmirror.connect.worker import ConnectWorker
    from sparkmirror.look.metrics.app import app_of, metrics_router
    from sparkmirror.look.page.controls import FlowControls
    from sparkmirror.look.page.router import page_router
    from sparkmirror.web.access import on_loopback

    stopped = threading.Event()
    errors: list[Exception] = []

    def give_up(error: Exception) -> None:
        if not stopped.is_set():  # a signal to the whole process group ends Spark, too
            errors.append(error)
            stopped.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    file_of_worker = WorkerFile(config.for_connectors, config.path)
    with (
        ProgressView(output) as view,
        closing(ConnectWorker(file_of_worker, config.worker_id, on_progress=view.show, on_end=give_up)) as worker,
    ):
        worker.start()
        may_act = (lambda _: True) if users is not None and users.are_asked else on_loopback
        worker.show_page(f"{config.url}/page/")
        page = page_router(worker.snapshots, FlowControls(lambda: worker.flows), may_act, history=worker.history)
        mounted = app_of({"": metrics_router(worker.snapshots, metrics_profile or ()), "/page": page})
        own = MirrorConfig(path=config.path, flows=())
        with (
            ConnectServer(config, worker, users, {"metrics": mounted, "page": mounted}),
            metrics_served(
                metrics_port,
                metrics_profile,
                own,
                worker.snapshots,
                lambda: worker.tick_age_s,
                lambda: worker.flows,
                config.trusted,
                worker.history,
            ),
        ):
            if output is Format.JSON:
                print_line(
                    {"worker_id": config.worker_id, "listeners": [listener.url for listener in config.listeners]}
                )
            stopped.wait()
    if errors:
        raise errors[0]
