"""The sample deployment between two clusters that are there already, as Terraform applies it to the stand-in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.deploy.terraform import Workspace

SOURCE_BROKERS = "b-1.old.example.com:9098,b-2.old.example.com:9098"
TARGET_BROKERS = "b-1.new.example.com:9098"
WITH_BROKERS = (
    f"-var=source-cluster-bootstrap-broker-string={SOURCE_BROKERS}",
    f"-var=target-cluster-bootstrap-broker-string={TARGET_BROKERS}",
    "-var=source-cluster-arn=arn:aws:kafka:us-west-1:012345678910:cluster/old/0123-1",
    "-var=target-cluster-arn=arn:aws:kafka:us-west-1:012345678910:cluster/new/4567-2",
)


@pytest.fixture(scope="session")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A directory in which Terraform has been initialised; each test that applies something takes its own."""
    made = Workspace(tmp_path_factory.mktemp("terraform", numbered=False))
    made.init()
    return made


@pytest.fixture(scope="session")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    """All resources of the sample, by address."""
    made = Workspace(Path(tmp_path_factory.mktemp("deployment", numbered=False)))
    made.init()
    return made.applied(*WITH_BROKERS)
