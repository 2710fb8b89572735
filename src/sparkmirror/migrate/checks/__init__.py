"""Named preconditions of a switch (`sparkmirror migration check`)."""

from sparkmirror.migrate.checks.all_checks import CHECKS, run_checks
from sparkmirror.migrate.checks.precondition import Check, CheckResult, CheckVerdict

__all__ = ["CHECKS", "Check", "CheckResult", "CheckVerdict", "run_checks"]
