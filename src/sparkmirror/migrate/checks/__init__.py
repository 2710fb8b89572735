"""Named preconditions of a migration's switches, for `sparkmirror migration check`."""

from sparkmirror.migrate.checks.check import Check, CheckResult, CheckVerdict
from sparkmirror.migrate.checks.registry import CHECKS, run_checks

__all__ = ["CHECKS", "Check", "CheckResult", "CheckVerdict", "run_checks"]
