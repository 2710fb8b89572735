"""The image of this checkout, and the sample deployment between two clusters, as applied to the stand-in.

Kubernetes is built while the tests run that don't need it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.deploy.container_images import sparkmirror_image
from tests.deploy.terraform import Workspace

_NEED_KUBERNETES = (
    "test_chart.py",
    "test_chart_values.py",
    "test_spark_operator.py",
    "test_operator.py",
    "test_operator_of_many.py",
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the long tests that need Kubernetes last."""
    if config.getoption("--full"):
        items.sort(key=lambda item: _needs_kubernetes(item.path))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build Kubernetes if a test needs it; a test that comes before the end waits by the build's lock."""
    if not session.config.getoption("--full") or not any(_needs_kubernetes(item.path) for item in session.items):
        return
    build = subprocess.Popen(
        [sys.executable, "-m", "tests.deploy.kube_build"],
        cwd=session.config.rootpath,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )

    def end() -> None:
        with suppress(ProcessLookupError):
            os.killpg(build.pid, signal.SIGTERM)
        build.wait()

    session.config.add_cleanup(end)


def _needs_kubernetes(file: Path) -> bool:
    here = Path(__file__).parent
    return file.is_relative_to(here / "node") or (file.parent == here and file.name in _NEED_KUBERNETES)


@pytest.fixture(scope="session")
def image() -> str:
    """The name of the image of this checkout."""
    return sparkmirror_image()


@pytest.fixture(scope="session")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A directory in which Terraform has been initialised; each test that applies something takes its own."""
    made = Workspace(tmp_path_factory.mktemp("terraform", numbered=False))
    made.init()
    return made


@pytest.fixture(scope="session")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    """All resources of the sample, by address."""
    made = Workspace(tmp_path_factory.mktemp("deployment", numbered=False))
    made.init()
    return made.applied()
