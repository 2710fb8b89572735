"""Kafka's jars, by jgo from Maven Central, without Maven or Java.

Each set of coordinates has its own directory in the cache, which is renamed into place when it is whole. So an existing
directory is complete, and the second call only reads its class path.
"""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING

from sparkmirror.demo.cache import cache_root, locked
from sparkmirror.errors import SetupError, SparkMirrorError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rich.progress import Progress

KAFKA_VERSION = "4.3.1"
BROKER_VERSION = os.environ.get("SPARKMIRROR_KAFKA_VERSION") or KAFKA_VERSION
"""Kafka version for a cluster whose caller names none."""

_SCALA_2_13 = (2, 4)
"""Kafka's first version with artifacts for Scala 2.13."""

# Kafka 2.0 to 2.3 bring ZooKeeper 3.4.13, which does not find its server on Java 14 and newer.
_ZOOKEEPER = "org.apache.zookeeper:zookeeper:3.4.10"

# Kafka's own modules log to slf4j 1.7 and leave its back end to the distribution.
_LOGGING = "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4"


def broker_jars(version: str) -> tuple[str, ...]:
    """Return a broker's coordinates in one Kafka version, such as 2.8.2."""
    major, minor = (int(part) for part in version.split(".")[:2])
    scala = "2.13" if (major, minor) >= _SCALA_2_13 else "2.12"
    zookeeper = (_ZOOKEEPER,) if (2, 0) <= (major, minor) < (2, 4) else ()
    return f"org.apache.kafka:kafka_{scala}:{version}", _LOGGING, *zookeeper


BROKER = broker_jars(KAFKA_VERSION)


def mirror_maker_jars(version: str) -> tuple[str, ...]:
    """Return MirrorMaker 2's coordinates in one Kafka version, from 2.4 on."""
    return f"org.apache.kafka:connect-mirror:{version}", f"org.apache.kafka:connect-runtime:{version}", _LOGGING


MIRROR_MAKER = mirror_maker_jars(KAFKA_VERSION)

_CLASS_PATH = "class-path.txt"
_DOWNLOADS_AT_ONCE = 8


def jar_directory(coordinates: Sequence[str] = BROKER) -> Path:
    """Return the cache directory that holds the jars of `coordinates`.

    The first call downloads the jars. `coordinates` are `group:artifact:version`. Raises SetupError if the download
    fails.
    """
    directory = cache_root() / "jars" / "+".join(coordinate.split(":", 1)[1] for coordinate in coordinates)
    directory = directory.with_name(directory.name.replace(":", "-"))
    if (directory / _CLASS_PATH).exists():
        return directory
    with locked(directory):
        if not (directory / _CLASS_PATH).exists():
            partial = directory.with_name(f"{directory.name}.partial")
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir()
            jars = _download(coordinates, partial)
            (partial / _CLASS_PATH).write_text("".join(f"{jar.relative_to(partial)}\n" for jar in jars))
            partial.rename(directory)
    return directory


def class_path(coordinates: Sequence[str] = BROKER) -> str:
    """Return the class path for `coordinates` with all their dependencies.

    The first call downloads the jars. Raises SetupError if the download fails.
    """
    directory = jar_directory(coordinates)
    return os.pathsep.join(str(directory / line) for line in (directory / _CLASS_PATH).read_text().splitlines())


def _download(coordinates: Sequence[str], directory: Path) -> list[Path]:
    """Resolve and download `coordinates` into `directory`, with a progress bar.

    Returns the jars in class path order.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    try:
        with Progress(*columns, console=Console(stderr=True)) as progress:
            return _download_jars(coordinates, directory, progress)
    except SparkMirrorError:
        raise
    except Exception as error:  # jgo raises whatever its HTTP and XML libraries raise
        reason = " ".join(str(error).split())[:300]
        raise SetupError(
            f"{coordinates[0]}: can't be downloaded from Maven Central ({type(error).__name__}: {reason}); "
            "check the network (HTTPS_PROXY, or [repositories] in ~/.config/jgo.conf) and run this again"
        ) from error


def _download_jars(coordinates: Sequence[str], directory: Path, progress: Progress) -> list[Path]:
    from jgo.config import GlobalSettings
    from jgo.constants import MAVEN_CENTRAL_URL
    from jgo.maven import MavenContext

    label = coordinates[0].split(":", 1)[1]
    bar = progress.add_task(f"Resolving {label}", total=None)
    repositories = {"central": MAVEN_CENTRAL_URL, **GlobalSettings.load().repositories}
    maven = MavenContext(repo_cache=directory, remote_repos=repositories, timeout=60)
    # jgo lets the first coordinate's managed versions rule all others unless it is marked raw ("!").
    wanted, needed = maven.resolver.resolve([maven.create_dependency(f"{c}!") for c in coordinates])
    artifacts = [d.artifact for d in (*wanted, *needed) if d.scope in (None, "compile", "runtime")]
    progress.update(bar, description=f"Downloading {label}", total=len(artifacts))
    with ThreadPoolExecutor(_DOWNLOADS_AT_ONCE) as pool:
        downloads = [pool.submit(artifact.resolve) for artifact in artifacts]
        for download in as_completed(downloads):
            download.result()
            progress.advance(bar)
    return [download.result() for download in downloads]
