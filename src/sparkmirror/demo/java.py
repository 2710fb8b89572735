"""Java 17 or newer: an installed one, or a fresh installation."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from sparkmirror.demo.cache import cache_root
from sparkmirror.errors import SetupError

if TYPE_CHECKING:
    from collections.abc import Iterator

OLDEST = 17

# Debian 12 and Ubuntu 22.04 have Java 17; newer releases have 21 or 25.
_PACKAGES = ("openjdk-17-jre-headless", "openjdk-21-jre-headless", "openjdk-25-jre-headless")


@functools.cache
def java_home() -> Path:
    """Return the home of Java 17 or newer; install Java if there is none.

    Looks at $JAVA_HOME, $PATH and /usr/lib/jvm; then tries apt-get if this process runs as root; then cjdk, which
    keeps a JRE in the cache. Raises SetupError, which names all attempts.
    """
    tried: list[str] = []
    for attempt in (_find, _install_by_apt, _install_by_cjdk):
        home = attempt(tried)
        if home is not None:
            return home
    raise SetupError(
        f"Java {OLDEST} or newer is needed and could not be had ({'; '.join(tried)}); install one, "
        f"for example with: sudo apt-get install {_PACKAGES[0]}"
    )


def java() -> str:
    """Return the path of the `java` command in `java_home()`."""
    return str(java_home() / "bin" / "java")


def _find(tried: list[str]) -> Path | None:
    for origin, command in _candidates():
        inspected = _inspect(command)
        if inspected is None:
            tried.append(f"{origin}: {command} does not run")
            continue
        home, version = inspected
        if version >= OLDEST:
            return home
        tried.append(f"{origin}: {command} is Java {version}")
    if not tried:
        tried.append("no java in JAVA_HOME or PATH")
    return None


def _candidates() -> Iterator[tuple[str, str]]:
    if configured := os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", str(Path(configured) / "bin" / "java")
    if on_path := shutil.which("java"):
        yield "PATH", on_path
    for installed in sorted(Path("/usr/lib/jvm").glob("*/bin/java")):
        yield "/usr/lib/jvm", str(installed)


def _inspect(command: str) -> tuple[Path, int] | None:
    """Ask `command` for its home and feature version; None if it doesn't run."""
    try:
        asked = subprocess.run(
            [command, "-XshowSettings:properties", "-version"], capture_output=True, text=True, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    home = re.search(r"^\s*java\.home = (.+)$", asked.stderr, re.MULTILINE)
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)", asked.stderr, re.MULTILINE)
    if asked.returncode or home is None or version is None:
        return None
    return Path(home[1].strip()), int(version[1])


def _install_by_apt(tried: list[str]) -> Path | None:
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        tried.append("apt-get: not root, or not there")
        return None
    print("Installing Java by apt-get ...", file=sys.stderr)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    # A list that can't be refreshed may still be good enough, so only the installation's outcome counts.
    subprocess.run(["apt-get", "-qq", "update"], env=environment, stdout=sys.stderr, stdin=subprocess.DEVNULL)
    for package in _PACKAGES:
        installing = subprocess.run(
            ["apt-get", "-qq", "-y", "--no-install-recommends", "install", package],
            env=environment,
            capture_output=True,
            stdin=subprocess.DEVNULL,
        )
        if installing.returncode == 0:
            return _find(tried)
    tried.append(f"apt-get: none of {', '.join(_PACKAGES)} could be installed")
    return None


def _install_by_cjdk(tried: list[str]) -> Path | None:
    import cjdk

    print("Downloading Java by cjdk ...", file=sys.stderr)
    try:
        return Path(
            cjdk.java_home(vendor="temurin-jre", version=str(OLDEST), cache_dir=cache_root() / "jdk", progress=False)
        )
    except cjdk.CjdkError as error:
        tried.append(f"cjdk: {' '.join(str(error).split())[:200]}")
        return None
