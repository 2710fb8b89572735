"""Schema ids in records, and whether they mean the same at a flow's target: what `sparkmirror schemas check` does."""

from sparkmirror.schemas.check import CheckedId, CheckedPart, SchemaCheck, check_flow
from sparkmirror.schemas.compare import SchemaVerdict
from sparkmirror.schemas.registry import Registry

__all__ = ["CheckedId", "CheckedPart", "Registry", "SchemaCheck", "SchemaVerdict", "check_flow"]
