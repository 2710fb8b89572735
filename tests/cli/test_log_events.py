"""Every line that matters has an event's name, and the docs have them all."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from tests.support.syntax import tree_of

import sparkmirror
from sparkmirror.events import Event

SOURCE = Path(sparkmirror.__file__).parent
DOCS = Path(__file__).parents[2] / "docs" / "logs.md"
NAMED = {"warning", "error", "exception", "critical", "log", "info"}
AWS_WORDS = SOURCE / "client"
"""Its information is MM2GroupOffsetSync's, line by line; that of `task_lines` was given its event where it arose."""


@cache
def log_lines(file: Path) -> list[ast.Call]:
    return [
        node
        for node in ast.walk(tree_of(file))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in NAMED
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id in ("log", "logger")
    ]


def event_of(call: ast.Call) -> str | None:
    """The member of `Event` whose `.extra` the line is given."""
    for keyword in call.keywords:
        match keyword.arg, keyword.value:
            case "extra", ast.Attribute(value=ast.Attribute(value=ast.Name(id="Event" | "LogEvent"), attr=name)):
                return name
    return None


def needs_event(file: Path, call: ast.Call) -> bool:
    assert isinstance(call.func, ast.Attribute)
    return call.func.attr != "info" or not file.is_relative_to(AWS_WORDS)


FILES = sorted(SOURCE.rglob("*.py"))


def test_there_are_such_lines() -> None:
    assert sum(1 for file in FILES for _ in log_lines(file)) > 80


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_each_line_has_an_event(file: Path) -> None:
    nameless = [call.lineno for call in log_lines(file) if needs_event(file, call) and event_of(call) is None]
    assert not nameless, f"{file}: lines {nameless} have no extra=Event.….extra"


def test_each_event_is_logged_somewhere() -> None:
    used = {event_of(call) for file in FILES for call in log_lines(file)}
    assert {event.name for event in Event} == used - {None}


def told() -> list[list[str]]:
    """The events of the page: warnings and errors, then information."""
    tables = DOCS.read_text().partition("## Events")[2].split("Information:")
    return [re.findall(r"^\| `([a-z-]+)` \| .+ \|$", table, re.MULTILINE) for table in tables]


def test_the_docs_list_them_all() -> None:
    assert all(names == sorted(names) for names in told())
    assert sorted(name for names in told() for name in names) == sorted(event.value for event in Event)


def test_the_docs_say_what_kind_they_are() -> None:
    kinds: dict[str, set[str]] = {}
    for file in FILES:
        for call in log_lines(file):
            name = event_of(call)
            assert isinstance(call.func, ast.Attribute)
            if name is not None:
                kind = {"info": {"I"}, "log": {"W", "I"}}.get(call.func.attr, {"W"})
                kinds.setdefault(Event[name].value, set()).update(kind)
    warnings, information = told()
    warned = {name for name, kind in kinds.items() if "W" in kind} | {"topic-config-not-synced"}
    assert (set(warnings), set(information)) == (warned, kinds.keys() - warned)
