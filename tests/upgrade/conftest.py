"""The code of release 0.1, for tests that run it."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

import pytest

RELEASE_0_1 = "a2793a5"
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def old_source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The code of release 0.1, from this repository's history; libraries are those of this release."""
    archive = subprocess.run(
        ["git", "archive", RELEASE_0_1, "src"], cwd=ROOT, capture_output=True, check=False, timeout=60
    )
    if archive.returncode:
        pytest.skip(f"commit {RELEASE_0_1} is not in this clone: fetch its whole history")
    place = tmp_path_factory.mktemp("release-0.1")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(place, filter="data")
    return place / "src"
