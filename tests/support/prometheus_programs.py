"""Debian's `prometheus` and `promtool`: those that are installed, or unpacked into the cache next to Kafka."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from sparkmirror.demo.cache import cache_root, locked

HOW = "apt-get install --no-install-recommends prometheus"


def installed(name: str) -> str:
    """The program's path; a test that needs it is skipped where there is none."""
    found = shutil.which(name) or shutil.which(name, path=str(_unpacked() / "usr" / "bin"))
    if found is None:
        pytest.skip(f"{name} is not installed: {HOW}")
    return found


def fetched(name: str) -> str:
    """The same, from the package of this machine's Debian, which is unpacked once; nothing is installed."""
    if shutil.which(name) is None and shutil.which("apt-get") is not None:
        with locked(_unpacked()):
            if not (_unpacked() / "usr" / "bin" / name).exists():
                _unpack(_unpacked())
    return installed(name)


def _unpacked() -> Path:
    return cache_root() / "prometheus"


def _unpack(into: Path) -> None:
    into.mkdir(parents=True, exist_ok=True)
    asked = subprocess.run(
        ["apt-get", "download", "prometheus"], cwd=into, capture_output=True, timeout=300, check=False
    )
    for package in into.glob("prometheus_*.deb") if asked.returncode == 0 else ():
        subprocess.run(["dpkg", "-x", package.name, "."], cwd=into, check=True, timeout=120)
        package.unlink()
