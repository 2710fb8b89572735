"""JSON as in Connect's `JsonConverter` with `schemas.enable=false`.

Fields keep their order; Java's have the order of hashes.
"""

from __future__ import annotations

import json
import math
import re
from typing import TypeAlias

from sparkmirror.transforms.java_numbers import big_decimal, double_text, wrapped
from sparkmirror.transforms.refusal import UnfitRecord

Data: TypeAlias = "bool | int | float | str | list[Data] | dict[str, Data] | None"

_LONGEST_NUMBER = 1000
"""Most digits of a number that Jackson reads."""

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|(?P<sign>-?)0+(?=\d)|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?', re.DOTALL)
"""Strings, leading zeros, and numbers; a number's other zeros stay."""

_BLANKS = " \t\n\r"
_ESCAPED = re.compile('[\x00-\x1f"\\\\\ud800-\udfff\U00010000-\U0010ffff]')
_SHORT = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def decoded(content: bytes | None) -> Data:
    """Read JSON; None for null, for no bytes and for a tombstone.

    Text after the first value is ignored. Raises `UnfitRecord` for bytes that aren't JSON, and `RecursionError`.
    """
    if content is None:
        return None
    try:
        text = content.decode(json.detect_encoding(content)).strip(_BLANKS)
    except UnicodeDecodeError:
        raise UnfitRecord("it is no JSON: its bytes are no text") from None
    if not text:
        return None
    try:
        return _read(text)
    except ValueError:
        pass
    try:
        return _read(_TOKEN.sub(_without_zeros, text))
    except json.JSONDecodeError as error:
        raise UnfitRecord(f"it is no JSON: {error.msg} at character {error.pos}") from None
    except ValueError as error:
        raise UnfitRecord(f"it is no JSON: {error}") from None


def encoded(data: Data) -> bytes | None:
    """Write JSON without blanks; a null by itself becomes a tombstone, as in Java."""
    if data is None:
        return None
    return _written(data).encode()


def _read(text: str) -> Data:
    data, end = _DECODER.raw_decode(text)
    follows = text[end : end + 1]
    if follows and follows not in _BLANKS and _touches(data, follows):
        raise ValueError("characters follow its first value without a blank")
    made: Data = data
    return made


def _touches(data: Data, follows: str) -> bool:
    """True if a value and the next character are a single word to Jackson."""
    if isinstance(data, (bool, type(None))):
        return follows.isalnum() or follows == "_"
    return isinstance(data, (int, float))


def _without_zeros(token: re.Match[str]) -> str:
    return token[0] if token["sign"] is None else token["sign"]


def _whole(text: str) -> int:
    _see_length(text)
    return wrapped(int(text), 64)


def _double(text: str) -> float:
    _see_length(text)
    big_decimal(text)
    number = float(text)
    return number if number else 0.0  # Java's decimal numbers have no negative zero


def _see_length(text: str) -> None:
    if sum(map(str.isdigit, text)) > _LONGEST_NUMBER:
        raise ValueError(f"a number has more than {_LONGEST_NUMBER} digits")


def _no_number(word: str) -> Data:
    raise ValueError(f"{word} is no number")


def _written(data: Data) -> str:
    if isinstance(data, str):
        return '"' + _ESCAPED.sub(_escape, data) + '"'
    if data is None:
        return "null"
    if isinstance(data, bool):
        return "true" if data else "false"
    if isinstance(data, int):
        return str(data)
    if isinstance(data, float):
        text = double_text(data)
        return text if math.isfinite(data) else f'"{text}"'
    if isinstance(data, list):
        return "[" + ",".join(map(_written, data)) + "]"
    return "{" + ",".join(f"{_written(name)}:{_written(field)}" for name, field in data.items()) + "}"


def _escape(matched: re.Match[str]) -> str:
    """Escape a character as Jackson does, beyond 16 bits, too."""
    character = matched[0]
    if character in _SHORT:
        return _SHORT[character]
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex().upper()}" for at in range(0, len(units), 2))


_DECODER = json.JSONDecoder(parse_int=_whole, parse_float=_double, parse_constant=_no_number)
