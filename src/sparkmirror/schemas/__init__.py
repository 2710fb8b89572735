"""Schema ids in records, and whether they mean the same at a flow's target: what `sparkmirror schemas check` does."""

from sparkmirror.schemas.check import Check, CheckedId, CheckedPart, check_flow
from sparkmirror.schemas.compare import Verdict
from sparkmirror.schemas.registry import Registry

__all__ = ["Check", "CheckedId", "CheckedPart", "Registry", "Verdict", "check_flow"]
