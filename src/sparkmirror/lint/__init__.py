"""Rules that find users' mistakes in files and clusters before a run."""

from sparkmirror.lint.check import RULES, check, check_clusters, ranked
from sparkmirror.lint.findings import LintFinding, LintSeverity
from sparkmirror.lint.folding import Folded, folded

__all__ = ["RULES", "Folded", "LintFinding", "LintSeverity", "check", "check_clusters", "folded", "ranked"]
