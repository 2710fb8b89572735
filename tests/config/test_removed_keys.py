"""Keys of settings that were removed: one warning that says what to do instead."""

from __future__ import annotations

from pathlib import Path

from sparkmirror.config import load_mm2_properties

FILE = """\
clusters = A, B
A.bootstrap.servers = 127.0.0.1:1
B.bootstrap.servers = 127.0.0.1:2
A->B.enabled = true
"""


def warnings(path: Path, more: str) -> list[str]:
    """The warnings that mention the fence."""
    path.write_text(FILE + more)
    return [line for line in load_mm2_properties(str(path)).warnings if "fence" in line]


def test_the_marker_fence(tmp_path: Path) -> None:
    path = tmp_path / "mm2.properties"
    (line,) = warnings(path, "A->B.sparkmirror.takeover.fence = marker\n")
    assert "has no effect since sparkmirror 0.2: raise producer.id.expiration.ms at the target" in line
    assert len(warnings(path, "sparkmirror.takeover.fence = marker\n")) == 1
