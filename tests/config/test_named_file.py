"""Files that settings name: no device and no pipe is opened, and no more is read than a store can have."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

import pytest

from sparkmirror.config import ClusterConfig
from sparkmirror.config.credentials import Kerberos, TokenFile
from sparkmirror.config.model import ProviderConfig
from sparkmirror.config.named_file import LARGEST, read_named_file
from sparkmirror.config.providers import resolve
from sparkmirror.errors import ConfigError
from sparkmirror.kafka.cluster.stores import store_bytes
from sparkmirror.kafka.cluster.tickets import check_cache, check_keytab
from sparkmirror.kafka.cluster.tokens import TokenKeeper, keeper
from sparkmirror.kafka.wire.sasl import SaslError

CLUSTER = ClusterConfig(alias="A", bootstrap_servers=())
PROVIDERS = (
    ProviderConfig(name="f", kind="FileConfigProvider"),
    ProviderConfig(name="d", kind="DirectoryConfigProvider"),
)
NO_FILE, LARGE = "it is no regular file", f"it has more than {LARGEST:,} bytes"


@pytest.fixture(params=["/dev/zero", "/dev/stdin", "pipe", "link", "socket", "directory", "large", "a\0b"])
def unfit(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """A path that is not read, and why."""
    kind = str(request.param)
    path = tmp_path / kind.strip("/").replace("/", "-").replace("\0", "")
    if kind.startswith("/dev"):
        return kind, NO_FILE
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to("/dev/zero")
    elif kind == "socket":
        os.mknod(path, 0o140600)
    elif kind == "directory":
        path.mkdir()
    elif kind == "large":
        with path.open("wb") as file:
            file.truncate(LARGEST + 1)
        return str(path), LARGE
    else:
        return kind, "no path has these characters"
    return str(path), NO_FILE


def test_all_that_settings_name(unfit: tuple[str, str]) -> None:
    path, why = unfit
    login = Kerberos("kafka", "a@B", keytab=path, cache=path)
    token: TokenKeeper = keeper(TokenFile(path))
    began, before = time.thread_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for store in ("truststore", "keystore"):
        with pytest.raises(ConfigError, match=why):
            store_bytes(CLUSTER, store, path)
    for read in (token.token, lambda: check_keytab(login), lambda: check_cache(login)):
        with pytest.raises(SaslError, match=why):
            read()
    if "\0" not in path:
        with pytest.raises(ValueError, match=why):
            resolve(f"${{f:{path}:x}}", PROVIDERS)
        with pytest.raises(ValueError, match=LARGE if why == LARGE else "no such file"):
            resolve(f"${{d:{os.path.dirname(path)}:{os.path.basename(path)}}}", PROVIDERS)
    assert time.thread_time() - began < 5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000, "kilobytes"


def test_a_file_of_the_kernel_ends_too(tmp_path: Path) -> None:
    """It has no size of its own, and is a regular file."""
    assert b"self" not in read_named_file("/proc/self/status")[:4]


def test_a_file_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * LARGEST)
    (tmp_path / "b").symlink_to(tmp_path / "a")
    assert len(read_named_file(tmp_path / "b")) == LARGEST
    with pytest.raises(FileNotFoundError):
        read_named_file(tmp_path / "c")
    check_cache(Kerberos("kafka", "a@B", cache=str(tmp_path / "c")))
    check_cache(Kerberos("kafka", "a@B", cache="KEYRING:x"))
