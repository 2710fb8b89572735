"""Policies and filters that users write in Python, named `module:Class` where MirrorMaker 2 takes a Java class.

A class is built without arguments; if it has a method `configure`, that is called with the connector's
settings, as in Java. Modules are looked for where Python looks (`PYTHONPATH`), then in the current directory.
They run in the driver only: tasks get topics' names.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

_NAMED = re.compile(r"(?P<module>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):(?P<class>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)")
_SECRET = re.compile(r"password|secret|token|jaas|credential|user[._]info|keystore\.key", re.IGNORECASE)


def load(named: str, protocol: type, originals: Mapping[str, str], *, instead: Iterable[str]) -> Any:
    """An object of the class `named`, with all methods of `protocol`, configured with `originals`.

    `instead` are the Java classes that are known here. Raises `ValueError` with one line that says what is wrong.
    """
    match = _NAMED.fullmatch(named)
    if match is None:
        raise ValueError(
            f"{named} is not known: there are {' and '.join(instead)}, and your own in Python, written module:Class"
        )
    kind = _class(match["module"], match["class"])
    try:
        built = kind()
        if callable(getattr(built, "configure", None)):
            built.configure(dict(originals))
    except Exception as error:
        raise ValueError(f"{named} can't be built: {_masked(_words(error), originals)}") from error
    missing = [name for name in _methods(protocol) if not callable(getattr(built, name, None))]
    if missing:
        raise ValueError(
            f"{named} has no method {' or '.join(missing)}: add it, or inherit from "
            f"sparkmirror.policy.{_default_of(protocol)}"
        )
    return built


def _class(module: str, name: str) -> Any:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)  # for good, and last: it must hide no module of ours
    try:
        found: Any = importlib.import_module(module)
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and error.name and f"{module}.".startswith(f"{error.name}."):
            raise ValueError(f"there is no module {error.name} in {here} or on PYTHONPATH") from None
        raise ValueError(f"module {module} can't be imported: {_words(error)}") from error
    where = getattr(found, "__file__", None) or module
    for part in name.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, type):
        raise ValueError(f"{where} has no class {name}")
    return found


def _methods(protocol: type) -> list[str]:
    return [name for name in vars(protocol) if not name.startswith("_")]


def _default_of(protocol: type) -> str:
    return f"Default{protocol.__name__}"


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _masked(text: str, originals: Mapping[str, str]) -> str:
    """What a user's own words may repeat of the settings must show no secret."""
    for key, value in originals.items():
        if value and _SECRET.search(key):
            text = text.replace(value, "***")
    return text
