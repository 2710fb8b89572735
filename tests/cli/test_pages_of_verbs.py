"""What the pages say of verbs and options is what Typer has: each command line in them parses, tables are complete."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.support.in_process import sparkmirror

from sparkmirror import __version__
from sparkmirror.cli.app import app

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")),
    *(page for folder in ("docs", "examples") for page in sorted((ROOT / folder).rglob("*.md"))),
]
FENCED = re.compile(r"^```[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"(?:^|[\s$(/])sparkmirror ([a-z][a-z-]*(?: .*)?)$")
SHELL = re.compile(r" *(?:[|;<>#)]|&&|2>|&$| &( |$)).*")
PRINTED = (
    "as sm",
    "top, topics by lag",
)
"""What follows the program's name where no verb is meant: Python's import, and a line that a verb prints."""


def verbs(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "commands"):
        yield " ".join(path), command
    else:
        for name, inner in command.commands.items():
            yield from verbs(inner, (*path, name))


VERBS = dict(verbs(typer.main.get_group(app)))


def commands(text: str) -> Iterator[str]:
    """The words after `sparkmirror` in blocks and in backticks, up to what is the shell's."""
    blocks = (re.sub(r" *\\\n\s*", " ", block).splitlines() for block in FENCED.findall(text))
    spans = re.findall(r"`([^`\n]+)`", FENCED.sub("", text))
    for line in [*(line for block in blocks for line in block), *spans]:
        command = COMMAND.search(line.strip())
        if command and not command[1].startswith(PRINTED):
            yield _without_the_shell(command[1])


def _without_the_shell(command: str) -> str:
    quoted = re.compile(r"'[^']*'")
    kept = quoted.findall(command)
    bare = SHELL.sub("", quoted.sub("\0", command))
    for text in kept[: bare.count("\0")]:
        bare = bare.replace("\0", text, 1)
    return bare


def fault(command: str) -> str | None:
    """What Typer says of the command line; arguments may be missing, as in `sparkmirror pause`."""
    words = shlex.split(command.replace("\\|", "|"))
    if words[0] == "losses" and " ".join(words[:2]) not in VERBS:
        words.insert(1, "list")  # it may be left out
    verb = next((name for name in (" ".join(words[:2]), words[0]) if name in VERBS), None)
    if verb is None:
        return f"no such verb: {command}"
    rest = [re.sub(r"^\$\w+$", "1", word) for word in words[len(verb.split()) :] if word not in ("-h", "…")]
    try:
        VERBS[verb].make_context(verb, rest)
    except Exception as error:
        missing = type(error).__name__ == "MissingParameter"
        return None if missing else f"{command}: {getattr(error, 'message', error)}"
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_each_command_line_parses(page: Path) -> None:
    assert [fault(command) for command in commands(page.read_text()) if fault(command)] == []


def test_a_wrong_command_line_would_be_seen() -> None:
    block = "```\nsparkmirror run \\\n    f --onec > x\n```\n"
    text = f"`sparkmirror statsu`\n{block}`sparkmirror pause f --topics 'a|b' | cat`\n"
    assert [(command, bool(fault(command))) for command in commands(text)] == [
        ("run f --onec", True),
        ("statsu", True),
        ("pause f --topics 'a|b'", False),
    ]


def options_of(verb: str) -> set[str]:
    """Long names of the options that the help shows; the last one, if an option has several."""
    hidden = {"--help"}
    shown = (one for one in VERBS[verb].params if one.param_type_name == "option" and not one.hidden)
    return {name for one in shown for name in one.opts if name.startswith("--")} - hidden


def rows(page: str, first_head: str) -> list[list[str]]:
    """The rows of the page's table whose first column has this head."""
    lines = (DOCS / page).read_text().splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(f"| {first_head} |"))
    body = lines[start + 2 :]
    end = next((number for number, line in enumerate(body) if not line.startswith("|")), len(body))
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in body[:end]]


@pytest.mark.parametrize(
    ("verb", "page", "head"),
    [("run", "running.md", "option"), ("demo", "cli.md", "option"), ("legacy", "cli.md", "flag")],
)
def test_a_table_of_options_is_complete(verb: str, page: str, head: str) -> None:
    told = {name for row in rows(page, head) for name in re.findall(r"--[\w.-]+", row[0])}
    assert told == options_of(verb)


@pytest.mark.parametrize(("verb", "page"), [("verify", "verify.md")])
def test_a_table_of_exit_codes_is_the_one_of_all_verbs(verb: str, page: str) -> None:
    heads = next(line for line in (DOCS / "cli.md").read_text().splitlines() if line.startswith("| verb | 0 |"))
    codes = [head.strip() for head in heads.strip("|").split("|")[1:]]
    row = next(row for row in rows("cli.md", "verb") if row[0] == f"`{verb}`")
    assert [cells[0] for cells in rows(page, "exit code")] == [
        code for code, cell in zip(codes, row[1:], strict=True) if cell
    ]


def test_the_version_is_printed_by_verb_and_option() -> None:
    assert sparkmirror("--version").stdout == sparkmirror("version").stdout == f"{__version__}\n"
