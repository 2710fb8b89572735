"""The same loops without numba."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

import sparkmirror.kafka.wire

_WIRE = "sparkmirror.kafka.wire"
_NAMES = ("compiling", "kernels", "record_kernels")


def plain_loops() -> ModuleType:
    """Import `record_kernels` as it is where numba is missing, and leave the process as it was."""
    held = {name: sys.modules.pop(f"{_WIRE}.{name}", None) for name in _NAMES}
    numba = sys.modules.get("numba")
    sys.modules["numba"] = None  # type: ignore[assignment]  # what stops an import
    try:
        return import_module(f"{_WIRE}.record_kernels")
    finally:
        if numba is None:
            del sys.modules["numba"]
        else:
            sys.modules["numba"] = numba
        for name, module in held.items():
            del sys.modules[f"{_WIRE}.{name}"]
            if module is not None:
                sys.modules[f"{_WIRE}.{name}"] = module
                setattr(sparkmirror.kafka.wire, name, module)
