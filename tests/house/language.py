"""The language of the code, as far as a syntax tree shows it: docstrings, attribute notes, names of variables."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.support.syntax import tree_of

LONGEST_FIRST_LINE = 80
MOST_PRONOUNS = 0.08
"""Share of the words of a package's docstrings."""

_WORD = re.compile(r"[A-Za-z]+(?:'[a-z]+)?")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


RELATIVE = _words("what whatever whether where wherever who whoever whom whose which when why how that")
PREPOSITIONS = _words(
    "of as by at in on to for from with without behind above below beside between before after under over up into "
    "among against about around because if since until while than so like"
)
PERSONAL = _words(
    "i me my mine we us our ours you your yours he him his she her hers it its they them their theirs itself "
    "themselves this these those such somebody someone something nobody nothing anybody anyone anything everybody "
    "everyone everything none others another other both"
)
NOT_FIRST = RELATIVE | PREPOSITIONS | PERSONAL
"""A first sentence begins with none of these: it is a noun phrase or an imperative."""

PRONOUNS = PERSONAL | _words("what whatever who whoever whom whose which that one ones")
OLD_WORDS = _words("anew beside lies bears")
"""Words that nobody says so any more: again, next to, is, has."""
MOST_OF = 0.025
"""Share of "of" among all words of docstrings; as in comparable projects."""
_OPENING = re.compile(r"(?:A |An |The )?(?:Maker|Teller|Author|Account|Work|Look|Answer)s? of\b")
BANNED_VARIABLES = _words("where one found both some")


@dataclass(frozen=True, slots=True)
class Note:
    """A docstring, or a string below an attribute that describes it."""

    file: Path
    line: int
    text: str

    @property
    def first_line(self) -> str:
        """The text up to its first line break."""
        return self.text.strip().split("\n", 1)[0]

    @property
    def first_word(self) -> str:
        """The first word, in lower case; empty where the text begins with code or a number."""
        match = re.match(r"[A-Za-z]+", self.first_line)
        return match[0].lower() if match is not None else ""

    @property
    def place(self) -> str:
        """The place as an editor opens it."""
        return f"{self.file}:{self.line}"


def python_files(*roots: Path) -> list[Path]:
    """All modules below these directories, sorted."""
    return sorted(file for root in roots for file in root.rglob("*.py"))


@dataclass(frozen=True, slots=True)
class Read:
    """What a module's syntax tree shows of its language."""

    notes: tuple[Note, ...]
    """Each docstring and each attribute note."""
    banned_variables: tuple[str, ...]
    """Each variable and parameter with a banned name, as `file:line name`; attributes of classes may have it."""


@cache
def read(file: Path) -> Read:
    """Read a module."""
    nodes = list(ast.walk(tree_of(file)))
    return Read(tuple(_notes(file, nodes)), tuple(_banned_variables(file, nodes)))


def _notes(file: Path, nodes: Sequence[ast.AST]) -> Iterator[Note]:
    for node in nodes:
        for statement in _strings(node):
            assert isinstance(statement.value, ast.Constant)
            yield Note(file, statement.lineno, str(statement.value.value))


def _strings(node: ast.AST) -> Iterator[ast.Expr]:
    for name in ("body", "orelse", "finalbody"):
        statements = getattr(node, name, None)
        for statement in statements if isinstance(statements, list) else ():
            if (
                isinstance(statement, ast.Expr)
                and isinstance(statement.value, ast.Constant)
                and isinstance(statement.value.value, str)
            ):
                yield statement


def _banned_variables(file: Path, nodes: Sequence[ast.AST]) -> Iterator[str]:
    attributes = {
        statement.target
        for node in nodes
        if isinstance(node, ast.ClassDef)
        for statement in node.body
        if isinstance(statement, ast.AnnAssign)
    }
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in BANNED_VARIABLES:
            if node not in attributes:
                yield f"{file}:{node.lineno} {node.id}"
        elif isinstance(node, ast.arg) and node.arg in BANNED_VARIABLES:
            yield f"{file}:{node.lineno} {node.arg}"


def of_share(texts: Iterable[str]) -> float:
    """The share of "of" among all words."""
    words = [word.lower() for text in texts for word in _WORD.findall(_without_code(text))]
    return words.count("of") / len(words)


def pronoun_share(texts: Iterable[str]) -> float:
    """The share of pronouns among all words; 0 without words."""
    words = [word.lower() for text in texts for word in _WORD.findall(_without_code(text))]
    return sum(word.partition("'")[0] in PRONOUNS for word in words) / len(words) if words else 0.0


def _without_code(text: str) -> str:
    return re.sub(r"`[^`]*`", " ", text)


def faults(file: Path) -> Iterator[str]:
    """Yield what a module's text does wrong, one line each, as `file:line what`."""
    for note in read(file).notes:
        if len(note.first_line) > LONGEST_FIRST_LINE:
            yield f"{note.place} the first line has {len(note.first_line)} characters"
        elif note.first_line[-1:] not in ".:?!" and "\n" in note.text.strip():
            yield f"{note.place} the first sentence does not end on the first line"
        if note.first_word in NOT_FIRST:
            yield f"{note.place} begins with {note.first_word!r}"
        if opening := _OPENING.match(note.first_line):
            yield f"{note.place} begins with {opening[0]!r}: a verb says it"
        plain = _without_code(note.text).lower()
        old = [word for word in _WORD.findall(plain) if word in OLD_WORDS] + re.findall(r"\bgoes on\b", plain)
        yield from (f"{note.place} says {word!r}" for word in old)
    for place in read(file).banned_variables:
        yield f"{place} is no variable's name"
