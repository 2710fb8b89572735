"""The image's bill of materials as CycloneDX's JSON: Debian's packages, Python's, Spark's jars, Java.

The same components give the same bytes: there is no time in it, and its number is made of the rest.
"""

from __future__ import annotations

import json
import os
import re
import sys
import uuid
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jar_facts
from licence_names import CLASSPATH, identified, listed

_ROOT = Path("/")
_NUMBERS = uuid.uuid5(uuid.NAMESPACE_OID, "sparkmirror's bills of materials")


def bill(spark: Path, java: Path, root: Path = _ROOT) -> dict[str, Any]:
    """The whole document; `root` has Debian's files."""
    system = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', (root / "etc/os-release").read_text(), re.MULTILINE))
    parts = [
        {"type": "operating-system", "name": system["ID"], "version": system["VERSION_ID"], "bom-ref": "system"},
        *debian_packages(root, f"{system['ID']}-{system['VERSION_ID']}"),
        *(_package(package) for package in distributions() if package.metadata["Name"] != "sparkmirror"),
        *map(jar_facts.component, (spark / "jars").glob("*.jar")),
        _java(java, f"{system['ID']}-{system['VERSION_ID']}"),
    ]
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {**_package(distribution("sparkmirror")), "type": "application"}},
        "components": sorted(parts, key=lambda part: (part.get("purl", ""), part["bom-ref"])),
    }
    number = uuid.uuid5(_NUMBERS, json.dumps(document, sort_keys=True))
    return {**document, "serialNumber": f"urn:uuid:{number}"}


def debian_packages(root: Path, distro: str) -> Iterator[dict[str, Any]]:
    """What is installed of Debian's packages."""
    for stanza in (root / "var/lib/dpkg/status").read_text().strip().split("\n\n"):
        told: dict[str, str] = dict(re.findall(r"^([\w-]+): (.*)$", stanza, re.MULTILINE))
        if told["Status"].endswith(" installed"):
            name, version = told["Package"], told["Version"]
            source = told.get("Source", name).partition(" ")[0]
            purl = _debian_purl(name, version, told["Architecture"], distro, source)
            part = {"type": "library", "name": name, "version": version, "purl": purl, "bom-ref": purl}
            licences = listed(_debian_licences(root / "usr/share/doc" / name / "copyright"))
            yield part | ({"licenses": licences} if licences else {})


def _debian_purl(name: str, version: str, machine: str, distro: str, source: str) -> str:
    upstream = f"&upstream={quote(source)}" if source != name else ""
    return f"pkg:deb/debian/{quote(name)}@{quote(version)}?arch={machine}&distro={distro}{upstream}"


def _debian_licences(copyright_file: Path) -> set[str]:
    """The licences that a file in Debian's format for machines names, in Debian's words."""
    if not copyright_file.is_file():
        return set()
    return set(re.findall(r"^License: *(\S.*?) *$", copyright_file.read_text("utf-8", "replace"), re.MULTILINE))


def _package(package: Distribution) -> dict[str, Any]:
    name = re.sub(r"[-_.]+", "-", package.metadata["Name"]).lower()
    purl = f"pkg:pypi/{name}@{quote(package.version)}"
    part = {"type": "library", "name": name, "version": package.version, "purl": purl, "bom-ref": purl}
    licences = _python_licences(package)
    return part | ({"licenses": licences} if licences else {})


def _python_licences(package: Distribution) -> list[dict[str, Any]]:
    """The expression; without it the short name, the classifiers, or the title of the text."""
    metadata = package.metadata
    if "License-Expression" in metadata:
        return [{"expression": metadata["License-Expression"]}]
    text = metadata["License"].strip() if "License" in metadata else ""
    classifiers = [
        one.rpartition(" :: ")[2] for one in metadata.get_all("Classifier", ()) if one.startswith("License ::")
    ]
    if text and "\n" not in text:
        return listed([identified(text)])
    return listed(identified(one.rpartition(" :: ")[2]) for one in classifiers or text.splitlines()[:1])


def _java(home: Path, distro: str) -> dict[str, Any]:
    """Java, by the package of Debian's that `jlink` took it from, which the build notes in Java's `release`."""
    told = dict(re.findall(r'^(\w+)="([^"]*)"$', (home / "release").read_text(), re.MULTILINE))
    number = told["JAVA_VERSION"]
    major = number.partition(".")[0]
    name, version, machine = told["DEBIAN_PACKAGE"].split()
    return {
        "type": "platform",
        "name": "openjdk",
        "version": number,
        "purl": _debian_purl(name, version, machine, distro, f"openjdk-{major}"),
        "bom-ref": f"openjdk@{number}",
        "licenses": listed([CLASSPATH]),
    }


if __name__ == "__main__":
    document = bill(Path(os.environ.get("SPARK_HOME", "/opt/spark")), Path(os.environ.get("JAVA_HOME", "/opt/java")))
    json.dump(document, sys.stdout, indent=1, sort_keys=True)
    sys.stdout.write("\n")
