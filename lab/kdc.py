"""A private Kerberos KDC, so that brokers on this machine can ask for tickets.

The KDC is MIT's, as Debian packages it. It needs the programs from krb5-kdc and krb5-admin-server, and no rights:
realm, keys and ports are private to it, on 127.0.0.1.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from typing import TYPE_CHECKING, Self

from sparkmirror.demo.ports import free_ports
from sparkmirror.demo.spawn import spawn
from sparkmirror.errors import SetupError

if TYPE_CHECKING:
    from pathlib import Path

REALM = "SPARKMIRROR.TEST"
BROKER = f"kafka/127.0.0.1@{REALM}"
"""Principal of every broker on this machine."""

START_S = 20.0
COMMAND_S = 30.0
_POLL_S = 0.05
_PLACES = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"))
_PROGRAMS = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")

_KRB5_CONF = """\
[libdefaults]
 default_realm = {realm}
 dns_lookup_kdc = false
 dns_lookup_realm = false
 dns_canonicalize_hostname = false
 rdns = false
 udp_preference_limit = 1
[realms]
 {realm} = {{
  kdc = 127.0.0.1:{port}
 }}
"""

_KDC_CONF = """\
[kdcdefaults]
 kdc_listen = 127.0.0.1:{port}
 kdc_tcp_listen = 127.0.0.1:{port}
[realms]
 {realm} = {{
  database_name = {directory}/principals
  key_stash_file = {directory}/stash
  acl_file = {directory}/acl
  max_life = {life_s}s
  supported_enctypes = aes256-cts-hmac-sha1-96:normal
 }}
[logging]
 kdc = FILE:{directory}/kdc.log
"""


def missing_programs() -> str:
    """Return the KDC programs that this machine lacks, and how to get them.

    Empty if nothing is missing.
    """
    lacking = [name for name in _PROGRAMS if _program(name) is None]
    install = "sudo apt-get install krb5-kdc krb5-admin-server krb5-user"
    return f"there is no {', '.join(lacking)} here; type: {install}" if lacking else ""


class Kdc:
    """One realm, kept in `directory`.

    As a context the KDC runs, and is killed at the end. It dies with this process. Tickets live for `life_s` seconds.
    Clients, and Java with `jvm_options`, find the KDC by the file `krb5_conf`.
    """

    def __init__(self, directory: Path, *, life_s: int = 3600) -> None:
        self.directory = directory.absolute()
        self.krb5_conf = self.directory / "krb5.conf"
        self.jvm_options = (f"-Djava.security.krb5.conf={self.krb5_conf}",)
        (self.port,) = free_ports(1)
        self._life_s = life_s
        self._running: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables for programs that work in this realm."""
        return {**os.environ, "KRB5_CONFIG": str(self.krb5_conf), "KRB5_KDC_PROFILE": str(self.directory / "kdc.conf")}

    def __enter__(self) -> Self:
        if lacking := missing_programs():
            raise SetupError(lacking)
        self.directory.mkdir(parents=True, exist_ok=True)
        named = {"realm": REALM, "port": self.port, "directory": self.directory, "life_s": self._life_s}
        self.krb5_conf.write_text(_KRB5_CONF.format(**named))
        (self.directory / "kdc.conf").write_text(_KDC_CONF.format(**named))
        self._do("kdb5_util", "create", "-r", REALM, "-s", "-P", "of-the-database")
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        """Start the KDC, or start it again, and wait until it serves.

        Raises SetupError.
        """
        log = self.directory / "output.log"
        command = [_program("krb5kdc") or "krb5kdc", "-n", "-r", REALM]
        self._running = spawn(command, output=log, environment=self.environment)
        deadline = time.monotonic() + START_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                if self._running.poll() is not None or time.monotonic() > deadline:
                    raise SetupError(f"the KDC does not serve; {log} says: {log.read_text()[-500:]}") from None
                time.sleep(_POLL_S)

    def kill(self) -> None:
        """Kill the KDC (SIGKILL); return when the process has ended."""
        if self._running is not None:
            self._running.kill()
            self._running.wait()

    def pause(self) -> None:
        """Freeze the KDC (SIGSTOP): connections are taken, nothing answers."""
        if self._running is not None:
            self._running.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused KDC continue (SIGCONT)."""
        if self._running is not None:
            self._running.send_signal(signal.SIGCONT)

    def keytab(self, principal: str, *, name: str = "") -> Path:
        """Create the principal, or give it new keys, and write them to a keytab file.

        The file is called `name`, or by default after the principal. Returns the file's path.
        """
        path = self.directory / (name or f"{principal.partition('@')[0].replace('/', '-')}.keytab")
        path.unlink(missing_ok=True)
        if "Principal:" not in self.administer(f"getprinc {principal}"):
            self.administer(f"addprinc -randkey +requires_preauth {principal}")
        self.administer(f"ktadd -k {path} {principal}")
        return path

    def administer(self, query: str) -> str:
        """Return `kadmin.local`'s answer to one of its commands."""
        return self._do("kadmin.local", "-r", REALM, "-q", query)

    def tickets(self, principal: str, keytab: Path, cache: Path, *, life_s: int = 0) -> Path:
        """Get tickets into the file `cache` by `kinit`, with a keytab."""
        shorter = ["-l", f"{life_s}s"] if life_s else []
        self._do("kinit", "-c", f"FILE:{cache}", "-k", "-t", str(keytab), *shorter, principal)
        return cache

    def _do(self, name: str, *arguments: str) -> str:
        """Run a realm program; return its output.

        Raises SetupError.
        """
        done = subprocess.run(
            [_program(name) or name, *arguments],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
        )
        if done.returncode:
            raise SetupError(f"{name} failed: {' '.join(done.stderr.split())}")
        return done.stdout


def _program(name: str) -> str | None:
    return shutil.which(name, path=_PLACES)
