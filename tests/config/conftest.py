"""A file with one ordinary flow, for tests to add lines to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sparkmirror.config import MirrorConfig, load_mm2_properties

ORDINARY = """\
clusters = us, eu
us.bootstrap.servers = us1:9092
eu.bootstrap.servers = eu1:9092
us->eu.enabled = true
"""


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., MirrorConfig]:
    """Read the ordinary file, or `start`, with lines added at its end."""

    def loaded(lines: str = "", *, start: str = ORDINARY, **options: object) -> MirrorConfig:
        path = tmp_path / "mm2.properties"
        path.write_text(start + lines + "\n", encoding="latin-1")
        return load_mm2_properties(str(path), **options)  # type: ignore[arg-type]

    return loaded
