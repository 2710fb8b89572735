"""Write into a chart where it comes from: its home page, and the registry that has its image.

python deploy/release/chart_origin.py deploy/helm/sparkmirror HOME_PAGE REGISTRY
"""

from __future__ import annotations

import sys
from pathlib import Path

_REGISTRY = '\n  registry: ""\n'


def write_origin(chart: Path, home: str, registry: str) -> None:
    """Append `home` and `sources` to Chart.yaml, and set `image.registry` in values.yaml."""
    values = (chart / "values.yaml").read_text("utf-8")
    image = values.index("\nimage:\n")
    (chart / "values.yaml").write_text(
        values[:image] + values[image:].replace(_REGISTRY, f"\n  registry: {registry}\n", 1), "utf-8"
    )
    with (chart / "Chart.yaml").open("a", encoding="utf-8") as file:
        file.write(f"home: {home}\nsources: [{home}]\n")


if __name__ == "__main__":
    write_origin(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
