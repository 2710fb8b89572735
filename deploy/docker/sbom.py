"""The image's bill of materials as CycloneDX's JSON: Python's distributions, Spark's jars, Java; on standard output.

The same components give the same bytes: there is no time and no number drawn in it. Debian's packages are in the
image's /var/lib/dpkg/status.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path
from typing import Any

_JAR = re.compile(r"(?P<name>.+?)-(?P<version>\d.*?)(-(tests|core|shaded-protobuf|linux-\w+|jdk8))?\.jar")


def bill(spark: Path, java: Path) -> dict[str, Any]:
    """The whole document."""
    parts = [*map(_package, distributions()), *map(_jar, (spark / "jars").glob("*.jar")), _java(java)]
    product = distribution("sparkmirror")
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {**_package(product), "type": "application"}},
        "components": sorted(_without_product(parts), key=lambda part: (part["purl"], part["bom-ref"])),
    }


def _without_product(parts: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    return (part for part in parts if part["name"] != "sparkmirror")


def _package(package: Distribution) -> dict[str, Any]:
    name = re.sub(r"[-_.]+", "-", package.metadata["Name"]).lower()
    purl = f"pkg:pypi/{name}@{package.version}"
    part: dict[str, Any] = {
        "type": "library",
        "name": name,
        "version": package.version,
        "purl": purl,
        "bom-ref": purl,
    }
    told = [package.metadata[key] for key in ("License-Expression", "License") if key in package.metadata]
    if told and "\n" not in told[0]:
        part["licenses"] = [{"license": {"name": told[0]}}]
    return part


def _jar(path: Path) -> dict[str, Any]:
    matched = _JAR.fullmatch(path.name)
    name, version = (matched["name"], matched["version"]) if matched else (path.stem, "")
    group = _group(path, name)
    purl = f"pkg:maven/{group}/{name}@{version}" if group else f"pkg:generic/{name}@{version}"
    part: dict[str, Any] = {
        "type": "library",
        "name": name,
        "version": version,
        "purl": purl,
        "bom-ref": path.name,
    }
    if group:
        part["group"] = group
    return {**part, "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(path.read_bytes()).hexdigest()}]}


def _group(path: Path, name: str) -> str:
    """The group of Maven's that the jar says it is of; empty if it says none, or is of several."""
    with zipfile.ZipFile(path) as archive:
        entries = re.findall(r"META-INF/maven/([^/]+)/([^/]+)/pom\.properties", "\n".join(archive.namelist()))
    return next((group for group, artifact in entries if artifact == name), "")


def _java(home: Path) -> dict[str, Any]:
    version = re.search(r'^JAVA_VERSION="([^"]+)"', (home / "release").read_text(), re.MULTILINE)
    number = version[1] if version else ""
    purl = f"pkg:generic/openjdk@{number}"
    return {"type": "platform", "name": "openjdk", "version": number, "purl": purl, "bom-ref": purl}


if __name__ == "__main__":
    document = bill(Path(os.environ.get("SPARK_HOME", "/opt/spark")), Path(os.environ.get("JAVA_HOME", "/opt/java")))
    json.dump(document, sys.stdout, indent=1, sort_keys=True)
    sys.stdout.write("\n")
