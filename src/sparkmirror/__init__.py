"""Exactly-once copies of Kafka clusters, on Spark.

The configuration is MirrorMaker 2's. What this module offers loads when somebody asks for it: a Spark task, or a
program without Spark, needs none of it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sparkmirror.api.checkpoint import rewrite_checkpoint
    from sparkmirror.api.migration import Migration, SwitchGoal
    from sparkmirror.api.mirror import Mirror
    from sparkmirror.api.shown_status import AgedFlow, MirrorStatus
    from sparkmirror.api.sink import Sink, append, written
    from sparkmirror.api.translator import Translator
    from sparkmirror.api.verification import Verification, verify

__version__ = "0.3.0"

_MODULES = {
    "AgedFlow": "shown_status",
    "SwitchGoal": "migration",
    "Migration": "migration",
    "Mirror": "mirror",
    "MirrorStatus": "shown_status",
    "Sink": "sink",
    "Translator": "translator",
    "Verification": "verification",
    "append": "sink",
    "rewrite_checkpoint": "checkpoint",
    "verify": "verification",
    "written": "sink",
}
"""Modules of `sparkmirror.api` by name."""

__all__ = [
    "AgedFlow",
    "Migration",
    "Mirror",
    "MirrorStatus",
    "Sink",
    "SwitchGoal",
    "Translator",
    "Verification",
    "__version__",
    "append",
    "rewrite_checkpoint",
    "verify",
    "written",
]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.api.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
