"""AWS as moto plays it, in a process of its own, and clients of it."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
from tests.deploy import programs

from sparkmirror.demo.ports import free_ports
from sparkmirror.demo.spawn import spawn

REGION = "us-east-1"
PROGRAMS = ("moto[server]==5.2.5", "cfn-lint==1.58.0", "awscli==1.46.3")
START_S = 60
ACCOUNT = {"AWS_ACCESS_KEY_ID": "played", "AWS_SECRET_ACCESS_KEY": "played", "AWS_DEFAULT_REGION": REGION}


class PlayedAws:
    """Its address, and the programs that came with it."""

    def __init__(self, url: str, programs: Path) -> None:
        self.url = url
        self._programs = programs

    def client(self, service: str) -> Any:
        """One of boto3's."""
        return boto3.client(
            service,
            endpoint_url=self.url,
            region_name=REGION,
            aws_access_key_id=ACCOUNT["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=ACCOUNT["AWS_SECRET_ACCESS_KEY"],
        )

    def shell(self, script: str, directory: Path) -> subprocess.CompletedProcess[str]:
        """Run it with the AWS CLI on the path; it ends at the first command that fails."""
        home = directory / "home"
        home.mkdir(exist_ok=True)
        return subprocess.run(
            ["bash", "-euo", "pipefail"],
            input=script,
            cwd=directory,
            env={
                **ACCOUNT,
                "PATH": f"{self._programs}:{os.defpath}",
                "HOME": str(home),
                "AWS_ENDPOINT_URL": self.url,
                "AWS_PAGER": "",
            },
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )


@contextlib.contextmanager
def played_aws(directory: Path) -> Iterator[PlayedAws]:
    """Start it; it knows nothing at first, and forgets everything at the end."""
    installed = programs.python_programs(*PROGRAMS)
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    process = spawn(
        [str(installed / "moto_server"), "-H", "127.0.0.1", "-p", str(port)],
        output=directory / "moto.log",
        environment={"PATH": os.defpath, "HOME": str(directory)},
    )
    try:
        deadline = time.monotonic() + START_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert time.monotonic() < deadline, (directory / "moto.log").read_text()
                time.sleep(0.2)
        yield PlayedAws(url, installed)
    finally:
        process.terminate()
        process.wait(20)
