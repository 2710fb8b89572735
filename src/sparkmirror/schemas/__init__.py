"""Schema ids in records, and their meaning at a flow's target.

`sparkmirror schemas check` does this work.
"""

from sparkmirror.schemas.compare import SchemaVerdict
from sparkmirror.schemas.id_check import CheckedId, CheckedPart, SchemaCheck, check_flow
from sparkmirror.schemas.registry import Registry

__all__ = ["CheckedId", "CheckedPart", "Registry", "SchemaCheck", "SchemaVerdict", "check_flow"]
