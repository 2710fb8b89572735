"""podman with storage and settings of the tests' own, installed where it is missing; and Debian as a base for images.

No registry is asked for an image: Debian comes from its packages, once, and stays in the cache.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from sparkmirror.demo.cache import cache_root, locked

ROOT = Path(__file__).parents[2]
BASE = "localhost/debian:12-slim"
"""The name without its registry is the one in the Dockerfile."""
BUILD_S = 1800
COMMAND_S = 120
SHELLS = ("/usr/bin/bash", "/usr/bin/dash")

_PACKAGES = (
    "podman",
    "runc",
    "catatonit",
    "debootstrap",
    "golang-github-containernetworking-plugin-dnsname",
    "dnsmasq-base",
    "iptables",
    "iproute2",
)
_CACHE = cache_root() / "images"
_AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")

# Without a service manager, without the right to raise limits, whatever cgroups there are
_CONTAINERS = """
[containers]
default_ulimits = ["nofile=20000:20000", "nproc=30000:30000"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
image_default_format = "docker"
[network]
network_config_dir = "{cache}/networks"
"""
_STORAGE = """
[storage]
driver = "overlay"
graphroot = "{cache}/storage"
runroot = "{cache}/run"
"""
_FILES = {
    "CONTAINERS_CONF": _CONTAINERS,
    "CONTAINERS_STORAGE_CONF": _STORAGE,
    "CONTAINERS_REGISTRIES_CONF": 'unqualified-search-registries = ["localhost"]',
}
_NOT_IN_SLIM = ("var/cache/apt/*", "var/lib/apt/lists/*", "usr/share/doc/*", "usr/share/man/*", "usr/share/locale/*")


@functools.cache
def environment() -> Mapping[str, str]:
    """For podman's commands. The test is skipped where podman isn't there and can't be installed."""
    _install()
    _CACHE.mkdir(parents=True, exist_ok=True)
    (_CACHE / "networks").mkdir(exist_ok=True)
    for name, text in _FILES.items():
        (_CACHE / f"{name}.conf").write_text(text.format(cache=_CACHE))
    return {**os.environ, **{name: str(_CACHE / f"{name}.conf") for name in _FILES}}


def podman(*arguments: str, timeout: float = COMMAND_S, check: bool = True) -> subprocess.CompletedProcess[str]:
    """One command; what went wrong is in the error's text."""
    done = subprocess.run(
        ["podman", *arguments],
        env=environment(),
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    said = done.stdout[-3000:] + done.stderr[-3000:]
    assert not check or done.returncode == 0, f"podman {' '.join(arguments)}: {said}"
    return done


def build(dockerfile: Path, tag: str, *, context: Path = ROOT, no_cache: bool = False, **arguments: str) -> str:
    """Build an image from Debian; `arguments` are the Dockerfile's. Returns what the build printed."""
    base()
    told = [word for name, value in arguments.items() for word in ("--build-arg", f"{name}={value}")]
    fresh = ["--no-cache", "--layers=false"] if no_cache else []  # whose steps nobody will need again
    command = ["build", "--format=docker", "--network=host", *fresh, *told, "--file", str(dockerfile), "--tag", tag]
    done = podman(*command, str(context), timeout=BUILD_S)
    return done.stdout + done.stderr


def exists(image: str) -> bool:
    """Whether there is an image of that name."""
    return podman("image", "exists", image, check=False).returncode == 0


@contextmanager
def container(image: str, *arguments: str, options: Sequence[str] = ()) -> Iterator[str]:
    """A container in the background, on this machine's network; yields its id, and removes it in the end."""
    started = podman("run", "--detach", "--network=host", *options, image, *arguments)
    name = started.stdout.strip()
    try:
        yield name
    except BaseException:
        print(logs(name)[-6000:])
        raise
    finally:
        podman("rm", "--force", "--volumes", "--time=0", name, check=False)


def logs(name: str) -> str:
    """What a container has printed."""
    done = podman("logs", name, check=False)
    return done.stdout + done.stderr


def base() -> None:
    """Make the base image, as Debian's slim ones are, if it isn't there."""
    with locked(_CACHE / "base"):
        if not exists(BASE):
            _import_base()


def _install() -> None:
    if all(map(shutil.which, ("podman", "runc", "catatonit", "debootstrap", "dnsmasq", "iptables", "ip"))):
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        pytest.skip(f"podman is missing, and only root can install it: apt-get install {' '.join(_PACKAGES)}")
    quietly = ["apt-get", "-qq", "-y", "--no-install-recommends", "install", *_PACKAGES]
    subprocess.run(["apt-get", "-qq", "update"], capture_output=True, timeout=300, check=False)
    noninteractive = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(quietly, env=noninteractive, capture_output=True, text=True, timeout=900, check=False)
    if done.returncode:
        pytest.skip(f"podman can't be installed: {done.stderr[-500:]}")


def _import_base() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make an image of Debian from its packages")
    tree, archive = _CACHE / "rootfs", _CACHE / "debian.tar"
    if not archive.exists():
        shutil.rmtree(tree, ignore_errors=True)
        making = ["debootstrap", "--variant=minbase", "bookworm", str(tree), _mirror()]
        done = subprocess.run(making, capture_output=True, text=True, timeout=1200, check=False)
        if done.returncode:
            pytest.skip(f"debootstrap failed: {(done.stdout + done.stderr)[-500:]}")
        for kind in _NOT_IN_SLIM:
            for path in tree.glob(kind):
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        if (
            _AUTHORITIES.exists()
        ):  # for machines behind a proxy that signs: pip in the build trusts whom this one trusts
            (tree / "etc" / "ssl").mkdir(exist_ok=True)
            shutil.copy(_AUTHORITIES, tree / "etc" / "ssl" / "host-ca.crt")
            (tree / "etc" / "pip.conf").write_text("[global]\ncert = /etc/ssl/host-ca.crt\n")
        subprocess.run(["tar", "-C", str(tree), "-cf", str(archive), "."], timeout=300, check=True)
        shutil.rmtree(tree)
    podman("import", "--quiet", str(archive), BASE, timeout=300)


def _mirror() -> str:
    """Where this machine's own packages of Debian 12 come from."""
    asking = ["apt-get", "indextargets", "--format", "$(SITE) $(RELEASE)", "Created-By: Packages"]
    asked = subprocess.run(asking, capture_output=True, text=True, timeout=60, check=True)
    of_bookworm = [line.split()[0] for line in asked.stdout.splitlines() if line.endswith(" bookworm")]
    if not of_bookworm:
        pytest.skip("apt-get knows no packages of Debian 12")
    return of_bookworm[0]
