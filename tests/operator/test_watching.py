"""What the operator asks the API for while it watches: a stand-in for the API counts it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import kopf
import pytest
from tests.support import mirror_process as mp
from tests.support.operated import KEY, resource

from sparkmirror.operator.controller import Controller
from sparkmirror.operator.kube import KubeApi
from sparkmirror.operator.names import GROUP, MIRROR, PLURAL, STRIMZI, Key, labels
from sparkmirror.operator.peers import Peers
from sparkmirror.operator.turn_settings import Memory
from sparkmirror.operator.watching import awaited_versions, registry, watch

GROUPS = {"apps": "deployments", GROUP: PLURAL, "apiextensions.k8s.io": "customresourcedefinitions"}
CORE = ("namespaces", "secrets", "configmaps", "events")


@dataclass
class StandIn:
    """The API of a cluster with one resource; `asked` has the path and the query of each request."""

    asked: list[tuple[str, dict[str, list[str]]]] = field(default_factory=list)
    deployments: Sequence[dict[str, Any]] = ()
    ended: threading.Event = field(default_factory=threading.Event)

    def lists(self) -> set[str]:
        """The kinds that were listed or watched."""
        return {path.rpartition("/")[2] for path, query in self.asked if "limit" in query or "watch" in query}

    def watches(self) -> int:
        return sum("watch" in query for _, query in self.asked)

    def answer(self, path: str) -> dict[str, Any]:
        parts = path.strip("/").split("/")
        if path == "/api":
            return {"versions": ["v1"]}
        if path == "/apis":
            return {"groups": [_group(name) for name in GROUPS]}
        if path == "/api/v1":
            return {"resources": [_kind(plural) for plural in CORE]}
        if len(parts) == 3 and parts[1] in GROUPS:
            return {"resources": [_kind(GROUPS[parts[1]])]}
        items = [resource()] if parts[-1] == PLURAL else list(self.deployments if parts[-1] == "deployments" else ())
        return {"kind": "List", "metadata": {"resourceVersion": "7"}, "items": items}


def _group(name: str) -> dict[str, Any]:
    version = {"groupVersion": f"{name}/v1", "version": "v1"}
    return {"name": name, "versions": [version], "preferredVersion": version}


def _kind(plural: str) -> dict[str, Any]:
    verbs = ["list", "watch", "patch", "get"]
    return {"name": plural, "singularName": "", "kind": plural.title(), "namespaced": True, "verbs": verbs}


@contextmanager
def stand_in() -> Iterator[tuple[StandIn, str]]:
    api = StandIn()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            query = parse_qs(url.query)
            api.asked.append((url.path, query))
            body = b"" if "watch" in query else json.dumps(api.answer(url.path)).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            if "watch" not in query:
                self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            if "watch" in query:
                self.wfile.flush()
                api.ended.wait(30)

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield api, f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        api.ended.set()
        server.shutdown()
        server.server_close()
        thread.join(10)


@pytest.mark.parametrize("namespaces", [[], [KEY.namespace]], ids=["all namespaces", "one namespace"])
def test_only_the_resources_and_what_was_made_for_them_are_listed(namespaces: Sequence[str]) -> None:
    due: list[Key] = []

    def take(key: Key, _: Memory) -> bool:
        due.append(key)
        return True

    stop = threading.Event()
    with stand_in() as (api, url):
        controller = Controller(take)
        access = kopf.ConnectionInfo(server=url, default_namespace=KEY.namespace, insecure=True)
        handlers = registry(controller, {STRIMZI: "v1"}, Peers("sparkmirror"))
        watching = threading.Thread(target=watch, args=(handlers, lambda: access, namespaces, stop), daemon=True)
        watching.start()
        try:
            mp.wait_for(lambda: bool(due) and api.watches() >= 2, 30, "both kinds are watched")
        finally:
            stop.set()
            api.ended.set()
            watching.join(30)
            controller.close()
    assert due[0] == KEY
    assert api.lists() == {PLURAL, "deployments"}, "a cluster's Secrets, ConfigMaps and definitions may have gigabytes"
    deployments = [query for path, query in api.asked if path.endswith("/deployments")]
    assert {tuple(query["labelSelector"]) for query in deployments} == {
        ("app.kubernetes.io/managed-by=sparkmirror-operator",)
    }
    listed = [query for path, query in api.asked if "watch" not in query and path.endswith((PLURAL, "deployments"))]
    assert all("limit" in query for query in listed), "in pages"


def test_what_was_made_for_a_deleted_resource_causes_no_turn() -> None:
    due: list[Key] = []

    def take(key: Key, _: Memory) -> bool:
        due.append(key)
        return True

    gone, there = Key(KEY.namespace, "gone"), Key(KEY.namespace, "there")
    peers, stop = Peers("sparkmirror"), threading.Event()
    peers.see(there, resource())
    with stand_in() as (api, url):
        api.deployments = [
            {"metadata": {"name": key.name, "namespace": key.namespace, "uid": key.name, "labels": labels(key)}}
            for key in (gone, there)
        ]
        controller = Controller(take)
        access = kopf.ConnectionInfo(server=url, default_namespace=KEY.namespace, insecure=True)
        handlers = registry(controller, {STRIMZI: "v1"}, peers)
        watching = threading.Thread(target=watch, args=(handlers, lambda: access, (), stop), daemon=True)
        watching.start()
        try:
            mp.wait_for(lambda: there in due, 30, "the Deployment of a known resource is noticed")
        finally:
            stop.set()
            api.ended.set()
            watching.join(30)
            controller.close()
    assert gone not in due


class ServedKinds:
    """The API of a cluster that serves these kinds, by their API's path."""

    def __init__(self, *served: dict[str, str]) -> None:
        self.answers = list(served)

    def get(self, path: str) -> dict[str, Any] | None:
        plural = self.answers[0].get(path)
        if path.endswith("v1alpha1") and len(self.answers) > 1:
            self.answers.pop(0)
        return {"resources": [{"name": plural}]} if plural else None


STRIMZIS = {f"/apis/{GROUP}/v1": PLURAL, f"/apis/{GROUP}/v1beta2": PLURAL}
OURS = {"/apis/sparkmirror.io/v1alpha1": "mirrors"}


def test_it_waits_until_one_kind_is_defined(caplog: pytest.LogCaptureFixture) -> None:
    api = cast(KubeApi, ServedKinds({}, {}, {}, STRIMZIS))
    assert awaited_versions(api, threading.Event(), 0.01) == {STRIMZI: "v1beta2"}
    assert [record.getMessage() for record in caplog.records] == [
        "Kubernetes knows no kafkamirrormaker2s.kafka.strimzi.io: Strimzi has its CustomResourceDefinition; the"
        " operator looks for it again by itself",
        "Kubernetes knows no mirrors.sparkmirror.io: the operator's chart has its CustomResourceDefinition; the"
        " operator looks for it again by itself",
    ]
    stop = threading.Event()
    stop.set()
    assert awaited_versions(cast(KubeApi, ServedKinds({})), stop) == {}


@pytest.mark.parametrize(
    ("served", "versions"),
    [(OURS, {MIRROR: "v1alpha1"}), (STRIMZIS | OURS, {STRIMZI: "v1beta2", MIRROR: "v1alpha1"})],
    ids=["ours", "both"],
)
def test_it_runs_the_kinds_that_there_are(
    served: dict[str, str], versions: dict[Any, str], caplog: pytest.LogCaptureFixture
) -> None:
    assert awaited_versions(cast(KubeApi, ServedKinds(served)), threading.Event()) == versions
    assert len(caplog.records) == 2 - len(versions), "one line for each kind that is missing"
