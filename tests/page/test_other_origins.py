"""A page of another origin in a real browser: it changes nothing, and reads nothing, of any listener."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
from chromium import chromium
from page_scenes import Stage, staged
from playwright.sync_api import Browser, Page, Route
from tests.support.in_memory_worker import InMemoryWorker
from tests.support.rest_cases import connector
from tests.support.served_api import ServedApi, served_api

pytestmark = pytest.mark.full

EVIL = "evil.example"
SOURCE = connector("Source", "source:9092", "target:9092")
SENT = """async ([url, options]) => {
    if (options.untyped !== undefined) options.body = new Blob([options.untyped]);
    try {
        const answer = await fetch(url, options);
        return [answer.status, await answer.text()];
    } catch (error) { return [0, ""]; }
}"""


@dataclass
class Servers:
    """The REST interface and the page with metrics, which a browser of this machine reaches."""

    rest: ServedApi
    page: str
    stage: Stage

    def is_untouched(self) -> bool:
        worker: InMemoryWorker = self.rest.api.worker
        _, names = self.rest.ask("GET", "/connectors")
        return not worker.restarted and json.loads(names) == ["shop"] and not self.stage.told


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    stage = Stage()
    with served_api() as rest, staged(stage) as page:
        assert rest.ask("PUT", "/connectors/shop/config", json.dumps(SOURCE).encode())[0] == 201
        yield Servers(rest, page.rstrip("/"), stage)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """For it the stranger's name means this machine, as after DNS rebinding.

    Its own guard of local networks is off: older browsers and others have none.
    """
    with chromium(f"--host-resolver-rules=MAP {EVIL} 127.0.0.1", "--disable-features=LocalNetworkAccessChecks") as one:
        yield one


def opened(stack: ExitStack, browser: Browser, url: str) -> Page:
    """A page of this address, whose content is the stranger's."""
    context = browser.new_context()
    stack.callback(context.close)
    page = context.new_page()

    def give(route: Route) -> None:
        route.fulfill(body="<!doctype html><title>evil</title>", content_type="text/html")

    page.route("**/evil", give)
    page.goto(url + "/evil")
    return page


def sent(page: Page, url: str, **options: Any) -> tuple[int, str]:
    """Status and text as the page sees them; 0 where it sees nothing."""
    status, text = page.evaluate(SENT, [url, options])
    return status, text


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
@pytest.mark.parametrize("origin", [f"http://{EVIL}:8999", "http://localhost:8999"])
def test_a_strangers_page(browser: Browser, servers: Servers, name: str, origin: str) -> None:
    rest = servers.rest.url.replace("127.0.0.1", name)
    page_url = servers.page.replace("127.0.0.1", name)
    body = json.dumps({"name": "evil", "config": SOURCE})
    action = json.dumps({"flow": "A->B", "topics": ["orders"]})
    with ExitStack() as stack:
        page = opened(stack, browser, origin)
        for mode in ("no-cors", "cors"):
            sent(page, f"{rest}/connectors/shop/restart", method="POST", mode=mode)
            sent(page, f"{rest}/connectors", method="POST", mode=mode, untyped=body)
            sent(page, f"{rest}/connectors", method="POST", mode=mode, body=body)
            sent(page, f"{page_url}/actions/pause", method="POST", mode=mode, untyped=action)
        for method in ("PUT", "POST", "DELETE", "PATCH"):
            headers = {"Content-Type": "application/json", "X-Sparkmirror-Page": "1"}
            assert sent(page, f"{rest}/connectors/shop/config", method=method, headers=headers, body=body) == (0, "")
            assert sent(page, f"{page_url}/actions/pause", method=method, headers=headers, body=action) == (0, "")
        for path in (f"{rest}/connectors", f"{page_url}/snapshot", f"{page_url}/"):
            assert sent(page, path) == (0, ""), "the browser shows no answer to the page"
        assert servers.is_untouched()
        for action_of_form in (f"{rest}/connectors/shop/restart", f"{rest}/connectors", f"{page_url}/actions/pause"):
            other = opened(stack, browser, origin)
            with other.expect_navigation():
                other.evaluate(
                    """url => {
                        const form = document.createElement("form");
                        form.method = "post"; form.action = url; form.enctype = "text/plain";
                        document.body.append(form); form.submit();
                    }""",
                    action_of_form,
                )
            assert "another origin" in other.content()
    assert servers.is_untouched()


def test_a_strangers_name_that_means_this_machine(browser: Browser, servers: Servers) -> None:
    """The browser takes all for one origin; only the name tells."""
    headers: dict[str, str] = {"Content-Type": "application/json", "X-Sparkmirror-Page": "1"}
    body = json.dumps(SOURCE)
    disguises: tuple[dict[str, str], ...] = (
        {},
        {"Accept-Language": ""},
        {"Accept-Language": "*", "User-Agent": "curl/8"},
    )
    with ExitStack() as stack:
        for url, read, changed in (
            (servers.rest.url, ("/connectors", "/connectors/shop/config"), ("/connectors/shop/restart",)),
            (servers.page, ("/snapshot", "/", "/events", "/rows"), ("/actions/pause",)),
        ):
            evil = url.replace("127.0.0.1", EVIL)
            page = opened(stack, browser, evil)
            for disguise in disguises:
                for path in read:
                    status, text = sent(page, evil + path, headers=disguise)
                    assert (status, f"by the name {EVIL}" in text) == (403, True), (path, disguise)
                for path in changed:
                    for more in ({}, {"headers": {**headers, **disguise}, "body": body}):
                        assert sent(page, evil + path, method="POST", **more)[0] == 403
            assert sent(page, f"{evil}/connectors/evil/config", method="PUT", headers=headers, body=body)[0] == 403
    assert servers.is_untouched()


def test_the_own_page_is_let_in(browser: Browser, servers: Servers) -> None:
    with ExitStack() as stack:
        for name in ("127.0.0.1", "localhost"):
            url = servers.page.replace("127.0.0.1", name)
            page = opened(stack, browser, url)
            assert sent(page, f"{url}/snapshot")[0] == 200
            headers = {"X-Sparkmirror-Page": "1", "Content-Type": "application/json"}
            action = json.dumps({"flow": "A->B", "topics": ["orders"]})
            assert sent(page, f"{url}/actions/pause", method="POST", headers=headers, body=action)[0] == 200
    assert len(servers.stage.told) == 2
    servers.stage.told.clear()
