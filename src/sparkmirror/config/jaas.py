"""JAAS lines, as in `sasl.jaas.config`: login module, flag, options, semicolon.

Kafka reads the lines with Java's `StreamTokenizer` (`org.apache.kafka.common.security.JaasConfig`), by these rules: a
word without quotes is made of letters, digits and `.`, `_`, `-`, `$` and begins with a letter, `_` or `$`; in quotes,
single or double, a backslash escapes; `//`, `/` and `/* */` are comments. No message repeats any part of the line: a
password without its quotes may stand anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

FLAGS = ("required", "requisite", "sufficient", "optional")

ELSEWHERE = "\u00a0"
"""Stand-in, for `jaas_has_secrets`, for a value outside the text.

Java takes the character for a letter like any other.
"""

_HARMLESS = re.compile(
    r"username|clientId|scope|aws(?!\w*(Secret|Token|Key))\w+|unsecuredLogin\w+|extension_\w+|serviceName"
    r"|refreshKrb5Config|useKeyTab|keyTab|principal|storeKey|useTicketCache|ticketCache|renewTGT|doNotPrompt|isInitiator"
    r"|debug|useFirstPass|tryFirstPass|storePass|clearPass"
    r"|(oauth\.)?ssl\.(?!.*(password|\.key$)).*"
    r"|oauth\.(client\.id|token\.endpoint\.uri|scope|audience|[a-z.]+\.location|client\.assertion\.type"
    r"|client\.credentials\.grant\.type|password\.grant\.username|sasl\.extension\.\w+|[a-z.]+\.(seconds|millis|retries)"
    r"|(fallback\.)?username\.(claim|prefix)|force\.jsonpath\.username\.extraction|tokens\.not\.jwt"
    r"|include\.accept\.header|access\.token\.is\.jwt|enable\.metrics|config\.id)"
)
"""Options with values that are no secrets."""

_TOKEN = re.compile(
    r"""
    (?P<space> [\x00-\x20]+ | /\*.*?(?:\*/|\Z) | //[^\r\n]* | /(?:.[^\r\n]*)? )
  | (?P<quoted> (?P<quote>["'])(?P<inside>(?:\\(?:.|\Z)|(?!(?P=quote))["']|[^\\"'\r\n]++)*+)
      (?:(?P=quote)|(?=[\r\n])|\Z) )
  | (?P<number> -?[0-9.]+ )
  | (?P<word> [A-Za-z_$\u00a0-\U0010ffff][A-Za-z0-9_$.\-\u00a0-\U0010ffff]* )
  | (?P<other> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:([0-3][0-7]{0,2}|[4-7][0-7]?)|(.?))", re.DOTALL)
_LETTERS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


@dataclass(frozen=True, slots=True)
class JaasEntry:
    """Login module with its options; the options hold secrets."""

    module: str
    """The login module's Java class."""
    options: Mapping[str, str]


def parse_jaas(text: str) -> JaasEntry:
    """Return a line's only entry.

    Raise `ValueError`, with the reason and without any value.
    """
    tokens = _tokens(text)
    entries = []
    while (first := next(tokens, None)) is not None:
        entries.append(_entry(first, tokens))
    if len(entries) != 1:
        count = f"{len(entries)} login modules" if entries else "no login module"
        raise ValueError(f"holds {count}, and must hold one: write <module> required <option>=<value> ...;")
    return entries[0]


def jaas_has_secrets(text: str) -> bool:
    """True if a line holds a secret value, or can't be parsed.

    The caller has replaced references to config providers by `ELSEWHERE`.
    """
    if not text.replace(ELSEWHERE, "").strip():
        return False
    try:
        options = parse_jaas(text).options
    except ValueError:
        return True
    return any(value.replace(ELSEWHERE, "") for name, value in options.items() if not _HARMLESS.fullmatch(name))


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    is_text: bool
    """Word or quoted text; otherwise a single character, or a number."""


def _tokens(text: str) -> Iterator[_Token]:
    for match in _TOKEN.finditer(text):
        if match["quoted"] is not None:
            yield _Token(_ESCAPE.sub(_unescaped, match["inside"]), True)
        elif match["word"] is not None:
            yield _Token(match["word"], True)
        elif match["space"] is None:
            yield _Token(match[0], False)


def _unescaped(escape: re.Match[str]) -> str:
    if escape[1]:
        return chr(int(escape[1], 8))
    return _LETTERS.get(escape[2], escape[2])


def _entry(first: _Token, tokens: Iterator[_Token]) -> JaasEntry:
    if not first.is_text or not first.text:
        raise ValueError("does not begin with the name of a login module")
    flag = next(tokens, None)
    if flag is None or flag.text.lower() not in FLAGS:
        raise ValueError(f"has a login module that is not followed by {', '.join(FLAGS[:-1])} or {FLAGS[-1]}")
    options: dict[str, str] = {}
    for key in tokens:
        if key == _Token(";", False):
            return JaasEntry(first.text, options)
        if not key.is_text:
            raise ValueError("has something that is no option where one should begin: put values in double quotes")
        sign, value = next(tokens, None), next(tokens, None)
        if sign != _Token("=", False) or value is None or not value.is_text:
            raise ValueError('has an option without a value: write <option>="...", values in double quotes')
        options[key.text] = value.text
    raise ValueError("does not end with a semicolon")
