"""Spark DataFrames for people: what source and target differ in."""

from sparkmirror.frames.report import Difference, PartitionResult, Verification
from sparkmirror.frames.verify import DIFFERENCES, Options, Progress, run_verification, verify

__all__ = [
    "DIFFERENCES",
    "Difference",
    "Options",
    "PartitionResult",
    "Progress",
    "Verification",
    "run_verification",
    "verify",
]
