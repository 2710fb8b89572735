"""The few requests that the operator makes of Kubernetes' API itself; what is watched, kopf watches."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any, Protocol
from urllib.parse import quote

from sparkmirror.operator.names import MANAGER

_TIMEOUT_S = 30.0
_PLURALS = {
    "ServiceAccount": "serviceaccounts",
    "ConfigMap": "configmaps",
    "Secret": "secrets",
    "Service": "services",
    "Pod": "pods",
    "Event": "events",
    "NetworkPolicy": "networkpolicies",
    "PodDisruptionBudget": "poddisruptionbudgets",
    "Deployment": "deployments",
}
_VERSIONS = {
    "NetworkPolicy": "networking.k8s.io/v1",
    "PodDisruptionBudget": "policy/v1",
    "Deployment": "apps/v1",
}


class KubeRefused(Exception):
    """The API refuses a request, or can't be reached; the message is one line."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        """0 if it can't be reached."""


class ApiAccess(Protocol):
    """How the API is reached: kopf's `ConnectionInfo`."""

    @property
    def server(self) -> str: ...
    def as_http_headers(self) -> dict[str, str]: ...
    def as_ssl_context(self) -> ssl.SSLContext: ...


def object_path(kind: str, namespace: str, name: str = "") -> str:
    """The path of an object of a kind that is known here, or of all of them in a namespace."""
    version = _VERSIONS.get(kind, "v1")
    return resource_path(version, _PLURALS[kind], namespace, name)


def resource_path(version: str, plural: str, namespace: str, name: str = "") -> str:
    """The same of any kind; `version` with its group."""
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    path = f"{root}/namespaces/{quote(namespace)}/{plural}"
    return f"{path}/{quote(name)}" if name else path


class KubeApi:
    """Requests over `access`, which is asked for anew when the API no longer knows us. For any thread."""

    def __init__(self, access: Callable[[], ApiAccess]) -> None:
        self._access = access
        self._renew()

    def _renew(self) -> None:
        access = self._access()
        self._server = access.server.rstrip("/")
        self._headers = access.as_http_headers()
        tls = access.as_ssl_context() if self._server.startswith("https") else None
        handlers = [urllib.request.ProxyHandler({})] + ([urllib.request.HTTPSHandler(context=tls)] if tls else [])
        self._opener = urllib.request.build_opener(*handlers)

    def get(self, path: str) -> dict[str, Any] | None:
        """What is there; None if it is not. Raises `KubeRefused`."""
        try:
            return self._ask("GET", path)
        except KubeRefused as refused:
            if refused.status == 404:
                return None
            raise

    def apply(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Have it there as it stands; fields that others own and it doesn't name stay (server-side apply)."""
        metadata = manifest["metadata"]
        path = object_path(manifest["kind"], metadata["namespace"], metadata["name"])
        query = f"?fieldManager={MANAGER}&force=true"
        return self._ask("PATCH", path + query, manifest, "application/apply-patch+yaml")

    def merge(self, path: str, patch: Mapping[str, Any]) -> dict[str, Any]:
        """Change what the patch names; null removes."""
        return self._ask("PATCH", path, patch, "application/merge-patch+json")

    def create(self, path: str, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Make what is not there yet."""
        return self._ask("POST", path, manifest)

    def delete(self, path: str) -> None:
        """Remove it, and in the background what it owns; well, too, if it is not there."""
        try:
            self._ask("DELETE", f"{path}?propagationPolicy=Background")
        except KubeRefused as refused:
            if refused.status != 404:
                raise

    def _ask(
        self, method: str, path: str, body: object = None, content: str = "application/json", *, again: bool = True
    ) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": content, "Accept": "application/json", **self._headers}
        request = urllib.request.Request(self._server + path, data, headers, method=method)  # noqa: S310 - https
        try:
            with self._opener.open(request, timeout=_TIMEOUT_S) as answer:
                read = json.loads(answer.read() or b"{}")
                return read if isinstance(read, dict) else {}
        except urllib.error.HTTPError as error:
            if error.code == 401 and again:  # a service account's token is renewed every hour
                self._renew()
                return self._ask(method, path, body, content, again=False)
            raise KubeRefused(error.code, _message(error)) from None
        except (OSError, ValueError) as error:
            raise KubeRefused(0, f"Kubernetes' API can't be asked: {error}") from None


def _message(error: urllib.error.HTTPError) -> str:
    try:
        told = json.loads(error.read()).get("message")
    except (ValueError, AttributeError, OSError):
        told = None
    return " ".join(str(told or f"HTTP {error.code}").split())
