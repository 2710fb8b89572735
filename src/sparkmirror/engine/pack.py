"""One archive with sparkmirror and what it needs, for Spark workers that have nothing but Spark and Python.

Shipped with `spark.archives`; Spark unpacks it in each executor's working directory.
"""

from __future__ import annotations

import io
import sys
import tarfile
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

import sparkmirror

FOLDER = "sparkmirror_env"
"""The name that the archive is unpacked under; it goes into `PYTHONPATH` of the executors."""

SIGNING_IN = ("msk", "kerberos")
"""The extras whose packages are packed where they are installed: executors sign in themselves."""

_NOT_PACKED = {"pyspark", "py4j"}
"""Spark's own, which every worker has in the version of its cluster."""


def write_pack(path: Path) -> int:
    """Write the archive (tar, gzip); returns how many files it holds."""
    count = 0
    with tarfile.open(path, "w:gz", compresslevel=6) as archive:
        for source, name in _files():
            archive.add(source, arcname=name, recursive=False)
            count += 1
        stamp = f"sparkmirror {sparkmirror.__version__}\n".encode()
        info = tarfile.TarInfo("PACKED_BY_SPARKMIRROR")
        info.size = len(stamp)
        archive.addfile(info, io.BytesIO(stamp))
    return count


def python_minor() -> str:
    """The Python that the workers must have, as the archive holds compiled modules."""
    return ".".join(map(str, sys.version_info[:2]))


def settings_for(path: Path) -> dict[str, str]:
    """The Spark settings that ship the archive."""
    return {"spark.archives": f"{path}#{FOLDER}", "spark.executorEnv.PYTHONPATH": FOLDER}


def _files() -> Iterator[tuple[Path, str]]:
    package = Path(sparkmirror.__file__).parent
    for source in sorted(package.rglob("*")):
        if source.is_file() and "__pycache__" not in source.parts:
            yield source, str(Path("sparkmirror") / source.relative_to(package))
    for name in sorted(_needed("sparkmirror")):
        for file in distribution(name).files or ():
            source = Path(str(file.locate()))
            if source.is_file() and ".." not in file.parts and "__pycache__" not in file.parts:
                yield source, str(file)


def _needed(root: str) -> set[str]:
    """Names of all distributions that `root` needs to run, without itself and without Spark's."""
    found: set[str] = set()
    waiting = [root]
    while waiting:
        for requirement in _requirements(distribution(waiting.pop())):
            if requirement.name not in found | _NOT_PACKED:
                found.add(requirement.name)
                waiting.append(requirement.name)
    return found


def _requirements(package: Distribution) -> Iterator[Requirement]:
    for line in package.requires or ():
        requirement = Requirement(line)
        if _is_wanted(requirement):
            yield requirement


def _is_wanted(requirement: Requirement) -> bool:
    marker = requirement.marker
    if marker is None or marker.evaluate({"extra": ""}):
        return True
    wanted = any(marker.evaluate({"extra": extra}) for extra in SIGNING_IN)
    return wanted and _is_installed(requirement.name)


def _is_installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True
