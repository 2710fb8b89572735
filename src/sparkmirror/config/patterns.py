"""Check lists of regular expressions, before a flow starts.

Java must take each expression. MirrorMaker 2 splits such a list at every comma and joins the parts with `|` (`mm2.md`
section 1.5). So a comma within an expression breaks the expression, or changes its meaning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sparkmirror.config.duty_settings import CONFIG_EXCLUDE, GROUP_SETTINGS
from sparkmirror.config.lookup import Lookup, Pair
from sparkmirror.config.model import (
    DEFAULT_CONFIG_FILTER,
    DEFAULT_GROUP_FILTER,
    DEFAULT_TOPIC_FILTER,
    FlowConfig,
)
from sparkmirror.config.setting import Setting
from sparkmirror.config.settings import FLOW_SETTINGS
from sparkmirror.policy.java_regex import compile_java

_BY_NAME = {setting.name: setting for setting in (*FLOW_SETTINGS, *GROUP_SETTINGS, CONFIG_EXCLUDE)}
_LONGEST = 60
"""Most characters in a proposal; the user would not read a longer proposal."""

_SPLITS = "splits the list, as it does for MirrorMaker 2"
_ATOM = re.compile(r"(?:\[(?:[^\]\\]|\\.)*\]|\([^()]*\)|\\[pP]\{\w+\}|\\.|[^\\])\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Cut:
    """Comma within an expression: the text between the brackets, and the text before.

    `kind` is the opening bracket, or `\\Q`. `inside` includes the brackets.
    """

    kind: str
    inside: str
    before: str


def check_patterns(lookup: Lookup, flow: FlowConfig) -> None:
    """Check the flow's lists that its built-in filters take for regular expressions.

    Mistakes go into `lookup.mistakes`.
    """
    pair = (flow.source.alias, flow.target.alias)
    if flow.topic_filter_class == DEFAULT_TOPIC_FILTER:
        _check(lookup, _BY_NAME["topics"], pair, flow.topics)
        _check(lookup, _BY_NAME["topics.exclude"], pair, flow.topics_exclude)
    if flow.group.group_filter_class == DEFAULT_GROUP_FILTER:
        _check(lookup, _BY_NAME["groups"], pair, flow.group.groups)
        _check(lookup, _BY_NAME["groups.exclude"], pair, flow.group.groups_exclude)
    if flow.topic_sync.config_property_filter_class == DEFAULT_CONFIG_FILTER:
        _check(lookup, CONFIG_EXCLUDE, pair, flow.topic_sync.config_properties_exclude)


def _check(lookup: Lookup, setting: Setting, pair: Pair, patterns: tuple[str, ...]) -> None:
    entry = lookup.entry(setting, pair)
    if entry is None or not patterns:
        return
    joined = "|".join(patterns)
    cut = None if lookup.references(entry) else next(_cuts(entry.value), None)
    try:
        compile_java(joined)
    except ValueError as error:
        lookup.mistakes.add(entry.error(str(error) if cut is None else _broken(cut)))
        return
    if cut is not None and cut.kind != "(":
        lookup.warn(entry.note(f"the comma in {cut.inside} {_SPLITS}, which reads {joined}: write {_instead(cut)}"))


def _broken(cut: _Cut) -> str:
    return f"the comma in {cut.inside} {_SPLITS}, and its parts are no regular expression: write {_instead(cut)}"


def _instead(cut: _Cut) -> str:
    """Return a proposal for the same expression without the comma."""
    if cut.kind == "{":
        return _written_out(cut)
    if cut.kind == "(":
        return f"{cut.inside.replace(',', '|')} for either, or \\\\x2c for a comma"
    return "\\\\x2c for a comma, which no topic's name has"


def _written_out(cut: _Cut) -> str:
    """Write a counted repetition out as single ones: `x{1,3}` is `xx?x?`."""
    low, _, high = cut.inside[1:-1].replace(" ", "").partition(",")
    atom = _ATOM.search(cut.before)
    if atom is not None and low.isdigit() and (high.isdigit() or not high):
        least, text = int(low), atom[0]
        if not high:
            written = text * (least - 1) + f"{text}+" if least else f"{text}*"
        else:
            written = text * least + f"{text}?" * (int(high) - least)
        if len(written) <= _LONGEST:
            return f"{cut.before[: atom.start()].lstrip()}{written}".replace("\\", "\\\\")
    return "the repetitions out, as in xx?x? for one to three"


def _cuts(text: str) -> Iterator[_Cut]:
    """Yield the commas within brackets or quotes, in order."""
    opened: list[tuple[str, int]] = []
    at, item = 0, 0
    while at < len(text):
        character = text[at]
        if opened and opened[-1][0] == "\\Q":
            if text.startswith("\\E", at):
                opened.pop()
                at += 1
        elif character == "\\":
            if text.startswith("\\Q", at):
                opened.append(("\\Q", at))
            at += 1
        elif opened and opened[-1][0] == "[" and character not in "[]":
            pass
        elif character in "([{":
            opened.append((character, at))
        elif character in ")]}" and opened and opened[-1][0] == {")": "(", "]": "[", "}": "{"}[character]:
            opened.pop()
        if character == ",":
            if not opened:
                item = at + 1
            else:
                kind, start = opened[-1]
                yield _Cut(kind, _closed(text, kind, start, at), text[item:start])
        at += 1


def _closed(text: str, kind: str, start: int, comma: int) -> str:
    end = {"(": ")", "[": "]", "{": "}", "\\Q": "\\E"}[kind]
    stop = text.find(end, comma)
    return text[start:].strip() if stop < 0 else text[start : stop + len(end)]
