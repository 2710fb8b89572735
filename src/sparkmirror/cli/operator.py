"""`sparkmirror operator`: resources of Kubernetes as sparkmirror's pods."""

from __future__ import annotations

import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Annotated

import typer

from sparkmirror.cli.logs import LogFormatAlone, set_up_logging
from sparkmirror.cli.output import Format, Output, print_line
from sparkmirror.errors import SetupError

_LABELS = {"app.kubernetes.io/name": "sparkmirror-operator"}
"""Labels of the operator's own pods, as in the chart.

Mirrors' pods let pods with these labels ask the REST interface.
"""


def operator(
    image: Annotated[
        str, typer.Option("--image", envvar="SPARKMIRROR_IMAGE", help="The image of sparkmirror that pods run.")
    ],
    namespace: Annotated[
        list[str] | None, typer.Option("--namespace", "-n", help="Only resources in this namespace; repeatable.")
    ] = None,
    class_name: Annotated[
        str,
        typer.Option(
            "--class",
            help="Only resources whose annotation sparkmirror.io/class has this value;"
            " a Mirror without it has the default.",
        ),
    ] = "sparkmirror",
    health_port: Annotated[
        int | None,
        typer.Option(
            "--health-port",
            min=1,
            max=65_535,
            metavar="PORT",
            help="Answer /healthz and /metrics by HTTP on this port.",
        ),
    ] = None,
    output: Output = Format.TEXT,
    log_format: LogFormatAlone = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log more.")] = False,
) -> None:
    """Run the Mirror and KafkaMirrorMaker2 resources of Kubernetes, until stopped.

    Takes the resources Mirror (mirrors.sparkmirror.io), and Strimzi's KafkaMirrorMaker2 with the
    annotation sparkmirror.io/class. Makes a deployment for each.

    Needs the definition of one kind, and begins with the other kind's once it is there.

    Exit codes: 0 stopped, 2 the command line is wrong, 3 there is no Kubernetes, or it refuses.

    Example: sparkmirror operator --image sparkmirror:latest -n kafka
    """
    set_up_logging(verbose, log_format)
    try:
        from sparkmirror.operator.watching import awaited_versions, cluster_access, known_peers, watch_kinds
    except ModuleNotFoundError as error:
        raise SetupError(f"{error.name} is not installed: pip install 'sparkmirror[operator]'") from None
    from sparkmirror.operator.controller import Controller
    from sparkmirror.operator.health import answering
    from sparkmirror.operator.kube import KubeApi
    from sparkmirror.operator.names import rest_url
    from sparkmirror.operator.rest import ConnectRest
    from sparkmirror.operator.turn import Turns
    from sparkmirror.operator.turn_settings import Settings

    api = KubeApi(cluster_access)
    own_namespace = cluster_access().default_namespace or "default"
    namespaces = namespace or []
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())

    # In a thread of its own: in the main thread kopf would take this process's signals, and not hear of `stop`.
    with answering(health_port) as health, ThreadPoolExecutor(1, "watch") as pool:
        versions = awaited_versions(api, stop)
        if output is Format.JSON:
            served = {kind.name: version for kind, version in versions.items()}
            print_line({"class": class_name, "image": image, "versions": served, "namespaces": namespaces})
        if not versions:
            return
        peers = known_peers(api, versions, namespaces, class_name)
        settings = Settings(
            class_name=class_name,
            image=image,
            versions=versions,
            operator_labels=_LABELS,
            operator_namespace=own_namespace,
        )
        turns = Turns(api, lambda key: ConnectRest(rest_url(key)), settings, peers)
        with closing(Controller(turns.take)) as controller:
            health.controller = controller
            pool.submit(watch_kinds, controller, api, peers, versions, cluster_access, namespaces, stop).result()
