"""The operator's watches and turns in this process, beside a real API server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace

from operated import KEY, SETTINGS, secret
from tests.connect.served_api import ServedApi
from tests.deploy.kube_cluster import KubeCluster

from sparkmirror.operator.controller import BUSY_S, CALM_S, Controller
from sparkmirror.operator.kube import KubeApi
from sparkmirror.operator.rest import ConnectRest
from sparkmirror.operator.turn import Turns
from sparkmirror.operator.watching import cluster_access, known_peers, registry, served_version, watch


@contextmanager
def running_operator(
    cluster: KubeCluster, served: ServedApi, *, calm_s: float = CALM_S, busy_s: float = BUSY_S
) -> Iterator[None]:
    """Look after the cluster of KUBECONFIG, with the Secret that resources name; pods' REST interface is `served`."""
    api = KubeApi(cluster_access)
    version = served_version(api)
    settings = replace(SETTINGS, version=version)
    peers = known_peers(api, version, [KEY.namespace], settings.class_name)
    turns = Turns(api, lambda _: ConnectRest(served.url), settings, peers)
    stop = threading.Event()
    with closing(Controller(turns.take, calm_s, busy_s)) as controller:
        watching = threading.Thread(
            target=watch,
            args=(registry(controller, version, peers), cluster_access, [KEY.namespace], stop),
            daemon=True,
        )
        watching.start()
        cluster.apply(secret())
        try:
            yield
        finally:
            stop.set()
            watching.join(30)
