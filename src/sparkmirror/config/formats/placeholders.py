"""Placeholders in templates, in every usual spelling.

Real values that look alike are left alone.
"""

from __future__ import annotations

import re

from sparkmirror.config.originals import is_secret

_UPPER = r"[A-Z][A-Z0-9_]+"
_NAME = r"[A-Za-z_][\w.-]*"
_FILLED_BY_SHELLS = rf"\$\{{{_NAME}(:?-[^{{}}]*)?\}}"
"""Shell variables: `${NAME}` and `${NAME:-default}`.

A reference to a config provider has a colon behind the provider's name, and no dash.
"""
_DOUBLE = r"\{\{.*?\}\}"
_MARKED = rf"%{_UPPER}%|@{_UPPER}@|__{_UPPER}__|\$\({_NAME}\)"
_ASKED = r"(change|replace|fill)[-_ ]?(me|this|in)|fix[-_]?me|(enter|insert)[-_ ].+|to[-_]?do|tbd"
_YOURS = r"your[-_ .].+"
_WORDS = r"BROKERS?|GROUP|USER(NAME)?|PASSWORD|SECRET|HOST(NAME)?|ALIAS|REGION"

_WHOLE = re.compile(
    rf"{_FILLED_BY_SHELLS}|{_DOUBLE}|{_MARKED}|\${_UPPER}|<[^<>]+>|\{{[A-Z][A-Z0-9 _.-]*\}}|{_WORDS}"
    rf"|(?i:{_ASKED}|{_YOURS}|x{{3,}}|\.{{3}}|…)"
)
"""Placeholder for a whole value, such as a password or a login module's option."""
_ANYWHERE = re.compile(rf"{_FILLED_BY_SHELLS}|{_DOUBLE}|%{_UPPER}%|@{_UPPER}@|\$\({_NAME}\)")
"""Placeholder within any value that is neither secret nor a pattern."""
_IN_PLACES = re.compile(
    rf"[<>{{}}…]|\.{{3}}|\${_UPPER}|__{_UPPER}__"
    r"|(?i:change[-_]?me|(^|[/,.@-])your[-_.]|your(broker|cluster|company|domain|host|kafka|server)s?\b|/path/to/)"
)
"""Placeholder within brokers, files and URLs, which never have these characters."""
_BROKER = re.compile(
    r"([A-Z0-9]+_)*(BROKERS?|BOOTSTRAP|SERVERS?|HOST(NAME)?|ENDPOINT|CLUSTER)[0-9]*(:.*)?"
    r"|.*:(PORT|<.*)|(.*\.)?[xX]{3,}([.:].*)?"
)
"""Placeholder for a broker out of several."""
_IN_PATTERNS = re.compile(
    rf"{_FILLED_BY_SHELLS}|{_DOUBLE}|{_MARKED}|\${_UPPER}|<[^<>]+>|\{{[A-Z][A-Z0-9 _.-]*\}}|GROUP|TODO"
    rf"|(?i:change[-_]?me)|YOUR_.+|your[-_](topic|group|consumer)s?.*"
)
"""Placeholder for an item in a list of topics or groups.

No regular expression, or no name, looks like this.
"""
_PATTERN_KEYS = re.compile(
    r"(.*\.)?(topics|groups)(\.(exclude|whitelist|blacklist))?|.*\.pattern|.*properties\.exclude"
)
_PLACE_KEYS = re.compile(r".*(bootstrap\.servers|\.location|\.url|\.filename)")
_OPTION = re.compile(r"""[\w.]+\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s;"']+))""")


def is_placeholder(key: str, value: str) -> bool:
    """True if a value, or a part of it, was never filled in.

    `key` is the key as it stands in its file.
    """
    text = value.strip().strip("\"'")
    if not text:
        return False
    if _WHOLE.fullmatch(text) and not _PATTERN_KEYS.fullmatch(key):
        return not key.startswith("spark.")
    if "jaas" in key:
        return any(_WHOLE.fullmatch(next(filter(None, groups), "")) for groups in _OPTION.findall(text))
    if _PATTERN_KEYS.fullmatch(key):
        return any(_IN_PATTERNS.fullmatch(item.strip()) for item in text.split(",")) or _shells(text)
    if _PLACE_KEYS.fullmatch(key):
        items = [item.strip() for item in text.split(",")] if key.endswith("servers") else []
        without = re.sub(r"\$\{[^{}:]+:[^{}]*\}", "", text)  # references to config providers
        return bool(_IN_PLACES.search(without) or _ANYWHERE.search(text)) or any(map(_BROKER.fullmatch, items))
    return not is_secret(key) and not key.startswith("spark.") and _ANYWHERE.search(text) is not None


def _shells(text: str) -> bool:
    return re.search(rf"{_FILLED_BY_SHELLS}|{_DOUBLE}", text) is not None
