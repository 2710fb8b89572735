"""`sparkmirror verify` of a copy that was just made, from the start of its process to its verdict."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from bench.arena import Arena
from bench.contenders import ContenderFailed

TIMEOUT_S = 900.0


@dataclass(frozen=True, slots=True)
class VerifyResult:
    """What it took; Spark's start is in it."""

    seconds: float
    cpu_s: float


def verify(arena: Arena, file: Path, label: str) -> VerifyResult:
    """Verify what the mirror of an mm2.properties has copied; raises ContenderFailed if it isn't found equal."""
    account = arena.accounting.open(f"verify-{label}")
    arena.settle()
    command = [str(Path(sys.executable).with_name("sparkmirror")), "verify", str(file)]
    began = time.monotonic()
    try:
        done = subprocess.run(account.command(command), capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        seconds, cpu_s = time.monotonic() - began, account.cpu_s()
    finally:
        account.close()
    if done.returncode:
        raise ContenderFailed(f"verify ended with {done.returncode}: {done.stderr[-2000:]}{done.stdout[-2000:]}")
    return VerifyResult(seconds, cpu_s)
