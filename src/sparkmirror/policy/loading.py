"""Load policies and filters that users write in Python.

The configuration names such a class `module:Class` in place of a MirrorMaker 2 Java class. A class is built without
arguments; a method `configure`, if present, is called with the connector's settings, as in Java. Modules are looked for
on Python's path (`PYTHONPATH`), then in the current directory. Only the driver runs these classes: tasks get topic
names.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

_NAMED = re.compile(r"(?P<module>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):(?P<class>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)")
_SECRET = re.compile(r"password|secret|token|jaas|credential|user[._]info|keystore\.key", re.IGNORECASE)


def load(named: str, protocol: type, originals: Mapping[str, str], *, instead: Iterable[str]) -> Any:
    """Build an object of the class `named`, configured with `originals`.

    The object must have all methods in `protocol`. `instead` are the known Java classes, for the error's text. Raises
    `ValueError` with the reason in one line.
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


def must_name(named: str, what: str, question: Callable[[], object], originals: Mapping[str, str]) -> None:
    """Raise `ValueError` with the reason in one line unless `question` returns a name.

    `named` is the class whose object is asked, with its settings `originals`; `what` is what the name is for.
    """
    try:
        name = question()
    except Exception as error:
        raise ValueError(f"{named} can't tell {what}: {_masked(_words(error), originals)}") from error
    if not isinstance(name, str) or not name:
        raise ValueError(f"{named} can't tell {what}: it says {name!r}, which is no name")


def _class(module: str, name: str) -> Any:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)  # stays in the path; last, so that it hides no module of sparkmirror
    try:
        target: Any = importlib.import_module(module)
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and error.name and f"{module}.".startswith(f"{error.name}."):
            raise ValueError(f"there is no module {error.name} in {here} or on PYTHONPATH") from None
        raise ValueError(f"module {module} can't be imported: {_words(error)}") from error
    file = getattr(target, "__file__", None) or module
    for part in name.split("."):
        target = getattr(target, part, None)
    if not isinstance(target, type):
        raise ValueError(f"{file} has no class {name}")
    return target


def _methods(protocol: type) -> list[str]:
    return [name for name in vars(protocol) if not name.startswith("_")]


def _default_of(protocol: type) -> str:
    return f"Default{protocol.__name__}"


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _masked(text: str, originals: Mapping[str, str]) -> str:
    """Mask secret settings in a text, since a user's error may quote settings."""
    for key, value in originals.items():
        if value and _SECRET.search(key):
            text = text.replace(value, "***")
    return text
