"""Archive with sparkmirror and its packages, for plain Spark workers.

Such workers have only Spark and Python. `spark.archives` ships the archive; Spark unpacks it in each executor's working
directory.
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
"""Directory that the archive is unpacked to, in the executors' `PYTHONPATH`."""

DATA_SOURCE = "pyspark_sparkmirror.py"
"""Module of the data source, next to the package; tasks that read by it import it."""

SIGNING_IN = ("msk", "kerberos")
"""Extras whose packages are packed if installed: executors sign in themselves."""

_ARCHIVES, _EXECUTORS_PATH = "spark.archives", "spark.executorEnv.PYTHONPATH"
_NOT_PACKED = {"pyspark", "py4j"}
"""Spark's own packages, which every worker has in its cluster's version."""


def write_pack(path: Path) -> int:
    """Write the archive (tar, gzip); returns its file count."""
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
    """Return the Python version that workers must have.

    The archive holds compiled modules.
    """
    return ".".join(map(str, sys.version_info[:2]))


def settings_for(path: Path) -> dict[str, str]:
    """Return the Spark settings that ship the archive."""
    return {_ARCHIVES: f"{path}#{FOLDER}", _EXECUTORS_PATH: FOLDER}


def _files() -> Iterator[tuple[Path, str]]:
    package = Path(sparkmirror.__file__).parent
    for source in sorted(package.rglob("*")):
        if source.is_file() and "__pycache__" not in source.parts:
            yield source, str(Path("sparkmirror") / source.relative_to(package))
    yield package.parent / DATA_SOURCE, DATA_SOURCE
    for name in sorted(_needed("sparkmirror")):
        for file in distribution(name).files or ():
            source = Path(str(file.locate()))
            if source.is_file() and ".." not in file.parts and "__pycache__" not in file.parts:
                yield source, str(file)


def _needed(root: str) -> set[str]:
    """Return all distributions that `root` needs, by name, without Spark's.

    `root` itself is left out.
    """
    needed: set[str] = set()
    waiting = [root]
    while waiting:
        for requirement in _requirements(distribution(waiting.pop())):
            if requirement.name not in needed | _NOT_PACKED:
                needed.add(requirement.name)
                waiting.append(requirement.name)
    return needed


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
