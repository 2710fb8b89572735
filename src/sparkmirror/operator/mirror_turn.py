"""A `Mirror`'s turn: its objects, and the flows in its pods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sparkmirror.errors import ConfigError
from sparkmirror.operator.deployed import (
    apply_objects,
    deployment_of,
    pod_count,
    pods_of,
    refused_object,
    wanted_count,
    why_not_up,
)
from sparkmirror.operator.kube import Api, KubeRefused
from sparkmirror.operator.mirror_file import file_text, named_secrets, read_mirror
from sparkmirror.operator.mirror_status import SeenMirror, mirror_outcome
from sparkmirror.operator.names import Key
from sparkmirror.operator.peers import Sharing
from sparkmirror.operator.pod_flows import AskPod, told_flows
from sparkmirror.operator.references import Contents, read_references
from sparkmirror.operator.resource_status import (
    NO_EFFECT,
    ResourceTrouble,
    TurnOutcome,
    held_trouble,
    holding_warnings,
    ready_pods,
)
from sparkmirror.operator.turn_settings import Settings
from sparkmirror.operator.workload import mirror_references, mirror_workload


class MirrorTurn:
    """One `Mirror`'s turn; `ask` asks a pod for its snapshot."""

    def __init__(self, api: Api, ask: AskPod, settings: Settings, resource: dict[str, Any], key: Key) -> None:
        self._api, self._ask, self._settings = api, ask, settings
        self._resource, self._key = resource, key
        self._spec: Mapping[str, Any] = resource.get("spec") or {}

    def turn(self, sharing: Sharing) -> TurnOutcome:
        """Take the turn as far as possible; return the new status.

        Changes nothing while an older resource shares names with this Mirror.
        """
        seen = self._seen(sharing)
        return mirror_outcome(self._asked(seen) if seen.wanted else seen, self._resource.get("status") or {})

    def _seen(self, sharing: Sharing) -> SeenMirror:
        deployed = deployment_of(self._api, self._key)
        there = wanted_count(deployed)
        seen = SeenMirror(
            key=self._key,
            generation=int(self._resource["metadata"].get("generation") or 0),
            replicas=pod_count(deployed),
            wanted=there,
        )
        if sharing.earlier:
            return replace(seen, trouble=held_trouble(sharing))
        try:
            contents = read_references(self._api, self._key.namespace, mirror_references(self._spec, self._key))
            text = file_text(self._spec, self._key, contents)
            config, warnings = read_mirror(text, self._spec, self._key)
            missing = self._missing(contents)
        except ConfigError as error:
            words = f"{error.key}: {error.reason}" if error.key else error.reason
            return replace(seen, trouble=ResourceTrouble("InvalidFile", words))
        if missing:
            return replace(seen, trouble=ResourceTrouble("SecretMissing", missing))
        workload = mirror_workload(self._spec, self._key, text)
        seen = replace(
            seen,
            wanted=workload.replicas,
            names=[flow.name for flow in config.flows],
            warnings=[*holding_warnings(sharing), *(ResourceTrouble(NO_EFFECT, line) for line in warnings)],
        )
        try:
            deployed = apply_objects(self._api, self._settings, self._resource, self._key, workload, deployed)
        except KubeRefused as refused:
            return replace(seen, trouble=refused_object(refused))
        return replace(seen, ready=ready_pods(deployed), replicas=pod_count(deployed))

    def _missing(self, contents: Contents) -> str:
        """Return which named Secret is missing; empty if all are there."""
        names = [item.name for item in named_secrets(self._spec, self._key.namespace) if item not in contents]
        return "; ".join(f"Secret {name} is not there" for name in names)

    def _asked(self, seen: SeenMirror) -> SeenMirror:
        """Ask the pods for their flows; they continue, whatever the trouble is."""
        flows, silent = told_flows(pods_of(self._api, self._key), self._ask)
        seen = replace(seen, flows=flows)
        if flows or seen.trouble is not None:
            return seen
        trouble = why_not_up(self._api, self._key)
        if trouble is None:
            trouble = ResourceTrouble("PodsUnreachable", silent[0] if silent else "no pod has an address yet")
        return replace(seen, trouble=trouble)
