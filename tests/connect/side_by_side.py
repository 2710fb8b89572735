"""Send the same requests to a Connect worker and keep what comes back, made comparable."""

from __future__ import annotations

import http.client
import json
import re
import time
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from urllib.parse import urlsplit

from tests.support.rest_cases import Case

HEADERS = ("content-type", "location", "allow", "www-authenticate")
"""Those that a client can act on."""
PATIENCE_S = 60.0
_POLL_S = 0.2
_REBALANCING = "Request cannot be completed because a rebalance is expected"


@dataclass(frozen=True)
class Answer:
    """What came back: `body` is the JSON, or the text where it is none."""

    status: int
    headers: dict[str, str]
    body: object


def send(url: str, case: Case) -> Answer:
    """Send one request; again while the worker only puts it off, or the case waits for something."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        answer = _send_once(url, case)
        if time.monotonic() > deadline or (not _put_off(answer) and (case.until is None or _fits(case, answer))):
            return answer
        time.sleep(_POLL_S)


def answers(url: str, cases: Iterable[Case]) -> dict[str, Answer]:
    """All answers, by the case's name, with what differs from worker to worker replaced by words."""
    return {case.name: _comparable(url, send(url, case), case) for case in cases}


def _put_off(answer: Answer) -> bool:
    """Whether a real worker did nothing yet, as it will soon assign its tasks again; how often that hits is chance."""
    return isinstance(answer.body, dict) and answer.body.get("message") == _REBALANCING


def _fits(case: Case, answer: Answer) -> bool:
    assert case.until is not None
    try:
        return case.until(answer.body)
    except (KeyError, TypeError):
        return False


def _send_once(url: str, case: Case) -> Answer:
    # urllib would add a content type to a body that has none
    with closing(http.client.HTTPConnection(urlsplit(url).netloc, timeout=90)) as connection:
        connection.request(case.method, case.path, case.content, case.headers)
        response = connection.getresponse()
        return _read(response.status, response.headers, response.read())


def _read(status: int, headers: object, content: bytes) -> Answer:
    kept = {name: value for name in HEADERS if (value := headers.get(name)) is not None}  # type: ignore[attr-defined]
    text = content.decode()
    try:
        return Answer(status, kept, json.loads(text))
    except ValueError:
        return Answer(status, kept, text)


def _comparable(url: str, answer: Answer, case: Case) -> Answer:
    text = json.dumps(answer.body).replace(url.removeprefix("http://"), "WORKER")
    text = re.sub(r'"(version|commit|kafka_cluster_id)": "[^"]*"', r'"\1": "…"', text)
    text = re.sub(r'"last_modified": [0-9]+', '"last_modified": "…"', text)
    if case.method == "OPTIONS":
        text = '""'  # the list of methods, as in the header
    headers = {name: value.replace(url, "WORKER").replace(" ", "").lower() for name, value in answer.headers.items()}
    if "allow" in headers:
        headers["allow"] = ",".join(sorted(headers["allow"].split(",")))
    return Answer(answer.status, headers, _without_order(_chosen(json.loads(text), case.only)))


def _chosen(body: object, only: tuple[str, ...]) -> object:
    """What is compared of it: fields by their names, `keys` for a dictionary's keys, of lists each item's."""
    if not only:
        return body
    if isinstance(body, list):
        return [_chosen(item, only) for item in body]
    if not isinstance(body, dict):
        return body
    chosen = {name: body.get(name) for name in only if name != "keys"}
    return {**chosen, "keys": sorted(body)} if "keys" in only else chosen


def _without_order(body: object) -> object:
    """Connect's lists and printed maps come from hash maps, in any order; and documentation is everyone's own."""
    if isinstance(body, str):
        return re.sub(r"{([^{}]*)}", lambda printed: "{" + ", ".join(sorted(printed[1].split(", "))) + "}", body)
    if isinstance(body, list):
        return sorted(map(_without_order, body), key=lambda item: json.dumps(item, sort_keys=True))
    if not isinstance(body, dict):
        return body
    return {key: _without_order(value) for key, value in body.items() if key != "documentation"}
