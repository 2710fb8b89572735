"""The product's images as podman builds them here, and stand-ins for those that others publish."""

from __future__ import annotations

import functools
import hashlib
import shutil
from pathlib import Path

from tests.deploy.podman import BASE, ROOT, build, exists

from sparkmirror.demo.cache import cache_root, locked
from sparkmirror.demo.jars import class_path

DOCKER = ROOT / "deploy" / "docker"
KAFKA = "localhost/kafka-stand-in"
PROMETHEUS = "localhost/sparkmirror-prometheus"
ALERTMANAGER = "localhost/alertmanager-stand-in"
PAUSE = "localhost/pause:catatonit"
PUBLISHED_PROMETHEUS = "localhost/prom/prometheus:v3.5.0"
"""The name without its registry is the one in the Dockerfile of Prometheus' image."""

_UPSTREAM = "localhost/prometheus-stand-in"
_KAFKA_FILE = """
ARG BASE
FROM ${BASE}
COPY jars /opt/kafka
COPY stand_in_kafka.py /opt/
ENTRYPOINT ["python3", "/opt/stand_in_kafka.py"]
HEALTHCHECK NONE
"""
_PROMETHEUS_FILE = f"""
FROM {BASE}
RUN apt-get update && apt-get install -y --no-install-recommends prometheus prometheus-alertmanager \\
    && install -d -o nobody /prometheus /alertmanager && rm -r /etc/prometheus/*
WORKDIR /prometheus
USER nobody
ENTRYPOINT ["prometheus"]
CMD ["--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"]
"""
_ALERTMANAGER_FILE = f"""
FROM {_UPSTREAM}
WORKDIR /alertmanager
ENTRYPOINT ["prometheus-alertmanager"]
CMD ["--config.file=/etc/alertmanager/alertmanager.yml", "--storage.path=/alertmanager", "--cluster.listen-address="]
"""

_PAUSE_FILE = """
FROM scratch
COPY catatonit /pause
USER 65535
ENTRYPOINT ["/pause", "-P"]
"""


@functools.cache
def sparkmirror_image() -> str:
    """The name of the image of this checkout; it is built if it isn't there."""
    tag = f"localhost/sparkmirror:{_digest()}"
    with locked(cache_root() / "images" / "sparkmirror"):
        if not exists(tag):
            build(DOCKER / "Dockerfile", tag)
    return tag


def published_prometheus() -> str:
    """Debian's, in the place of prom/prometheus."""
    _built(_UPSTREAM, {"Dockerfile": _PROMETHEUS_FILE})
    return _UPSTREAM


def prometheus_image() -> str:
    """The image with the configuration, over Debian's Prometheus."""
    build(DOCKER / "prometheus" / "Dockerfile", PROMETHEUS, BASE=published_prometheus())
    return PROMETHEUS


def alertmanager_image() -> str:
    """Debian's, in the place of prom/alertmanager."""
    prometheus_image()
    _built(ALERTMANAGER, {"Dockerfile": _ALERTMANAGER_FILE})
    return ALERTMANAGER


def kafka_image(base: str) -> str:
    """The demo's broker over an image that has Java and Python, in the place of apache/kafka."""
    context = cache_root() / "images" / "kafka-context"
    shutil.rmtree(context, ignore_errors=True)
    (context / "jars").mkdir(parents=True)
    for jar in class_path().split(":"):
        shutil.copy(jar, context / "jars")
    shutil.copy(Path(__file__).with_name("stand_in_kafka.py"), context)
    (context / "Dockerfile").write_text(_KAFKA_FILE)
    build(context / "Dockerfile", KAFKA, context=context, BASE=base)
    shutil.rmtree(context)
    return KAFKA


def relabelled(image: str, tag: str) -> str:
    """The same under another tag, with another id, as the next version of it would have."""
    name = f"{image.partition(':')[0]}:{tag}"
    _built(name, {"Dockerfile": f'FROM {image}\nLABEL org.opencontainers.image.version="{tag}"\n'})
    return name


def pause_image() -> str:
    """What holds a pod's namespaces, in the place of registry.k8s.io/pause."""
    if not exists(PAUSE):
        program = shutil.which("catatonit", path="/usr/bin:/usr/libexec/podman")
        assert program is not None, "podman was installed with it"
        shutil.copy(program, _context(PAUSE))
        _built(PAUSE, {"Dockerfile": _PAUSE_FILE})
    return PAUSE


def _built(tag: str, files: dict[str, str]) -> None:
    context = _context(tag)
    for name, text in files.items():
        (context / name).write_text(text)
    build(context / "Dockerfile", tag, context=context)


def _context(tag: str) -> Path:
    """The directory that an image of this name is built from."""
    context = cache_root() / "images" / tag.rpartition("/")[2].replace(":", "-")
    context.mkdir(parents=True, exist_ok=True)
    return context


def _digest() -> str:
    """Of all that goes into the image."""
    copied = [
        ROOT / "pyproject.toml",
        *(ROOT / "src").rglob("*"),
        *DOCKER.glob("*.py"),
        *DOCKER.glob("lock/*.txt"),
        DOCKER / "Dockerfile",
    ]
    digest = hashlib.sha256()
    for path in sorted(path for path in copied if path.is_file() and "__pycache__" not in path.parts):
        digest.update(str(path.relative_to(ROOT)).encode() + path.read_bytes())
    return digest.hexdigest()[:12]
