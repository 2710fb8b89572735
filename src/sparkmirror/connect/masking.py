"""Mask secrets in connectors' configurations.

No secret ever reaches an answer. A reference to a config provider (`${file:/path:key}`) is no secret and is shown; a
literal secret is shown as `[hidden]`. A client that sends `[hidden]` back keeps the stored value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sparkmirror.config.jaas import FLAGS
from sparkmirror.config.model import REFERENCE
from sparkmirror.connect.definitions import SECRETS
from sparkmirror.connect.validation import HIDDEN

_JAAS = "sasl.jaas.config"
_SECRET_WORD = re.compile(
    r"(^|[._-])(password|passphrase|secret|(api|secret|access|private)[._-]key|token|credentials?|user[._]info)$",
    re.IGNORECASE,
)
_JAAS_VALUE = rf"""(?:"[^"\\\s]*"|'[^'\\\s]*'|[A-Za-z_][\w.-]*|{REFERENCE.pattern})(?=[\s;]|\Z)"""
_JAAS_OPTION = rf"\s+([\w.]+)\s*=\s*({_JAAS_VALUE})"
_JAAS_LINE = re.compile(rf"\s*[\w.$]+\s+(?:{'|'.join(FLAGS)})(?P<options>(?:{_JAAS_OPTION})*)\s*;\s*", re.IGNORECASE)
"""One login module with plain options.

A JAAS parser would skip comments and repeated options, which may hold secrets too. So a line is shown only if this
pattern matches it as a whole.
"""
_JAAS_OPEN = (
    "username",
    "serviceName",
    "principal",
    "awsRoleArn",
    "awsProfileName",
    "awsRoleSessionName",
    "awsStsRegion",
)
"""JAAS options that identify the client and hold no secret."""


def is_secret(key: str) -> bool:
    """Tell whether `key`'s value must not be shown, with or without a prefix."""
    return any(key == name or key.endswith("." + name) for name in SECRETS) or bool(_SECRET_WORD.search(key))


def masked(config: Mapping[str, str]) -> dict[str, str]:
    """Return the configuration with `[hidden]` in place of secrets."""
    return {key: _masked_value(key, value) if is_secret(key) else value for key, value in config.items()}


def unmasked(config: Mapping[str, str | None], stored: Mapping[str, str]) -> dict[str, str | None]:
    """Return the configuration with stored values in place of `[hidden]`.

    Raises `ValueError` if no value is stored for such a key.
    """
    meant = dict(config)
    for key, value in config.items():
        if is_secret(key) and value == HIDDEN:
            if key not in stored:
                raise ValueError(f"{key} is {HIDDEN}, but no value is stored for it: give the value")
            meant[key] = stored[key]
    return meant


def _masked_value(key: str, value: str | None) -> str:
    if not value:
        return value or ""
    return value if _holds_no_secret(key, value) else HIDDEN


def _holds_no_secret(key: str, value: str) -> bool:
    if REFERENCE.fullmatch(value.strip()):
        return True
    line = _JAAS_LINE.fullmatch(value) if key.endswith(_JAAS) else None
    return line is not None and all(
        option[1] in _JAAS_OPEN or REFERENCE.fullmatch(option[2].strip("\"'"))
        for option in re.finditer(_JAAS_OPTION, line["options"])
    )
