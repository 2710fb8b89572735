"""Print a release's section of CHANGELOG.md, if tag, package and charts are of one version.

    python deploy/release/release_notes.py v0.2.0

Exit code 2, with one line, if they are not.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


class NoRelease(Exception):
    """Why the tag can't be released; one line."""


def notes(tag: str, root: Path = ROOT) -> str:
    """The text below the version's heading."""
    version = tag.removeprefix("v")
    package = (root / "src/sparkmirror/__init__.py").read_text("utf-8")
    versions = {"src/sparkmirror/__init__.py": re.findall(r'^__version__ = "(.*)"$', package, re.MULTILINE)}
    for chart in sorted((root / "deploy/helm").glob("*/Chart.yaml")):
        told = re.findall(r'^(?:version|appVersion): "?([^"\n]+)"?$', chart.read_text("utf-8"), re.MULTILINE)
        versions[str(chart.relative_to(root))] = told
    for file, told in versions.items():
        if set(told) != {version}:
            raise NoRelease(
                f"{file} has {', '.join(told) or 'no version'}, the tag is {tag}: write {version} there, then tag again"
            )
    heading = rf"^## {re.escape(version)}( .*)?\n(?P<section>.*?)(?=^## |\Z)"
    found = re.search(heading, (root / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
    if found is None or not found["section"].strip():
        raise NoRelease(f'CHANGELOG.md has no section "## {version}": rename "## Unreleased", then tag again')
    return found["section"].strip() + "\n"


def main() -> None:
    """Print them."""
    try:
        print(notes(sys.argv[1]), end="")
    except NoRelease as error:
        print(f"release: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
