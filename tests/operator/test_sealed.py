"""The operator resolves nothing: its own files, variables and other Secrets show nowhere, whatever a resource says."""

from __future__ import annotations

import http.server
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.operated import KEY, MemoryApi, config_map, put, resource, secret, turns

from sparkmirror.config import providers
from sparkmirror.config.formats.strimzi_fields import FIELDS
from sparkmirror.errors import ConfigError
from sparkmirror.operator.kube import KubeRefused, object_path
from sparkmirror.operator.names import is_object_name
from sparkmirror.operator.plan import make_plan
from sparkmirror.operator.references import ObjectReference, mounted_references, pod_references
from sparkmirror.operator.rest import ConnectRest, RestAway, RestRefused

MARKER = "eyJhbGciOi.marker-of-the-operator"
CONTENTS = {
    ObjectReference("Secret", "mirror-user"): {"password": MARKER.encode()},
    ObjectReference("Secret", "db-password"): {"pw": MARKER.encode()},
}


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """References to a file, a variable and a Secret with the marker, by each provider that a resource may name."""
    directory = tmp_path_factory.mktemp("serviceaccount")
    (directory / "token").write_text(MARKER)
    (directory / "file.properties").write_text(f"token={MARKER}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPERATORS_TOKEN", MARKER)
        yield [
            f"${{d:{directory}:token}}",
            f"${{f:{directory}/file.properties:token}}",
            "${e:OPERATORS_TOKEN}",
            f"${{strimzidir:{directory}:token}}",
            f"${{strimzifile:{directory}/file.properties:token}}",
            "${strimzienv:OPERATORS_TOKEN}",
            f"${{strimzisecrets:{KEY.namespace}/db-password:pw}}",
        ]


def declaring(spec: dict[str, Any]) -> None:
    """Declare the three providers with short names, as a resource may."""
    kinds = {"d": "Directory", "f": "File", "e": "EnvVar"}
    package = "org.apache.kafka.common.config.provider."
    spec["target"].setdefault("config", {}).update(
        {"config.providers": "d,f,e"}
        | {f"config.providers.{name}.class": f"{package}{kind}ConfigProvider" for name, kind in kinds.items()}
    )


def told(tree: dict[str, Any]) -> str:
    """All that a turn says and makes of a resource."""
    api = MemoryApi(tree, secret(), secret("db-password", pw=MARKER), config_map("settings"))
    with suppress(KubeRefused):
        turns(api, ConnectRest("http://127.0.0.1:9"))()
    made = {path: item for path, item in api.objects.items() if "/secrets/" not in path}
    return str(made)


def test_a_tokens_words_come_back_in_no_error(planted: list[str]) -> None:
    for reference in planted:

        def leak(spec: dict[str, Any], reference: str = reference) -> None:
            declaring(spec)
            spec["mirrors"][0]["topicsPattern"] = f"[{reference}"

        text = told(resource(leak))
        assert MARKER not in text
        assert reference.rpartition(":")[2] in text, "the reference itself is passed on to the pod"


def test_no_reference_is_ever_resolved(planted: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def found(*_: object) -> str:
        raise AssertionError("resolved in the operator")

    monkeypatch.setattr(providers, "_value", found)
    for reference in planted:

        def refer(spec: dict[str, Any], reference: str = reference) -> None:
            declaring(spec)
            spec["mirrors"][0]["source"]["bootstrapServers"] = reference
            spec["mirrors"][0]["sourceConnector"]["config"] = {"offset.lag.max": reference, "refresh.topics": reference}
            spec["mirrors"][0]["groupsPattern"] = reference

        plan = make_plan(resource(refer), KEY, CONTENTS)
        assert plan.connectors[0].config["offset.lag.max"].endswith(reference.rpartition(":")[2])


places = st.sampled_from([field.path for field in FIELDS if field.path.startswith(("target", "mirrors"))])


@settings(max_examples=300)
@given(
    where=st.lists(places, min_size=1, max_size=3),
    wrap=st.sampled_from(["{}", "[{}", "{},x", "a{}(", "{}:9092", "-{}", "{}\n"]),
    data=st.data(),
)
def test_a_marker_in_any_field_shows_nowhere(
    planted: list[str], where: list[str], wrap: str, data: st.DataObject
) -> None:
    tree = resource(declaring)
    for field in where:
        put(tree["spec"], field, wrap.format(data.draw(st.sampled_from(planted))))
    assert MARKER not in told(tree)


@pytest.mark.parametrize(
    "name", ["../../kube-system/secrets/admin", "a/b", "..", ".", "a..b", "", "Upper", "a b", "-a", "a" * 254, "a%2fb"]
)
def test_a_name_leads_to_no_other_object(name: str, tmp_path: Path) -> None:
    assert not is_object_name(name)
    with pytest.raises(KubeRefused):
        object_path("Secret", name or "..", "x")

    def refer(spec: dict[str, Any]) -> None:
        spec["target"]["authentication"]["passwordSecret"] = {"secretName": name, "password": "x"}
        spec["template"] = {"pod": {"volumes": [{"name": "v", "secret": {"secretName": name}}]}}

    spec = resource(refer)["spec"]
    with pytest.raises(ConfigError, match=r"secretName: .* is no name of a Secret"):
        mounted_references(spec, KEY.namespace)
    with pytest.raises(ConfigError, match=r"spec\.template.*secretName: .* is no name of a Secret"):
        pod_references(spec, KEY.namespace)
    assert "InvalidResourceException" in told(resource(refer)) or not name


def test_no_file_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("written to disk")

    for owner, method in ((Path, "write_bytes"), (Path, "write_text"), (Path, "touch"), (os, "mkdir")):
        monkeypatch.setattr(owner, method, refuse)
    assert make_plan(resource(), KEY, CONTENTS).connectors


@contextmanager
def hostile_pod(location: str, length: int) -> Iterator[str]:
    """A pod that sends its visitor elsewhere, or a long answer."""

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(302 if location else 200)
            if location:
                self.send_header("Location", location)
            self.end_headers()
            with suppress(OSError):
                for _ in range(length >> 20):
                    self.wfile.write(b" " * (1 << 20))

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_pod_cannot_send_the_operator_elsewhere() -> None:
    with hostile_pod("", 0) as elsewhere, hostile_pod(elsewhere, 0) as url, pytest.raises(RestRefused):
        ConnectRest(url).get("/connectors")


def test_a_pods_answer_is_bounded() -> None:
    with hostile_pod("", 80 << 20) as url, pytest.raises(RestAway, match="more than 64 MB"):
        ConnectRest(url).get("/connectors")
