"""What browsers send for pages of other origins is refused, on every listener, and no other client is."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.served_api import served_api
from tests.support.snapshot_samples import snapshot

from sparkmirror.cli.metrics import metrics_served
from sparkmirror.config import MirrorConfig
from sparkmirror.config.model import MetricsConfig
from sparkmirror.demo.ports import free_ports
from sparkmirror.web.access import host_of
from sparkmirror.web.browser_guard import Trusted, trusted_hosts

EVIL = "http://evil.example"
BROWSER = {"accept-language": "en"}


def ask(port: int, method: str, path: str, **headers: str) -> int:
    """Status; `HERE` in a header stands for the server's address."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
        connection.putrequest(method, path, skip_host="host" in headers, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value.replace("HERE", f"127.0.0.1:{port}").encode("latin-1"))
        connection.endheaders()
        return connection.getresponse().status


@pytest.fixture(scope="module")
def rest() -> Iterator[int]:
    with served_api() as served:
        yield served.port


@pytest.fixture(scope="module")
def metrics() -> Iterator[int]:
    """Metrics and page, of which browsers ask by the name `mirror.example` too."""
    (port,) = free_ports(1)
    told = MetricsConfig(listeners=(f"http://127.0.0.1:{port}",), hosts=("Mirror.Example",))
    with metrics_served(None, None, MirrorConfig(path="mm2.properties", flows=(), metrics=told), snapshot):
        yield port


ASKED = [
    # Another origin's page: it may have something sent, and reads no answer
    ({"origin": EVIL}, False),
    ({"origin": "null"}, False),
    ({"origin": "http://127.0.0.1:1"}, False),
    ({"origin": "http://localhost:3000", "sec_fetch_site": "same-site"}, False),
    ({"sec_fetch_site": "cross-site"}, False),
    ({"sec_fetch_site": "same-site"}, False),
    ({"origin": "http://HERE", "sec_fetch_site": "same-origin"}, True),
    ({"origin": "http://HERE"}, True),
    ({"sec_fetch_site": "none"}, True),
    # No browser: any name
    ({"host": "x-mirrormaker2-api.ns.svc:8083"}, True),
    ({"host": "connect.corp.example.com"}, True),
    ({}, True),
]


@pytest.mark.parametrize(("headers", "changes"), ASKED)
def test_a_page_of_another_origin_changes_nothing(rest: int, headers: dict[str, str], changes: bool) -> None:
    assert ask(rest, "POST", "/connectors/none/restart", **headers) == (404 if changes else 403)
    assert ask(rest, "DELETE", "/connectors/none", **headers) == (404 if changes else 403)
    assert ask(rest, "GET", "/connectors", **headers) == 200


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("listener", ["rest", "metrics"])
def test_a_name_that_was_bound_again_reads_nothing(request: pytest.FixtureRequest, listener: str, method: str) -> None:
    port: int = request.getfixturevalue(listener)
    path = "/connectors" if listener == "rest" else "/snapshot"
    fine = {"rest": 415, "metrics": 405}[listener] if method == "POST" else 200
    more = {"content_type": "text/plain"}
    for host in ("evil.example", "evil.example:8083", "127.0.0.1.evil.example", "localhost.evil.example"):
        for marked in (BROWSER, {"sec_fetch_site": "same-origin"}, {"origin": f"http://{host}"}):
            assert ask(port, method, path, host=host, **marked) == 403, (host, marked)
    for host in (
        "127.0.0.1:1",
        "10.1.2.3",
        "[::1]:8083",
        "localhost",
        "connect:8083",
        "a.ns.svc",
        "a.ns.svc.cluster.local",
        "driver.mirror.local",
    ):
        assert ask(port, method, path, host=host, **BROWSER, **(more if fine == 415 else {})) == fine, host


def test_names_of_the_file(metrics: int) -> None:
    assert ask(metrics, "GET", "/snapshot", host="mirror.example", **BROWSER) == 200
    assert ask(metrics, "GET", "/snapshot", host="MIRROR.example.:443", **BROWSER) == 200


@pytest.mark.parametrize("path", ["/events", "/actions/pause", "/metrics", "/", "/connectors"])
@pytest.mark.parametrize("listener", ["rest", "metrics"])
@pytest.mark.parametrize(
    "headers",
    [
        *({"host": host} for host in ("[", "[::1", "[x]", "[::1]x", "a b", "a:b", "user@host", "a/b", "a:1:2", "\xff")),
        *({"origin": f"http://{host}"} for host in ("[", "[::1", "[x]", "a b", "", "a:b", "\xff")),
        {"origin": "["},
        {"origin": ""},
    ],
)
def test_what_is_no_host_or_origin_is_refused(
    request: pytest.FixtureRequest,
    caplog: pytest.LogCaptureFixture,
    listener: str,
    headers: dict[str, str],
    path: str,
) -> None:
    port: int = request.getfixturevalue(listener)
    for method in ("GET", "POST"):
        assert ask(port, method, path, **headers) == 400
    assert not caplog.records


def test_origins_that_the_file_lists() -> None:
    listed = trusted_hosts(["", "Connect.example"], "a.key", ["https://ui.example:8443", "null", "http://*.x", "["])
    assert listed.hosts == {"connect.example", "ui.example"}
    assert listed.allows("https://ui.example:8443")
    assert not listed.allows("https://ui.example")
    assert listed.is_own("ui.example"), "a proxy passes on what its browsers ask"
    assert not listed.is_own("other.example")
    assert Trusted(origins=frozenset("*")).is_own("anything.example")
    assert Trusted(machine="mirror-1.corp.example").is_own("mirror-1.corp.example")


@pytest.mark.parametrize(
    ("place", "host"),
    [("a:1", "a"), ("A.b.", "a.b"), ("[0::1]:9", "::1"), ("1.2.3.4", "1.2.3.4"), ("", ""), ("a_b:", "a_b")],
)
def test_hosts(place: str, host: str) -> None:
    assert host_of(place) == host


def test_all_http_servers_are_guarded() -> None:
    """Where no other module starts uvicorn, none can leave the guard out."""
    sources = Path(__file__).parents[2] / "src" / "sparkmirror"
    starting = [file.name for file in sources.rglob("*.py") if "import uvicorn" in file.read_text("utf-8")]
    assert starting == ["listener.py"]
