"""Paths to fields in nested objects (KIP-821), and ExtractField."""

from __future__ import annotations

from dataclasses import dataclass

from sparkmirror.transforms.json_data import Data
from sparkmirror.transforms.options import BadOption, Options
from sparkmirror.transforms.record import Record, Side
from sparkmirror.transforms.shape import SidedTransform, fields_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractField(SidedTransform):
    """Put a field in the place of the whole."""

    path: tuple[str, ...]

    @classmethod
    def of(cls, options: Options, side: Side) -> ExtractField:
        field = options["field"]
        try:
            path = path_of(field) if options["field.syntax.version"] == "V2" else (field,)
        except ValueError as error:
            raise BadOption("field", str(error)) from None
        return cls(side=side, path=path)

    def changed(self, data: Data, record: Record) -> Data:
        for step in self.path:
            if data is None:
                return None
            data = fields_of(data).get(step)
        return data


def path_of(text: str) -> tuple[str, ...]:
    """Return a path's steps: names between dots, or between backticks.

    A backtick within backticks belongs to the name unless a dot or the end follows, without a backslash before.
    """
    if not text:
        raise ValueError("it is empty: name a field")
    steps = []
    at = 0
    while at < len(text):
        if text[at] == "`":
            step, at = _quoted(text, at)
            steps.append(step)
            continue
        step, _, _ = text[at:].partition(".")
        steps.append(step)
        at += len(step) + 1
    return (*steps, "") if text.endswith(".") else tuple(steps)


def _quoted(text: str, opened: int) -> tuple[str, int]:
    """Return the name after a backtick, and the next step's start."""
    name = ""
    start = at = opened + 1
    while (at := text.find("`", at)) >= 0:
        escaped = text[at - 1] == "\\"
        if at == len(text) - 1:
            if escaped:
                break
            return name + text[start:at], at + 1
        if text[at + 1] != ".":
            at += 1
        elif escaped:
            name += text[start : at - 1] + "`"
            start = at = at + 1
        else:
            return name + text[start:at], at + 2
    raise ValueError(f"the backtick at character {opened} is not closed: close it, or write a backslash before it")
