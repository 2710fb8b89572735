"""Spark DataFrames for people: differences, offset maps, records per minute."""

from sparkmirror.frames.offset_runs import OFFSET_RUNS, offset_runs
from sparkmirror.frames.receipts import RECEIPTS, receipts
from sparkmirror.frames.report import Difference, PartitionResult, Verdict, Verification
from sparkmirror.frames.verify import DIFFERENCES, run_verification, verify
from sparkmirror.frames.verify_options import Options, Progress

__all__ = [
    "DIFFERENCES",
    "OFFSET_RUNS",
    "RECEIPTS",
    "Difference",
    "Options",
    "PartitionResult",
    "Progress",
    "Verdict",
    "Verification",
    "offset_runs",
    "receipts",
    "run_verification",
    "verify",
]
