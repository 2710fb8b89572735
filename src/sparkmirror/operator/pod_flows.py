"""Flows as a `Mirror`'s pods tell them, over HTTP."""

from __future__ import annotations

import http.client
import urllib.error
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from sparkmirror.errors import HandledError
from sparkmirror.operator.names import METRICS_PORT
from sparkmirror.operator.rest import direct_opener
from sparkmirror.snapshot.snapshot import Flow, Role, Snapshot

_TIMEOUT_S = 5.0
_LONGEST = 64 << 20
"""Most bytes in a snapshot; with 10,000 partitions it has 5 MB."""


class PodSilent(HandledError):
    """Error for a pod that tells no flows; one line."""


AskPod = Callable[[str], Snapshot]
"""Asks the pod at an address for its snapshot; raises `PodSilent`."""


def pod_snapshot(address: str, port: int = METRICS_PORT) -> Snapshot:
    """Return the snapshot of the pod at this address; raises `PodSilent`."""
    host = f"[{address}]" if ":" in address else address
    try:
        with direct_opener().open(f"http://{host}:{port}/snapshot", timeout=_TIMEOUT_S) as answer:
            text = answer.read(_LONGEST + 1)
        if len(text) > _LONGEST:
            raise PodSilent(f"its snapshot has more than {_LONGEST >> 20} MB")
        return Snapshot.from_json(text)
    except urllib.error.HTTPError as error:
        with error:
            raise PodSilent(f"/snapshot is answered by HTTP {error.code}") from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise PodSilent(f"/snapshot is not answered: {getattr(error, 'reason', error)}") from None


class ToldFlows(NamedTuple):
    """Flows by name, each from the pod at work on it, or else from any pod."""

    flows: Mapping[str, Flow]
    silent: tuple[str, ...]
    """Pods that tell no flows, each with the reason."""


def told_flows(pods: Iterable[Mapping[str, Any]], ask: AskPod) -> ToldFlows:
    """Return what the running pods tell about the flows."""
    flows: dict[str, Flow] = {}
    silent = []
    for pod in pods:
        address = (pod.get("status") or {}).get("podIP")
        if not address or pod["metadata"].get("deletionTimestamp"):
            continue
        try:
            snapshot = ask(address)
        except PodSilent as error:
            silent.append(f"pod {pod['metadata']['name']}: {error}")
            continue
        for flow in snapshot.flows:
            if flow.flow not in flows or flow.role is Role.LEADER:
                flows[flow.flow] = flow
    return ToldFlows(flows, tuple(silent))
