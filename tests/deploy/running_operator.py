"""The operator's watches and turns in this process, next to a real API server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace

from tests.deploy.kube_cluster import KubeCluster
from tests.support.operated import KEY, SETTINGS, secret
from tests.support.served_api import ServedApi

from sparkmirror.operator.controller import BUSY_S, CALM_S, Controller
from sparkmirror.operator.kube import KubeApi
from sparkmirror.operator.pod_flows import AskPod, pod_snapshot
from sparkmirror.operator.rest import ConnectRest
from sparkmirror.operator.turn import Turns
from sparkmirror.operator.watching import cluster_access, known_peers, served_versions, watch_kinds


@contextmanager
def running_operator(
    cluster: KubeCluster,
    served: ServedApi,
    *,
    calm_s: float = CALM_S,
    busy_s: float = BUSY_S,
    ask: AskPod = pod_snapshot,
) -> Iterator[None]:
    """Look after the cluster of KUBECONFIG, with the Secret that resources name.

    Pods' REST interface is `served`; `ask` asks the pods of Mirrors.
    """
    api = KubeApi(cluster_access)
    versions = served_versions(api)
    settings = replace(SETTINGS, versions=versions)
    peers = known_peers(api, versions, [KEY.namespace], settings.class_name)
    turns = Turns(api, lambda _: ConnectRest(served.url), settings, peers, ask)
    stop = threading.Event()
    with closing(Controller(turns.take, calm_s, busy_s)) as controller:
        watching = threading.Thread(
            target=watch_kinds,
            args=(controller, api, peers, versions, cluster_access, [KEY.namespace], stop, 1.0),
            daemon=True,
        )
        watching.start()
        cluster.apply(secret())
        try:
            yield
        finally:
            stop.set()
            watching.join(30)
