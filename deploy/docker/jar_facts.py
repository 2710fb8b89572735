"""What a jar says of itself: Maven's coordinates and licences; and a table for those that say nothing."""

from __future__ import annotations

import hashlib
import re
import zipfile
from pathlib import Path
from typing import Any

from licence_names import APACHE, identified, listed

_NAME = re.compile(
    r"(?P<name>(log4j-1\.2-api|.+?))-(?P<version>\d.*?)"
    r"(-(?P<classifier>tests|core|shaded-protobuf|linux-\w+|jdk8))?\.jar"
)
_FILES = re.compile(r"META-INF/maven/(?P<group>[^/]+)/(?P<name>[^/]+)/pom\.(properties|xml)")
_TEXTS = re.compile(r"(META-INF/)?(LICENSE|LICENCE)[^/]*", re.IGNORECASE)
_TITLE = 60
"""Characters of a licence's text that have its title, and no more."""

GROUPS = {
    "RoaringBitmap": "org.roaringbitmap",
    "chill-java": "com.twitter",
    "chill_2.13": "com.twitter",
    "hadoop-client-runtime": "org.apache.hadoop",
    "ivy": "org.apache.ivy",
    "jackson-module-scala_2.13": "com.fasterxml.jackson.module",
    "json4s-ast_2.13": "org.json4s",
    "json4s-core_2.13": "org.json4s",
    "json4s-jackson-core_2.13": "org.json4s",
    "json4s-jackson_2.13": "org.json4s",
    "json4s-scalap_2.13": "org.json4s",
    "jsr305": "com.google.code.findbugs",
    "log4j-1.2-api": "org.apache.logging.log4j",
    "objenesis": "org.objenesis",
    "oro": "oro",
    "scala-library": "org.scala-lang",
    "scala-parallel-collections_2.13": "org.scala-lang.modules",
    "scala-parser-combinators_2.13": "org.scala-lang.modules",
    "scala-reflect": "org.scala-lang",
    "scala-xml_2.13": "org.scala-lang.modules",
    "snappy-java": "org.xerial.snappy",
    "tink": "com.google.crypto.tink",
    "xz": "org.tukaani",
    "zstd-jni": "com.github.luben",
}
"""Maven's groups of jars without its files."""

LICENCES = {
    "com.fasterxml.jackson.module": APACHE,
    "com.google.code.findbugs": APACHE,
    "com.google.crypto.tink": APACHE,
    "com.twitter": APACHE,
    "io.fabric8": APACHE,
    "io.vertx": f"{APACHE} OR EPL-2.0",
    "org.json4s": APACHE,
    "org.roaringbitmap": APACHE,
    "org.scala-lang.modules": APACHE,
    "oro": "Apache-1.1",
}
"""By group, of jars that have no licence in them, or only one of the parent's file; from the published pom files."""


def component(path: Path) -> dict[str, Any]:
    """CycloneDX's component."""
    matched = _NAME.fullmatch(path.name)
    name, version = (matched["name"], matched["version"]) if matched else (path.stem, "")
    classifier = matched["classifier"] if matched else None
    with zipfile.ZipFile(path) as jar:
        group = _group(jar, name)
        licences = listed(_licences(jar, group, name))
    part: dict[str, Any] = {
        "type": "library",
        "name": name,
        "version": version,
        "purl": _purl(group, name, version, classifier),
        "bom-ref": path.name,
        "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(path.read_bytes()).hexdigest()}],
    }
    return part | ({"group": group} if group else {}) | ({"licenses": licences} if licences else {})


def _purl(group: str, name: str, version: str, classifier: str | None) -> str:
    if not group:
        return f"pkg:generic/{name}@{version}"
    return f"pkg:maven/{group}/{name}@{version}" + (f"?classifier={classifier}" if classifier else "")


def _group(jar: zipfile.ZipFile, name: str) -> str:
    """The group of Maven's that the jar says it is of, else the table's."""
    entries = [found for found in map(_FILES.fullmatch, jar.namelist()) if found]
    return next((found["group"] for found in entries if found["name"] == name), GROUPS.get(name, ""))


def _licences(jar: zipfile.ZipFile, group: str, name: str) -> list[str]:
    return _of_pom(jar, group, name) or _of_manifest(jar) or _of_text(jar) or [LICENCES.get(group, "")]


def _of_pom(jar: zipfile.ZipFile, group: str, name: str) -> list[str]:
    licences = re.search(r"<licenses>(.*?)</licenses>", _text(jar, f"META-INF/maven/{group}/{name}/pom.xml"), re.DOTALL)
    return [identified(told) for told in re.findall(r"<name>(.*?)</name>", licences[1])] if licences else []


def _of_manifest(jar: zipfile.ZipFile) -> list[str]:
    manifest = _text(jar, "META-INF/MANIFEST.MF").replace("\r", "").replace("\n ", "")
    told = re.search(r"^Bundle-License: (.*)$", manifest, re.MULTILINE)
    return [identified(one) for one in re.split(r",\s*(?=http|\w+\.org/)", told[1])] if told else []


def _of_text(jar: zipfile.ZipFile) -> list[str]:
    """The licence whose text is in the jar, if its title is one that has an id."""
    for entry in filter(_TEXTS.fullmatch, jar.namelist()):
        title = " ".join(_text(jar, entry).split())[:_TITLE].rstrip()
        if identified(title) != title:
            return [identified(title)]
    return []


def _text(jar: zipfile.ZipFile, entry: str) -> str:
    try:
        return jar.read(entry).decode("utf-8", "replace")
    except KeyError:
        return ""
