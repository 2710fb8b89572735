"""The image of this checkout, and the sample deployment between two clusters, as applied to the stand-in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.deploy.container_images import sparkmirror_image
from tests.deploy.terraform import WITH_BROKERS, Workspace


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
    return made.applied(*WITH_BROKERS)
