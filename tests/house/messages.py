"""The language of messages and pages, as far as a pattern shows it: unnamed actors, `behind`, double negations."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.house.language import RELATIVE
from tests.support.syntax import tree_of

LEAST_WORDS = 3
"""Shorter strings are names, keys or parts of a message."""

UNNAMED = re.compile(
    r"\b(?:someone|somebody|anyone|anybody|everyone|everybody|nobody|"
    r"we|us|our|ours|ourselves|theirs)\b(?!-)",
    re.IGNORECASE,
)
"""Actors without a name: the text says sparkmirror, the pump, a foreign producer, an operator."""

BEHIND = re.compile(r"(?<!-)\bbehind\b", re.IGNORECASE)
LAG = re.compile(
    r"\b(?:further|far|falls?|lags?) behind\b"
    r"|(?:\b(?:is|be|s|offsets?|records?)|\{\}) behind(?=\s*(?:[.,:;?!({]|$))",
    re.IGNORECASE,
)
"""`behind` as a measure of lag; the text says `after` of an order."""

DOUBLE_NEGATION = re.compile(
    r"\b(?:nothing|nobody|none|no \w+) (?:that|which|who) (?:is|are|was|were|has|have|does|do|did|can)(?: not|n't)\b"
    r"|\bnot un(?!til|less|der|ion|ique|ix|ic)\w+\b",
    re.IGNORECASE,
)

_PLACEHOLDER = "{}"


def messages(file: Path) -> Iterator[tuple[int, str]]:
    """Yield line and text of each string of a module that may be printed; a value in it is `{}`.

    Leaves out docstrings and attribute notes.
    """
    nodes = list(ast.walk(tree_of(file)))
    inner = {part for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    notes = {node.value for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Constant | ast.JoinedStr) and node not in inner and node not in notes:
            text = _text(node)
            if len(text.split()) >= LEAST_WORDS:
                yield node.lineno, text


def _text(node: ast.Constant | ast.JoinedStr) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    return "".join(_text(part) if isinstance(part, ast.Constant) else _PLACEHOLDER for part in node.values)


def prose(page: str) -> str:
    """Return a Markdown page with its lines, without code and without the targets of links."""
    blank = re.sub(r"^```.*?^```$", lambda code: "\n" * code[0].count("\n"), page, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`\n]*`", "`", blank))


def first_sentence(page: str) -> str:
    """Return the beginning of a page's first paragraph; empty for a page of tables and headings."""
    lines = (line for line in prose(page).split("\n") if line.strip())
    return next((line for line in lines if not line.startswith(("#", "|", ">"))), "")


def faults(text: str) -> Iterator[str]:
    """Yield what a text does wrong."""
    for match in UNNAMED.finditer(text):
        if match[0] != "US":
            yield f"names no actor: {_around(text, match)}"
    lags = {match.end() for match in LAG.finditer(text)}
    for match in BEHIND.finditer(text):
        if match.end() not in lags:
            yield f"says `behind` where no lag is meant: {_around(text, match)}"
    for match in DOUBLE_NEGATION.finditer(text):
        yield f"has a double negation: {_around(text, match)}"


def begins_with_a_relative_word(page: str) -> bool:
    """True if a page's first sentence begins with what, who, where and the like, and is no question."""
    sentence = first_sentence(page)
    word = re.match(r"[A-Za-z]+", sentence)
    return word is not None and word[0].lower() in RELATIVE and "?" not in sentence


def _around(text: str, match: re.Match[str]) -> str:
    return repr(text[max(0, match.start() - 40) : match.end() + 30].replace("\n", " "))
