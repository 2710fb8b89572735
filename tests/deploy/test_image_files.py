"""What can be said of the images' files without building them: the entry point, and that files and docs agree."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import entrypoint
import jar_facts
import leave_out
import licence_names
import lock_hashes
import pytest
import sbom
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
DOCKER = ROOT / "deploy" / "docker"
PAGE = (ROOT / "docs" / "deploy" / "images.md").read_text()
LEFT_OUT = (DOCKER / "README.md").read_text()
DOCKERFILE = (DOCKER / "Dockerfile").read_text()
EXECUTOR = {
    "JAVA_HOME": "/opt/java",
    "SPARK_HOME": "/opt/spark",
    "SPARK_CONF_DIR": "/opt/spark/conf",
    "SPARK_DRIVER_URL": "spark://driver",
    "SPARK_EXECUTOR_ID": "7",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_EXECUTOR_MEMORY": "640m",
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.1",
    "SPARK_EXECUTOR_POD_NAME": "mirror-exec-7",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    "SPARK_JAVA_OPT_10": "-Dten=10",
    "SPARK_JAVA_OPT_9": "-Dnine=two words",
}


def read_yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


@pytest.mark.parametrize(
    ("arguments", "program"),
    [
        ([], ["sparkmirror", "--help"]),
        (["run", "/etc/sparkmirror/mm2.properties"], ["sparkmirror", "run", "/etc/sparkmirror/mm2.properties"]),
        (["--help"], ["sparkmirror", "--help"]),
        (["master"], ["python3", "-m", "sparkmirror.mirror.engine.standalone", "master"]),
        (
            ["worker", "spark://m:7077"],
            ["python3", "-m", "sparkmirror.mirror.engine.standalone", "worker", "spark://m:7077"],
        ),
        (["health", "-o", "json"], ["sparkmirror", "status", "/f", "--check", "-o", "json"]),
    ],
)
def test_what_is_run_by_the_first_argument(arguments: list[str], program: list[str]) -> None:
    assert entrypoint.command(arguments, {"SPARKMIRROR_FILE": "/f"}) == program


def test_an_executor_gets_what_its_driver_has_set() -> None:
    program = entrypoint.command(["executor"], EXECUTOR)
    assert program[:5] == ["/opt/java/bin/java", "-Dnine=two words", "-Dten=10", "-Xms640m", "-Xmx640m"]
    assert program[program.index("-cp") + 1] == "/opt/spark/conf:/opt/spark/jars/*:."
    assert program[program.index("--executor-id") + 1] == "7"
    assert program[program.index("--podName") + 1] == "mirror-exec-7"


def test_an_executor_that_nobody_has_told_anything() -> None:
    with pytest.raises(KeyError, match="SPARK_DRIVER_URL"):
        entrypoint.command(
            ["executor"], {name: value for name, value in EXECUTOR.items() if name != "SPARK_DRIVER_URL"}
        )


def test_a_driver_binds_to_its_pods_address() -> None:
    told = ["--properties-file", "/opt/spark/conf/spark.properties", "local:///opt/sparkmirror/job.py", "run", "f"]
    program = entrypoint.command(
        ["driver", *told], {"SPARK_HOME": "/opt/spark", "SPARK_DRIVER_BIND_ADDRESS": "10.0.0.1"}
    )
    assert program[0] == "/opt/spark/bin/spark-submit"
    assert "spark.driver.bindAddress=10.0.0.1" in program
    assert program[-7:] == ["--deploy-mode", "client", *told]


def test_the_page_tells_what_is_left_out() -> None:
    kinds = (*leave_out.OF_SPARK, leave_out.of_other_systems("aarch64"), leave_out.OF_ALL_SYSTEMS)
    rows = [f"| {kind.what} | {kind.why} |" for kind in (*kinds, *leave_out.OF_PACKAGES, *leave_out.OF_JAVA)]
    assert [row for row in rows if row not in LEFT_OUT] == []


def test_what_executors_on_kubernetes_need_stays() -> None:
    patterns = [pattern for kind in leave_out.OF_SPARK for pattern in kind.patterns]
    for jar in (
        "jars/spark-kubernetes_2.13-4.3.0.jar",
        "jars/kubernetes-client-7.6.1.jar",
        "jars/kubernetes-model-core-7.6.1.jar",
        "jars/arrow-vector-19.0.0.jar",
        "jars/pickle-1.5.jar",
    ):
        assert [pattern for pattern in patterns if Path(jar).match(pattern)] == []


def test_users_and_places_are_the_pages() -> None:
    assert re.findall(r"^USER (.*)$", DOCKERFILE, re.M) == ["10001"]
    (volumes,) = re.findall(r"^VOLUME \[(.*)\]$", DOCKERFILE, re.M)
    (ports,) = re.findall(r"^EXPOSE (.*)$", DOCKERFILE, re.M)
    told = [
        "10001",
        *re.findall(r'"([^"]+)"', volumes),
        *ports.split(),
        "SPARKMIRROR_FILE",
        "local:///opt/sparkmirror/job.py",
    ]
    assert [word for word in told if f"`{word}`" not in PAGE] == []


def test_nothing_of_the_image_is_run_by_a_shell() -> None:
    final = DOCKERFILE[DOCKERFILE.rindex("FROM ") :]
    assert re.findall(r"^(?:ENTRYPOINT|CMD|HEALTHCHECK .*?CMD) (.)", final, re.M) == ["[", "["]


def test_the_composed_ports_are_the_pages_and_local() -> None:
    services = read_yaml(DOCKER / "compose.yaml")["services"]
    ports = [port for service in services.values() for port in service["ports"]]
    assert all(port.startswith("127.0.0.1:") for port in ports)
    assert [port for port in ports if f"`localhost:{port.split(':')[1]}`" not in PAGE] == []


def test_prometheus_asks_as_the_sample_does() -> None:
    sample, ours = (
        read_yaml(path)
        for path in (ROOT / "deploy/prometheus/prometheus.yml", DOCKER / "prometheus" / "prometheus.yml")
    )
    assert ours["rule_files"] == sample["rule_files"]
    assert ours["global"] == sample["global"]
    (job,), (sampled,) = ours["scrape_configs"], sample["scrape_configs"]
    labels = {rule["target_label"]: rule["replacement"] for rule in job["relabel_configs"] if "regex" not in rule}
    assert labels == sampled["static_configs"][0]["labels"]
    assert [rule for rule in job["relabel_configs"] if "regex" in rule] == sampled["relabel_configs"]
    assert job["job_name"] == sampled["job_name"]
    copied = (DOCKER / "prometheus" / "Dockerfile").read_text()
    assert all(f"deploy/prometheus/{name}" in copied for name in ours["rule_files"])


@contextmanager
def answering(status: int) -> Iterator[int]:
    """A server with this answer to each request; its port."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/health" else 404)
            self.end_headers()
            self.wfile.write(b"told")

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Answer)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1), (401, None), (404, None)])
def test_the_process_at_work_tells_its_health(status: int, code: int | None) -> None:
    with answering(status) as port:
        assert entrypoint.told_health(port) == code


def test_where_nothing_listens_the_status_tells_the_health() -> None:
    with answering(200) as port:
        pass
    assert entrypoint.told_health(port) is None


def test_the_lock_has_what_is_tested_of_each_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    constraints = (ROOT / "constraints.txt").read_text("utf-8").splitlines()[1:]
    tested = {
        str(canonicalize_name(name)): version for name, _, version in (line.partition("==") for line in constraints)
    }
    base, of_spark = locked("base"), {"pyspark", "py4j"}
    asked = {"base": project["dependencies"], **{e: project["optional-dependencies"][e] for e in lock_hashes.EXTRAS}}
    for extra, requirements in asked.items():
        versions = locked(extra)
        known = {canonicalize_name(Requirement(text).name) for text in requirements}
        assert known <= versions.keys() | base.keys(), f"make lock: {extra}"
        assert extra == "base" or not versions.keys() & base.keys()
        assert {name: tested[name] for name in versions.keys() - of_spark} == {
            name: version for name, version in versions.items() if name not in of_spark
        }, f"make lock: {extra}"
    assert re.search(r"^ARG SPARK_VERSION=(.*)$", DOCKERFILE, re.M)[1] == locked("spark")["pyspark"]  # type: ignore[index]
    assert {"build", "hatchling", "setuptools", "wheel"} <= locked("build").keys()
    assert {path.stem for path in lock_hashes.LOCK.iterdir()} == {"base", "build", *lock_hashes.EXTRAS}


def locked(group: str) -> dict[str, str]:
    """The versions of a file of the lock, each of which has a hash, and no place."""
    text = (lock_hashes.LOCK / f"{group}.txt").read_text("utf-8").replace(" \\\n", "")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.+!]+( +--hash=sha256:[0-9a-f]{64})+", line) for line in lines)
    return dict(line.partition(" ")[0].split("==") for line in lines)


def test_pip_installs_only_what_has_a_hash_or_was_built_here() -> None:
    told = re.findall(r"pip (?:install|wheel) [^&;\n]*", DOCKERFILE.replace("\\\n", " "))
    others = [words for words in told if "--require-hashes" not in words and "--no-index" not in words]
    assert [words.split()[-1] for words in others] == ['"$@"', "/src"]  # Spark, and sparkmirror
    assert all("--no-build-isolation" in words for words in others)
    assert "set -- --no-deps --require-hashes --requirement /lock/spark.txt" in DOCKERFILE


def test_jars_keep_the_natives_of_their_own_system(tmp_path: Path) -> None:
    (tmp_path / "jars").mkdir()
    jar = tmp_path / "jars" / "zstd-jni-1.5.7-7.jar"
    mine = ["linux/amd64/libzstd.so", "META-INF/native/linux64/l.so", "org/Linux/x86_64/s.so", "a/B.class"]
    others = ["linux/aarch64/libzstd.so", "win/amd64/z.dll", "darwin/x86_64/z.dylib", "org/Linux/x86_64-musl/s.so"]
    with zipfile.ZipFile(jar, "w") as archive:
        for name in mine + others:
            archive.writestr(name, name)
    leave_out.thin_out(tmp_path, leave_out.OF_ALL_SYSTEMS, leave_out.OWN["x86_64"])
    with zipfile.ZipFile(jar) as archive:
        assert {name: archive.read(name).decode() for name in archive.namelist()} == {name: name for name in mine}
    leave_out.thin_out(tmp_path, leave_out.OF_ALL_SYSTEMS, leave_out.OWN["aarch64"])
    with zipfile.ZipFile(jar) as archive:
        assert archive.namelist() == ["a/B.class"]
    assert list(tmp_path.rglob("*")) == [tmp_path / "jars", jar]


@pytest.mark.parametrize(
    ("words", "known"),
    [
        ("The Apache Software License, Version 2.0", "Apache-2.0"),
        ("http://www.apache.org/licenses/LICENSE-2.0.html", "Apache-2.0"),
        ("GPL2 w/ CPE", "GPL-2.0-only WITH Classpath-exception-2.0"),
        ("http://www.eclipse.org/org/documents/edl-v10.php", "BSD-3-Clause"),
        ("https://opensource.org/license/bsd-3-clause", "BSD-3-Clause"),
        ("BSD", "BSD"),
        ("Apache-2.0 OR BSD-3-Clause", "Apache-2.0 OR BSD-3-Clause"),
        ("CDDL + GPLv2 with classpath exception", "CDDL + GPLv2 with classpath exception"),
    ],
)
def test_licences_get_spdxs_ids(words: str, known: str) -> None:
    assert licence_names.identified(words) == known


def test_licences_are_ids_names_or_an_expression() -> None:
    assert licence_names.listed(["MIT", "", "MIT"]) == [{"license": {"id": "MIT"}}]
    assert licence_names.listed(["A OR B"]) == [{"expression": "A OR B"}]
    assert licence_names.listed(["ours", "MIT"]) == [{"license": {"id": "MIT"}}, {"license": {"name": "ours"}}]


def a_jar(path: Path, entries: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in entries.items():
            archive.writestr(name, text)
    return path


def test_a_jar_says_what_it_is(tmp_path: Path) -> None:
    files = "META-INF/maven/io.netty/netty-x/pom"
    told = {
        f"{files}.properties": "",
        f"{files}.xml": "<licenses><license><name>Apache License, Version 2.0</name></license></licenses>",
        "META-INF/maven/other/shaded/pom.properties": "",
    }
    part = jar_facts.component(a_jar(tmp_path / "netty-x-4.2.13.Final-linux-x86_64.jar", told))
    assert part["purl"] == "pkg:maven/io.netty/netty-x@4.2.13.Final?classifier=linux-x86_64"
    assert (part["group"], part["licenses"]) == ("io.netty", [{"license": {"id": "Apache-2.0"}}])
    licences = "http://www.eclipse.org/legal/epl-2.0, https://www.gnu.org/so\r\n ftware/classpath/license.html"
    manifest = {"META-INF/MANIFEST.MF": f"Bundle-License: {licences}\r\n"}
    part = jar_facts.component(a_jar(tmp_path / "xz-1.12.jar", manifest))
    assert part["purl"] == "pkg:maven/org.tukaani/xz@1.12"
    assert [one["license"] for one in part["licenses"]] == [{"id": "EPL-2.0"}, {"name": licence_names.CLASSPATH}]
    apache = "Apache License\n  Version 2.0, January 2004\n http://example.com/licenses/\n TERMS AND CONDITIONS\n"
    text = {"META-INF/LICENSE": f"\n   {apache}"}
    part = jar_facts.component(a_jar(tmp_path / "log4j-1.2-api-2.25.4.jar", text))
    assert part["purl"] == "pkg:maven/org.apache.logging.log4j/log4j-1.2-api@2.25.4"
    assert part["licenses"] == [{"license": {"id": "Apache-2.0"}}]
    part = jar_facts.component(a_jar(tmp_path / "vertx-y-4.5.26.jar", {"META-INF/maven/io.vertx/vertx-y/pom.xml": ""}))
    assert part["licenses"] == [{"expression": "Apache-2.0 OR EPL-2.0"}]
    assert "licenses" not in jar_facts.component(a_jar(tmp_path / "unknown-1.jar", {}))


def a_root(directory: Path) -> Path:
    for name in ("etc", "var/lib/dpkg", "usr/share/doc/libk", "java", "spark/jars"):
        (directory / name).mkdir(parents=True)
    (directory / "etc/os-release").write_text('ID=debian\nVERSION_ID="12"\n')
    (directory / "var/lib/dpkg/status").write_text(
        "Package: libk\nStatus: install ok installed\nArchitecture: arm64\nSource: krb (1.0)\nVersion: 1:1.20+x~1\n\n"
        "Package: gone\nStatus: deinstall ok config-files\nArchitecture: arm64\nVersion: 1\n"
    )
    (directory / "usr/share/doc/libk/copyright").write_text("License: Expat\n text\nLicense: GPL-2+\n")
    release = 'JAVA_VERSION="17.0.19"\nDEBIAN_PACKAGE="openjdk-17-jdk-headless 17.0.19+10-1 arm64"\n'
    (directory / "java/release").write_text(release)
    a_jar(directory / "spark/jars/xz-1.12.jar", {})
    return directory


def test_the_bill_names_debians_packages_and_java(tmp_path: Path) -> None:
    root = a_root(tmp_path)
    bill = sbom.bill(root / "spark", root / "java", root)
    parts = {part["name"]: part for part in bill["components"]}
    assert parts["libk"]["purl"] == "pkg:deb/debian/libk@1%3A1.20%2Bx~1?arch=arm64&distro=debian-12&upstream=krb"
    assert [one["license"]["name"] for one in parts["libk"]["licenses"]] == ["Expat", "GPL-2+"]
    assert "gone" not in parts
    java = "pkg:deb/debian/openjdk-17-jdk-headless@17.0.19%2B10-1?arch=arm64&distro=debian-12&upstream=openjdk-17"
    assert parts["openjdk"]["purl"] == java
    assert parts["debian"]["type"] == "operating-system"
    assert parts["pyspark"]["purl"].startswith("pkg:pypi/pyspark@")


def test_the_same_parts_make_the_same_bill_and_others_another_number(tmp_path: Path) -> None:
    root = a_root(tmp_path)
    bills = [sbom.bill(root / "spark", root / "java", root) for _ in range(2)]
    assert json.dumps(bills[0]) == json.dumps(bills[1])
    assert re.fullmatch(r"urn:uuid:[0-9a-f-]{36}", bills[0]["serialNumber"])
    a_jar(root / "spark/jars/tink-1.20.0.jar", {})
    assert sbom.bill(root / "spark", root / "java", root)["serialNumber"] != bills[0]["serialNumber"]


def test_every_part_of_the_bill_is_one_that_others_know(tmp_path: Path) -> None:
    root = a_root(tmp_path)
    parts = sbom.bill(root / "spark", root / "java", root)["components"]
    assert len({part["bom-ref"] for part in parts}) == len(parts)
    kinds = {re.match(r"pkg:(\w+)/", part["purl"])[1] for part in parts if "purl" in part}  # type: ignore[index]
    assert kinds == {"deb", "maven", "pypi"}


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("us-east-1", "012345678910"), "012345678910 is no region, the account id comes first"),
        (("12345", "us-east-1"), "12345 is no account id, which has twelve digits"),
    ],
)
def test_the_builds_arguments_in_the_wrong_order(arguments: tuple[str, ...], line: str) -> None:
    done = subprocess.run(
        [DOCKER / "build_images.sh", *arguments], capture_output=True, text=True, timeout=20, check=False
    )
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert line in done.stderr
