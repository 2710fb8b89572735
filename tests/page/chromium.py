"""A real headless Chromium, as Debian has it; what it asks for and complains of is kept."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
         "--disable-sync")  # fmt: skip
DESK = ViewportSize(width=1440, height=1000)
PHONE = ViewportSize(width=390, height=844)


@contextmanager
def chromium(*more: str) -> Iterator[Browser]:
    """The browser, with more flags; a test is skipped where there is none."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("Chromium is not installed (Debian: apt-get install chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=[*FLAGS, *more])
        yield browser
        browser.close()


class Seen:
    """One page in a context of its own, its requests, and what its console says."""

    def __init__(self, browser: Browser, url: str, **context: Any) -> None:
        self._context = browser.new_context(**{"viewport": DESK, **context})
        self.page: Page = self._context.new_page()
        self.requested: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.requested.append(request.url))
        self.page.on("console", lambda said: self.complaints.append(said.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.url = url

    def open(self, place: str = "") -> Page:
        """Go there, and wait for the first word of the server."""
        self.page.goto(self.url + place)
        self.page.locator(".flow .sentence").first.wait_for(timeout=20_000)
        return self.page

    def foreign(self) -> list[str]:
        """Requests to anywhere but the server."""
        return [one for one in self.requested if urlsplit(one).netloc != urlsplit(self.url).netloc]

    def violations(self) -> list[str]:
        """What axe-core finds, a line each."""
        found = Axe().run(self.page).response["violations"]
        return [f"{one['id']}: {node['target']} {node['failureSummary']}" for one in found for node in one["nodes"]]

    def close(self) -> None:
        self._context.close()
