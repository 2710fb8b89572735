"""JAAS lines, as in `sasl.jaas.config`: one login module, a flag, options, and a semicolon.

Kafka reads them with Java's `StreamTokenizer` (`org.apache.kafka.common.security.JaasConfig`), whose rules these
are: what is not in quotes is made of letters, digits and `.`, `_`, `-`, `$` and begins with a letter, `_` or `$`;
in quotes, single or double, a backslash escapes; `//`, `/` and `/* */` are comments. No message repeats anything: a
password without its quotes may stand anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

FLAGS = ("required", "requisite", "sufficient", "optional")

ELSEWHERE = "\u00a0"
"""What `jaas_has_secrets` takes for a value that is not in the text itself; to Java a letter like any other."""

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
"""Options whose values are no secrets."""

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
    """One login module with its options; they hold secrets."""

    module: str
    """The Java class."""
    options: Mapping[str, str]


def parse_jaas(text: str) -> JaasEntry:
    """The one entry of a line. Raises `ValueError`, with the reason and no value."""
    tokens = _tokens(text)
    entries = []
    while (first := next(tokens, None)) is not None:
        entries.append(_entry(first, tokens))
    if len(entries) != 1:
        count = f"{len(entries)} login modules" if entries else "no login module"
        raise ValueError(f"holds {count}, and must hold one: write <module> required <option>=<value> ...;")
    return entries[0]


def jaas_has_secrets(text: str) -> bool:
    """Whether a line, its references replaced by `ELSEWHERE`, holds a value that must not be seen by others."""
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
    """A word or what stood in quotes; else one character, or a number."""


def _tokens(text: str) -> Iterator[_Token]:
    for found in _TOKEN.finditer(text):
        if found["quoted"] is not None:
            yield _Token(_ESCAPE.sub(_unescaped, found["inside"]), True)
        elif found["word"] is not None:
            yield _Token(found["word"], True)
        elif found["space"] is None:
            yield _Token(found[0], False)


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
