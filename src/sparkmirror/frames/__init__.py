"""Spark DataFrames for people: what source and target differ in, and which offsets are the same record's."""

from sparkmirror.frames.offsets import OFFSET_RUNS, offset_runs
from sparkmirror.frames.report import Difference, PartitionResult, Verdict, Verification
from sparkmirror.frames.verify import DIFFERENCES, Options, Progress, run_verification, verify

__all__ = [
    "DIFFERENCES",
    "OFFSET_RUNS",
    "Difference",
    "Options",
    "PartitionResult",
    "Progress",
    "Verdict",
    "Verification",
    "offset_runs",
    "run_verification",
    "verify",
]
