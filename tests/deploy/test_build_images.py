"""build_images.sh as written, by Docker's client: both images are built for amd64 and come back from a registry."""

from __future__ import annotations

import os
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.deploy.container_images import DOCKER, PUBLISHED_PROMETHEUS, published_prometheus, sparkmirror_image
from tests.deploy.podman import BUILD_S, base, environment, podman
from tests.support import mirror_process as mp

from sparkmirror.demo.ports import free_ports

pytestmark = pytest.mark.full

REGISTRY = """
version: 0.1
storage: {{filesystem: {{rootdirectory: {directory}}}}}
http: {{addr: "127.0.0.1:{port}"}}
"""


@contextmanager
def served(*command: str | Path, variables: dict[str, str]) -> Iterator[None]:
    """A server as long as the context is open."""
    process = subprocess.Popen(command, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):  # noqa: S310
            return True
    except OSError:
        return False


def program(name: str, packages: Sequence[str] = ()) -> str:
    """Its path; installed by apt-get where we may."""
    if shutil.which(name) is None and packages and os.geteuid() == 0:
        quietly = ["apt-get", "-qq", "-y", "--no-install-recommends", "install", *packages]
        subprocess.run(quietly, capture_output=True, timeout=600, check=False)
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"there is no {name} here")
    return path


def test_the_images_come_back_from_the_registry(tmp_path: Path) -> None:
    program("docker")
    registry = program("docker-registry", ["docker-registry"])
    base()
    sparkmirror_image()  # so that its layers are there
    podman("tag", published_prometheus(), PUBLISHED_PROMETHEUS)
    (port,) = free_ports(1)
    settings, known, socket = tmp_path / "registry.yml", tmp_path / "registries.conf", tmp_path / "podman.sock"
    settings.write_text(REGISTRY.format(directory=tmp_path / "kept", port=port))
    usual = Path(environment()["CONTAINERS_REGISTRIES_CONF"]).read_text()
    known.write_text(f'{usual}\n[[registry]]\nlocation = "127.0.0.1:{port}"\ninsecure = true\n')
    variables = {**environment(), "CONTAINERS_REGISTRIES_CONF": str(known)}
    mirror, prometheus = names = [
        f"127.0.0.1:{port}/mine/{name}:try" for name in ("sparkmirror", "sparkmirror-prometheus")
    ]
    told = {
        **variables,
        "DOCKER_HOST": f"unix://{socket}",
        "DOCKER_BUILDKIT": "0",
        "DOCKER_CONFIG": str(tmp_path),
        "REGISTRY": f"127.0.0.1:{port}/mine",
        "TAG": "try",
    }
    with (
        served(registry, "serve", settings, variables=variables),
        served("podman", "system", "service", "--time=0", f"unix://{socket}", variables=variables),
    ):
        mp.wait_for(lambda: socket.exists() and answers(f"http://127.0.0.1:{port}/v2/"), 30, "both serve")
        done = subprocess.run(
            [DOCKER / "build_images.sh", "012345678910", "us-east-1"],
            env=told,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=BUILD_S,
            check=False,
        )
        assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
        assert done.stdout.splitlines()[-2:] == names
        podman("rmi", *names)
        for name in names:
            podman("pull", "--tls-verify=false", name, timeout=300)
    try:
        inspected = podman("image", "inspect", "--format", "{{.Architecture}}", *names).stdout
        assert inspected.split() == ["amd64", "amd64"]
        assert "sparkmirror" in podman("run", "--rm", "--network=none", mirror, "--help").stdout
        checking = ("run", "--rm", "--network=none", "--entrypoint=promtool", prometheus, "check", "config")
        checked = podman(*checking, "/etc/prometheus/prometheus.yml")
        assert "SUCCESS" in checked.stdout + checked.stderr
    finally:
        podman("rmi", "--force", *names)


def test_without_arguments_it_says_how() -> None:
    done = subprocess.run([DOCKER / "build_images.sh"], capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 1
    assert "usage: " in done.stderr
    assert "ACCOUNT_ID REGION" in done.stderr
