"""A Prometheus next to the demo, if Prometheus is installed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from sparkmirror.demo.ports import free_ports
from sparkmirror.demo.spawn import spawn

_CONFIG = """\
global:
  scrape_interval: 5s
scrape_configs:
  - job_name: sparkmirror
    static_configs:
      - targets: ["{target}"]
"""


def start_prometheus(directory: Path, target: str) -> tuple[str, subprocess.Popen[bytes]] | None:
    """Start a Prometheus that scrapes `target`, a `host:port`.

    Returns Prometheus' address and its process, which ends with this process. None if Prometheus isn't installed.
    """
    program = shutil.which("prometheus")
    if program is None:
        return None
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / "prometheus.yml"
    file.write_text(_CONFIG.format(target=target))
    (port,) = free_ports(1)
    command = [
        program,
        f"--config.file={file}",
        f"--storage.tsdb.path={directory / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    return f"http://127.0.0.1:{port}", spawn(command, output=directory / "prometheus.log")
