"""Real schema registries: Apicurio's, from Maven Central, each a process with its schemas in memory."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tarfile
import time
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import pytest
from jgo.config import GlobalSettings
from jgo.constants import MAVEN_CENTRAL_URL

from sparkmirror.demo.cache import cache_root, locked
from sparkmirror.demo.java import java
from sparkmirror.demo.ports import free_ports
from sparkmirror.demo.spawn import spawn

OLD, NEW = "2.6.13.Final", "3.3.3"
"""The first runs on Java 17 and keeps schemas as they came; the second needs Java 21 and tidies them."""
_NEWEST_JAVA = 21
_DIGESTS = {
    OLD: "3cda1b34aa020fb4ac4dd6a66018d757e81e437f97e20a1f92d366b70091c6ba",
    NEW: "8bc6751c76d963734224b01d5e7f84ccb3cb61c87d3bd77c36c35f10a5cbed63",
}
_PATH = "io/apicurio/apicurio-registry-app/{0}/apicurio-registry-app-{0}-all.tar.gz"
_START_S = 90.0


class Apicurio:
    """One that runs; `url` is where Confluent's API begins."""

    def __init__(self, directory: Path, version: str = OLD) -> None:
        self._log = directory / "registry.log"
        self._version = version
        self._port, self._management = free_ports(2)
        self.url = f"http://127.0.0.1:{self._port}/apis/ccompat/v7"
        self._child: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Return when it answers."""
        home = _unpacked(self._version)
        jar = next(path for path in (home / "quarkus-run.jar", *home.glob("*-runner.jar")) if path.exists())
        settings = {
            "quarkus.http.host": "127.0.0.1",
            "quarkus.http.port": self._port,
            "quarkus.management.host": "127.0.0.1",
            "quarkus.management.port": self._management,
        }
        options = [f"-D{key}={value}" for key, value in settings.items()]
        command = [_java_for(self._version), "-Xmx512m", "-XX:TieredStopAtLevel=1", *options, "-jar", str(jar)]
        self._child = spawn(command, output=self._log)
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline:
            try:
                self.ask("GET", "/subjects")
            except (URLError, ConnectionError):
                assert self._child.poll() is None, self._log.read_text()[-2000:]
                time.sleep(0.2)
            else:
                return
        raise AssertionError(self._log.read_text()[-2000:])

    def stop(self) -> None:
        """End it."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()

    def ask(self, method: str, path: str, form: object = None) -> Any:
        """What it answers; HTTPError for what it refuses."""
        data = None if form is None else json.dumps(form).encode()
        headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
        with urlopen(Request(self.url + path, data, headers, method=method), timeout=20) as answer:  # noqa: S310
            return json.loads(answer.read())

    def exported(self) -> bytes:
        """All that it has, ids included: what `taken_in` is given."""
        with urlopen(self._admin("export"), timeout=20) as answer:  # noqa: S310
            return bytes(answer.read())

    def taken_in(self, content: bytes) -> None:
        """Have what another one has."""
        headers = {"Content-Type": "application/zip"}
        urlopen(Request(self._admin("import"), content, headers, method="POST"), timeout=20).close()  # noqa: S310

    def _admin(self, what: str) -> str:
        native = "v2" if self._version == OLD else "v3"
        return self.url.replace("/ccompat/v7", f"/registry/{native}/admin/{what}")

    def register(
        self, subject: str, schema: object, kind: str = "AVRO", references: list[dict[str, object]] | None = None
    ) -> int:
        """Under a new version of a subject; the schema's id."""
        text = schema if isinstance(schema, str) else json.dumps(schema)
        form = {"schema": text, "schemaType": kind, "references": references or []}
        return int(self.ask("POST", f"/subjects/{subject}/versions", form)["id"])


def needs_new_java() -> None:
    """Skip the test where there is no Java for the newer one."""
    try:
        _java_for(NEW)
    except LookupError as error:
        pytest.skip(str(error))


def _java_for(version: str) -> str:
    if version == OLD:
        return java()
    for candidate in (java(), *map(str, Path("/usr/lib/jvm").glob("*/bin/java"))):
        told = subprocess.run([candidate, "-version"], capture_output=True, text=True, timeout=60, check=False).stderr
        found = re.search(r'version "(\d+)', told)
        if found is not None and int(found[1]) >= _NEWEST_JAVA:
            return candidate
    raise LookupError(f"Apicurio {version} needs Java {_NEWEST_JAVA}: apt-get install openjdk-21-jre-headless")


def _unpacked(version: str) -> Path:
    """Fetched once; a machine that can't fetch it skips the tests."""
    directory = cache_root() / f"apicurio-{version}"
    with locked(directory):
        if not directory.exists():
            partial = directory.with_name(f"{directory.name}.partial")
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            archive = partial / "all.tar.gz"
            try:
                with urlopen(_address(version), timeout=300) as answer, archive.open("wb") as file:  # noqa: S310
                    shutil.copyfileobj(answer, file)
            except (HTTPError, URLError, OSError) as error:
                pytest.skip(f"Apicurio {version} can't be fetched from Maven Central: {error}")
            assert hashlib.sha256(archive.read_bytes()).hexdigest() == _DIGESTS[version]
            with tarfile.open(archive) as content:
                content.extractall(partial, filter="data")
            archive.unlink()
            os.rename(partial, directory)
    return directory


def _address(version: str) -> str:
    """At Maven Central, or where this machine has it from."""
    central = GlobalSettings.load().repositories.get("central", MAVEN_CENTRAL_URL)
    return f"{central.rstrip('/')}/{_PATH.format(version)}"
