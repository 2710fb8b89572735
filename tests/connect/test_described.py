"""Requests made up from the interface's own description, right ones and wrong ones: none is answered with a 5xx."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import signature
from typing import Any

import pytest
import schemathesis
from fastapi.routing import APIRoute
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.core.result import Ok
from tests.connect.request_schemas import described
from tests.support.rest_cases import connector
from tests.support.served_api import ServedApi, served_api

from sparkmirror.connect.api import routers
from sparkmirror.connect.loggers import Loggers

SOURCE = connector("Source", "source:9092", "target:9092")
SHORT = 3
LONG = {GenerationMode.POSITIVE: 60, GenerationMode.NEGATIVE: 110}
"""Requests of each path and method; fewer of them can be asked wrongly."""


@pytest.fixture(scope="module")
def served() -> Iterator[ServedApi]:
    """An interface over HTTP."""
    with served_api() as opened:
        yield opened


def _ask(served: ServedApi, mode: GenerationMode, examples: int) -> int:
    """Ask that many times at each path; returns how many requests were answered."""
    answered = 0
    schema = schemathesis.openapi.from_dict(described(served.api.api))
    for found in schema.get_all_operations():
        assert isinstance(found, Ok)
        operation = found.ok()
        if mode is GenerationMode.NEGATIVE and not [*operation.query, *operation.body]:
            continue  # a path can't be asked wrongly that has no more than names in it: any text may be a name

        @settings(
            max_examples=examples,
            deadline=None,
            derandomize=examples == SHORT,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode), known=st.booleans(), state=st.sampled_from(STATES))
        def ask(case: Case[Any], known: bool, state: str) -> None:
            nonlocal answered
            if known and "name" in (case.path_parameters or {}):
                served.api.ask("PUT", "/connectors/shop/config", SOURCE)
                served.api.ask("PUT", f"/connectors/shop/{state}")
                case.path_parameters["name"] = "shop"
            answer = case.call(base_url=served.url)
            assert answer.status_code < 500, (case.as_curl_command(), answer.text)
            if answer.status_code >= 400 and answer.text.startswith("{"):
                assert answer.json()["error_code"] == answer.status_code
            answered += 1

        ask()
    return answered


STATES = ["stop", "pause", "resume"]


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_no_request_is_answered_with_5xx(served: ServedApi, mode: GenerationMode) -> None:
    assert _ask(served, mode, SHORT) > 25


@pytest.mark.full
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_none_of_many_requests_is_answered_with_5xx(served: ServedApi, mode: GenerationMode) -> None:
    assert _ask(served, mode, LONG[mode]) > 1_000


def test_all_paths_are_described(served: ServedApi) -> None:
    """A path that is new and takes a body must get a schema, too."""
    paths = described(served.api.api)["paths"]
    assert len(paths) == 21
    found = routers(served.api.herder, Loggers(), "cluster", "commit", topic_tracking=True, topic_reset=True)
    for route in (route for router in found for route in router.routes if isinstance(route, APIRoute)):
        takes_body = "body" in signature(route.endpoint).parameters
        for method in route.methods or ():
            assert ("requestBody" in paths[route.path][method.lower()]) is takes_body, f"{method} {route.path}"
