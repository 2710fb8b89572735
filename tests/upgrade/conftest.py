"""The code of earlier releases, for tests that run it."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path

import pyspark
import pytest

RELEASES = {"0.1": "a2793a5", "0.2": "9d3191f5"}
"""The releases' commits."""
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def old_source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The code of release 0.1, from this repository's history; libraries are those of this release."""
    return source_of("0.1", tmp_path_factory)


@pytest.fixture(scope="session", params=RELEASES)
def earlier_source(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The code of each earlier release, as `old_source` is that of the first."""
    if request.param == "0.1" and not pyspark.__version__.startswith("4.3"):
        pytest.skip("release 0.1 runs on PySpark 4.3")
    return source_of(request.param, tmp_path_factory)


def source_of(release: str, places: pytest.TempPathFactory) -> Path:
    """Unpack a release's code."""
    commit = RELEASES[release]
    archive = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, capture_output=True, check=False, timeout=60)
    if archive.returncode:
        pytest.skip(f"commit {commit} is not in this clone: fetch its whole history")
    place = places.mktemp(f"release-{release}")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(place, filter="data")
    return place / "src"
