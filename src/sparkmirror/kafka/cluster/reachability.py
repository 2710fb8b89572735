"""Reasons for which a cluster can't be reached, or refuses this client."""

from __future__ import annotations

import socket
from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import Any, TypeVar

from sparkmirror.config.model import ClusterConfig
from sparkmirror.errors import ClusterUnreachable
from sparkmirror.kafka.cluster.client import addresses, dial
from sparkmirror.kafka.wire.rpc import AccessRefused

_Answer = TypeVar("_Answer")


def within(timeout_s: float, question: Callable[..., _Answer], *args: Any, **options: Any) -> _Answer:
    """Ask in a separate thread, for at most `timeout_s`.

    Looking up a host's name has no bound of its own.
    """
    outcome: Future[_Answer] = Future()

    def ask() -> None:
        try:
            outcome.set_result(question(*args, **options))
        except BaseException as error:  # raised again in the caller's thread
            outcome.set_exception(error)

    Thread(target=ask, name="cluster-admin", daemon=True).start()
    return outcome.result(timeout_s)


def check_access(config: ClusterConfig, timeout_s: float) -> None:
    """Raise `ClusterUnreachable` if every broker refuses this client.

    Asking again does not help then.
    """
    if not config.encrypted and not config.signs_in:
        return
    refusals: list[str] = []
    for address in addresses(config):
        try:
            dial(config, address, config.client_id, timeout_s).close()
        except AccessRefused as error:
            refusals.append(str(error))
        except ConnectionError:
            return  # a broker that is down may still come up
        else:
            return
    raise ClusterUnreachable(f"cluster {config.alias} can't be reached at {'; '.join(refusals)}")


def why_unreachable(config: ClusterConfig, timeout_s: float) -> str:
    """Find what is wrong with `bootstrap.servers`; return the last server's fault."""
    each_s = timeout_s / len(config.bootstrap_servers)
    reasons = []
    for server in config.bootstrap_servers:
        host, _, port = server.rpartition(":")
        try:
            within(each_s, _knock, host.strip("[]"), int(port), each_s)
        except ConnectionRefusedError:
            reasons.append("connection refused; check bootstrap.servers and that the brokers run")
        except socket.gaierror:
            reasons.append(f"host {host} is not known; check bootstrap.servers")
        except TimeoutError:
            reasons.append("no answer; check bootstrap.servers and the firewall")
        except ValueError:
            reasons.append(f"{server!r} is not host:port")
        except OSError as problem:
            reasons.append(one_line(problem))
        else:
            reasons.append(
                f"it accepts connections but doesn't answer as a broker with "
                f"security.protocol={config.security_protocol}; check the port and security.protocol"
            )
    return reasons[-1]


def _knock(host: str, port: int, timeout_s: float) -> None:
    socket.create_connection((host, port), timeout_s).close()


def one_line(error: BaseException) -> str:
    """Return an error's words in one line, or else the error's kind."""
    return " ".join(str(error).split()) or type(error).__name__
