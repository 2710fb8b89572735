"""A real Prometheus with the deployed configuration, and what it tells."""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from tests.support.deployed import PROMETHEUS
from tests.support.prometheus_programs import fetched

from sparkmirror.demo.ports import free_ports


@contextmanager
def prometheus(directory: Path, *scraped: int) -> Iterator[str]:
    """One with the deployed configuration, but for where and how often it asks. Its URL.

    Rule files that are in the directory already are taken instead of the deployed ones.
    """
    config = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text())
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config["scrape_configs"][0]["static_configs"][0]["targets"] = [f"127.0.0.1:{port}" for port in scraped]
    (directory / "prometheus.yml").write_text(yaml.safe_dump(config))
    for name in config["rule_files"]:
        if not (directory / name).exists():
            shutil.copy(PROMETHEUS / name, directory)
    (port,) = free_ports(1)
    process = subprocess.Popen(
        [
            fetched("prometheus"),
            f"--config.file={directory / 'prometheus.yml'}",
            f"--storage.tsdb.path={directory / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        stdout=subprocess.DEVNULL,
        stderr=(directory / "prometheus.log").open("wb"),
    )
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


def asked(url: str, **parameters: str) -> Any:
    """The data of an answer of Prometheus' interface."""
    with urllib.request.urlopen(f"{url}?{urllib.parse.urlencode(parameters)}", timeout=10) as answer:  # noqa: S310
        return json.load(answer)["data"]
