"""What can be said of the images' files without building them: the entry point, and that files and docs agree."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DOCKER = ROOT / "deploy" / "docker"
PAGE = (ROOT / "docs" / "deploy" / "images.md").read_text()
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


def module(name: str) -> ModuleType:
    """One of the files that the image is built with."""
    spec = importlib.util.spec_from_file_location(name, DOCKER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[name] = loaded  # dataclasses look there
    spec.loader.exec_module(loaded)
    return loaded


@pytest.fixture(scope="module")
def command() -> Any:
    return module("entrypoint").command


def read_yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


@pytest.mark.parametrize(
    ("arguments", "program"),
    [
        ([], ["sparkmirror", "--help"]),
        (["run", "/etc/sparkmirror/mm2.properties"], ["sparkmirror", "run", "/etc/sparkmirror/mm2.properties"]),
        (["--help"], ["sparkmirror", "--help"]),
        (["master"], ["python3", "-m", "sparkmirror.engine.standalone", "master"]),
        (["worker", "spark://m:7077"], ["python3", "-m", "sparkmirror.engine.standalone", "worker", "spark://m:7077"]),
        (["health", "-o", "json"], ["sparkmirror", "status", "/f", "--check", "-o", "json"]),
    ],
)
def test_what_is_run_by_the_first_argument(command: Any, arguments: list[str], program: list[str]) -> None:
    assert command(arguments, {"SPARKMIRROR_FILE": "/f"}) == program


def test_an_executor_gets_what_its_driver_has_set(command: Any) -> None:
    program = command(["executor"], EXECUTOR)
    assert program[:5] == ["/opt/java/bin/java", "-Dnine=two words", "-Dten=10", "-Xms640m", "-Xmx640m"]
    assert program[program.index("-cp") + 1] == "/opt/spark/conf:/opt/spark/jars/*:."
    assert program[program.index("--executor-id") + 1] == "7"
    assert program[program.index("--podName") + 1] == "mirror-exec-7"


def test_an_executor_that_nobody_has_told_anything(command: Any) -> None:
    with pytest.raises(KeyError, match="SPARK_DRIVER_URL"):
        command(["executor"], {name: value for name, value in EXECUTOR.items() if name != "SPARK_DRIVER_URL"})


def test_a_driver_binds_to_its_pods_address(command: Any) -> None:
    told = ["--properties-file", "/opt/spark/conf/spark.properties", "local:///opt/sparkmirror/job.py", "run", "f"]
    program = command(["driver", *told], {"SPARK_HOME": "/opt/spark", "SPARK_DRIVER_BIND_ADDRESS": "10.0.0.1"})
    assert program[0] == "/opt/spark/bin/spark-submit"
    assert "spark.driver.bindAddress=10.0.0.1" in program
    assert program[-7:] == ["--deploy-mode", "client", *told]


def test_the_page_tells_what_is_left_out() -> None:
    left_out = module("leave_out")
    rows = [
        f"| {kind.what} | {kind.why} |"
        for kind in (*left_out.OF_SPARK, left_out.of_other_systems("aarch64"), *left_out.OF_PACKAGES)
    ]
    assert [row for row in rows if row not in PAGE] == []


def test_what_executors_on_kubernetes_need_stays() -> None:
    left_out = module("leave_out")
    patterns = [pattern for kind in left_out.OF_SPARK for pattern in kind.patterns]
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
