"""One JVM for all tests of transforms."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.transforms.java_transforms import JavaTransforms


@pytest.fixture(scope="session")
def java_transforms() -> Iterator[JavaTransforms]:
    asked = JavaTransforms()
    yield asked
    asked.close()
