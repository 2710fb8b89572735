"""Write deploy/docker/lock: what the image's packages are, with the hashes that pip compares.

    make lock

Versions are those of the virtual environment that this runs in. Each file of `lock` is for one extra of pyproject.toml,
`base.txt` for sparkmirror alone, `build.txt` for what builds wheels. Hashes are of the wheels that Debian 12's CPython
takes on either processor, and of the source where there is no wheel.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any, NamedTuple

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

LOCK = Path(__file__).with_name("lock")
PROJECT = Path(__file__).parents[2] / "pyproject.toml"
PYTHON = "3.11"
MACHINES = ("x86_64", "aarch64")
GLIBC = range(36, 16, -1)
"""Minor versions of glibc 2 whose wheels Debian 12 takes."""

EXTRAS = ("spark", "msk", "operator", "kerberos", "fast")
FROM_SOURCE = {"pyspark", "gssapi"}
BUILDERS = ("build", "hatchling", "setuptools", "wheel")
"""What builds releases; build backends: sparkmirror's, PySpark's, and what the latter needs."""

Pins = dict[str, str]


class Archive(NamedTuple):
    """What pip would install of a package."""

    version: str
    sha256: str


def wanted(requirements: Iterable[str], extras: frozenset[str], machine: str) -> Iterator[tuple[str, frozenset[str]]]:
    """Names that requirements ask for on such a machine, each with the extras that they ask of it."""
    environment = {
        **{key: str(value) for key, value in default_environment().items()},
        "platform_machine": machine,
        "python_version": PYTHON,
    }
    for text in requirements:
        item = Requirement(text)
        marker = item.marker
        if marker is None or any(marker.evaluate({**environment, "extra": extra}) for extra in ("", *extras)):
            yield canonicalize_name(item.name), frozenset(item.extras)


def closure(requirements: Iterable[str]) -> Pins:
    """Versions of all that requirements of sparkmirror's need, on any machine."""
    found: Pins = {}
    for machine in MACHINES:
        to_do = list(wanted(requirements, frozenset(), machine))
        done: set[tuple[str, frozenset[str]]] = set()
        while to_do:
            name, extras = to_do.pop()
            if (name, extras) in done:
                continue
            done.add((name, extras))
            package = distribution(name)
            found[name] = package.version
            to_do += wanted(package.requires or (), extras, machine)
    return found


def reported(*arguments: str) -> dict[str, Archive]:
    """What pip would install, by name."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--dry-run"]
    with tempfile.TemporaryDirectory() as directory:
        command = [*pip, "--ignore-installed", "--report", "-", "--target", directory, *arguments]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    installed: list[dict[str, Any]] = json.loads(done.stdout)["install"]
    return {
        canonicalize_name(item["metadata"]["name"]): Archive(
            item["metadata"]["version"], item["download_info"]["archive_info"]["hashes"]["sha256"]
        )
        for item in installed
    }


def of_debian(machine: str) -> list[str]:
    """pip's words for wheels of Debian 12's CPython."""
    platforms = [f"manylinux_2_{minor}_{machine}" for minor in GLIBC] + [f"manylinux2014_{machine}"]
    told = [word for platform in platforms for word in ("--platform", platform)]
    return [*told, "--python-version", PYTHON, "--only-binary", ":all:"]


def hashes(pins: Pins) -> dict[str, set[str]]:
    """The hashes that an archive of each package may have."""
    found: dict[str, set[str]] = {name: set() for name in pins}
    wheels = [f"{name}=={version}" for name, version in pins.items() if name not in FROM_SOURCE]
    asked = [reported("--no-deps", *of_debian(machine), *wheels) for machine in MACHINES]
    sources = [f"{name}=={version}" for name, version in pins.items() if name in FROM_SOURCE]
    asked.append(reported("--no-deps", "--no-binary", ":all:", *sources))
    for answer in asked:
        for name, archive in answer.items():
            found[name].add(archive.sha256)
    return found


def text(pins: Pins, allowed: dict[str, set[str]]) -> str:
    """A file of requirements."""
    lines = ["# By `make lock`\n"]
    for name, version in sorted(pins.items()):
        told = (f"--hash=sha256:{sha256}" for sha256 in sorted(allowed[name]))
        lines.append(" \\\n    ".join([f"{name}=={version}", *told]) + "\n")
    return "".join(lines)


def main() -> None:
    """Write all files."""
    project = tomllib.loads(PROJECT.read_text("utf-8"))["project"]
    base = closure(project["dependencies"])
    groups = {"base": base}
    for extra in EXTRAS:
        pins = closure(project["optional-dependencies"][extra])
        groups[extra] = {name: version for name, version in pins.items() if name not in base}
    allowed = hashes({name: version for pins in groups.values() for name, version in pins.items()})
    built = reported(*of_debian(MACHINES[0]), *BUILDERS)
    LOCK.mkdir(exist_ok=True)
    for group, pins in groups.items():
        (LOCK / f"{group}.txt").write_text(text(pins, allowed))
    versions = {name: archive.version for name, archive in built.items()}
    (LOCK / "build.txt").write_text(text(versions, {name: {archive.sha256} for name, archive in built.items()}))


if __name__ == "__main__":
    main()
