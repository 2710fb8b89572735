"""Client for the operator's few requests to Kubernetes' API.

kopf watches the resources.
"""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol
from urllib.parse import quote

from sparkmirror.errors import HandledError
from sparkmirror.operator.names import MANAGER, Key, is_object_name

PAGE = 100
"""Most objects in an answer.

The operator's memory must not grow with the cluster.
"""

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


class KubeRefused(HandledError):
    """Error for a request that the API refuses or does not answer; one line."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        """HTTP status; 0 if the API can't be reached."""


class Api(Protocol):
    """Requests to Kubernetes' API, implemented by `KubeApi`."""

    def get(self, path: str) -> dict[str, Any] | None: ...
    def apply(self, manifest: Mapping[str, Any]) -> dict[str, Any]: ...
    def merge(self, path: str, patch: Mapping[str, Any]) -> dict[str, Any]: ...
    def create(self, path: str, manifest: Mapping[str, Any]) -> dict[str, Any]: ...
    def delete(self, path: str) -> None: ...


class ApiAccess(Protocol):
    """Access to the API, as by kopf's `ConnectionInfo`."""

    @property
    def server(self) -> str: ...
    @property
    def default_namespace(self) -> str | None: ...
    def as_http_headers(self) -> dict[str, str]: ...
    def as_ssl_context(self) -> ssl.SSLContext: ...


def object_path(kind: str, namespace: str, name: str = "") -> str:
    """Return the path of an object, or of all objects of a kind in a namespace.

    The kind must be one of `_PLURALS`.
    """
    version = _VERSIONS.get(kind, "v1")
    return resource_path(version, _PLURALS[kind], namespace, name)


def resource_path(version: str, plural: str, namespace: str, name: str = "") -> str:
    """Return the path of a resource of any kind; `version` includes the group."""
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    path = f"{root}/namespaces/{_segment(namespace)}/{plural}"
    return f"{path}/{_segment(name)}" if name else path


def kind_path(key: Key, version: str) -> str:
    """Return an operated resource's path; `version` without the group."""
    return resource_path(f"{key.kind.group}/{version}", key.kind.plural, key.namespace, key.name)


def _segment(name: str) -> str:
    """Return a name as one segment in a path.

    Raises `KubeRefused` for a name that no object has.
    """
    if not is_object_name(name):
        raise KubeRefused(422, f"{name!r} is no name of an object in Kubernetes")
    return quote(name, safe="")


class KubeApi:
    """API client; thread-safe.

    Gets new credentials by `access` when the API rejects the present ones.
    """

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
        """Read an object; None if it is missing. Raises `KubeRefused`."""
        try:
            return self._ask("GET", path)
        except KubeRefused as refused:
            if refused.status == 404:
                return None
            raise

    def items(self, path: str) -> Iterator[dict[str, Any]]:
        """Yield all objects below a path, page by page."""
        token = ""
        while True:
            answer = self._ask("GET", f"{path}?limit={PAGE}" + (f"&continue={quote(token, safe='')}" if token else ""))
            yield from answer.get("items") or ()
            token = (answer.get("metadata") or {}).get("continue") or ""
            if not token:
                return

    def apply(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Create or change an object to match the manifest, by server-side apply.

        Other managers' fields stay if the manifest does not name them.
        """
        metadata = manifest["metadata"]
        path = object_path(manifest["kind"], metadata["namespace"], metadata["name"])
        query = f"?fieldManager={MANAGER}&force=true"
        return self._ask("PATCH", path + query, manifest, "application/apply-patch+yaml")

    def merge(self, path: str, patch: Mapping[str, Any]) -> dict[str, Any]:
        """Change the fields in the patch; null removes a field."""
        return self._ask("PATCH", path, patch, "application/merge-patch+json")

    def create(self, path: str, manifest: Mapping[str, Any]) -> dict[str, Any]:
        return self._ask("POST", path, manifest)

    def delete(self, path: str) -> None:
        """Remove an object, and in the background its dependents.

        A missing object is no error.
        """
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
