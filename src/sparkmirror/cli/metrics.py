"""Metrics and the live page over HTTP while a mirror runs.

Configured by `--metrics-port`, `--metrics-profile`, and the listeners of a file.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from sparkmirror.cli.logs import warn
from sparkmirror.config import ClusterConfig, FlowConfig, MirrorConfig
from sparkmirror.config.metrics_settings import HOSTS, HTTPS, LISTENERS
from sparkmirror.kafka.cluster.tls_contexts import server_context
from sparkmirror.look.metrics.profile import Profile
from sparkmirror.values import listener_parts

if TYPE_CHECKING:
    from fastapi import FastAPI, Request

    from sparkmirror.snapshot.history import FlowHistory
    from sparkmirror.snapshot.snapshot import Snapshot
    from sparkmirror.web.browser_guard import Trusted

_OPTION = "--metrics-port"
_EVERYWHERE = "0.0.0.0"  # noqa: S104 - Prometheus asks from another host, as with MirrorMaker 2's JMX exporter

MetricsPort = Annotated[
    int | None,
    typer.Option(
        _OPTION,
        min=1,
        max=65_535,
        metavar="PORT",
        help="Answer /metrics, /health, /ready and the live page by HTTP, without a password, on this port of every"
        " interface.",
    ),
]
MetricsProfiles = Annotated[
    list[Profile] | None,
    typer.Option("--metrics-profile", help="Add MirrorMaker 2's names, as this exporter writes them; repeatable."),
]


@contextmanager
def metrics_served(
    port: int | None,
    profiles: Collection[Profile] | None,
    config: MirrorConfig,
    snapshots: Callable[[], Snapshot],
    tick_age_s: Callable[[], float] = lambda: 0.0,
    flows: Callable[[], Sequence[FlowConfig]] | None = None,
    trusted: Trusted | None = None,
    history: FlowHistory | None = None,
) -> Iterator[None]:
    """Answer on the port and the file's listeners while the context is open.

    Does nothing without a port and without listeners. `flows` returns the flows that the page's buttons can act on,
    where these change during the run; `history` is what the page draws of the past. By the page people may act where
    they signed in, or from this machine. Without `trusted` the file names the hosts. Raises `ConfigError` if a port
    can't be opened, and for users or stores that can't be read.
    """
    told = config.metrics
    if port is None and not told.listeners:
        yield
        return
    from sparkmirror.connect.basic_auth import BasicAuth, Users, read_users  # FastAPI is slow to import
    from sparkmirror.look.metrics.app import build_app
    from sparkmirror.look.page.controls import FlowControls
    from sparkmirror.look.page.router import page_router
    from sparkmirror.web.access import on_loopback
    from sparkmirror.web.browser_guard import trusted_hosts
    from sparkmirror.web.listener import Listener, listening, serving

    def app(may_act: Callable[[Request], bool]) -> FastAPI:
        page = page_router(snapshots, FlowControls(flows or (lambda: config.flows)), may_act, history=history)
        return build_app(snapshots, profiles or (), [page], tick_age_s)

    listeners = [Listener(*listener_parts(text)) for text in told.listeners]
    trusted = trusted or trusted_hosts([*told.hosts, *(listener.host for listener in listeners)], HOSTS.name)
    with ExitStack() as opened:
        if port is not None:
            bound = opened.enter_context(listening(Listener("http", _EVERYWHERE, port), "command line", _OPTION))
            opened.enter_context(serving(app(on_loopback), bound, None, trusted))
        users = read_users(told.jaas_file, config.path) if told.jaas_file else Users({})
        if told.jaas_file and users.warning:
            warn(users.warning)
        guarded = BasicAuth(app((lambda _: True) if users.are_asked else on_loopback), users)
        for listener in listeners:
            tls = _tls(config) if listener.scheme == "https" else None
            bound = opened.enter_context(listening(listener, config.path, LISTENERS.name))
            opened.enter_context(serving(guarded, bound, tls, trusted))
        yield


def page_address(port: int | None, config: MirrorConfig) -> str:
    """Return the address of this process's live page; empty without a page.

    The address is for people on other machines.
    """
    if port is not None:
        return f"http://{socket.gethostname()}:{port}/"
    for text in config.metrics.listeners:
        scheme, host, number = listener_parts(text)
        name = socket.gethostname() if host in ("", _EVERYWHERE, "::") else f"[{host}]" if ":" in host else host
        return f"{scheme}://{name}:{number}/"
    return ""


def _tls(config: MirrorConfig) -> ssl.SSLContext:
    named = HTTPS.removesuffix(".")
    return server_context(
        ClusterConfig(alias=named, bootstrap_servers=(), security_protocol="SSL", ssl=config.metrics.https),
        config.metrics.client_auth,
    )
