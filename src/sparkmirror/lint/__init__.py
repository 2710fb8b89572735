"""The mistakes that users make, found before they cost anything."""

from sparkmirror.lint.check import RULES, check, check_clusters
from sparkmirror.lint.findings import Finding, Severity

__all__ = ["RULES", "Finding", "Severity", "check", "check_clusters"]
