"""Amounts on the command line, such as `20M`."""

from __future__ import annotations

import re

from sparkmirror.errors import ConfigError

_UNITS = {"": 1, "K": 1_000, "M": 1_000_000, "G": 1_000_000_000, "T": 1_000_000_000_000}


def amount(text: str, argument: str, rule: str) -> float:
    """Read a number above zero that may have a unit.

    Raises `ConfigError`, which tells the rule.
    """
    match = re.fullmatch(r"(\d{1,15}(?:\.\d{1,15})?)([KMGT]?)", text.strip().upper())
    if not match or not float(match[1]):
        raise ConfigError(rule, origin=argument, key=text)
    return float(match[1]) * _UNITS[match[2]]
