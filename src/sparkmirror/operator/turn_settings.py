"""The operator's settings, and memory of a resource between turns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from sparkmirror.operator.names import ResourceKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The operator's settings."""

    class_name: str
    image: str
    versions: Mapping[ResourceKind, str]
    """API version of each kind to read, such as `v1`."""
    operator_labels: Mapping[str, str]
    operator_namespace: str


class Condition(NamedTuple):
    """Type and reason in a resource's first condition."""

    type: str
    reason: str


@dataclass(slots=True)
class Memory:
    """Memory of a resource between turns; without it some requests are repeated."""

    put: dict[str, str] = field(default_factory=dict)
    """Digest of each connector's configuration as put last."""
    said: str = ""
    """Last logged trouble."""
    condition: Condition | None = None
    """Condition after the last turn; None for a deleted or foreign resource."""
