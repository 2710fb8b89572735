"""`--metrics-port` and `--metrics-profile`: metrics over HTTP while a mirror runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from sparkmirror.metrics.profile import Profile

if TYPE_CHECKING:
    from sparkmirror.engine.snapshot import Snapshot

_OPTION = "--metrics-port"
_EVERYWHERE = "0.0.0.0"  # noqa: S104 - Prometheus asks from elsewhere, as it does MirrorMaker 2's JMX exporter

MetricsPort = Annotated[
    int | None,
    typer.Option(
        _OPTION,
        min=1,
        max=65_535,
        metavar="PORT",
        help="Answer /metrics, /health and /ready by HTTP, without a password, on this port of every interface.",
    ),
]
MetricsProfiles = Annotated[
    list[Profile] | None,
    typer.Option("--metrics-profile", help="Add MirrorMaker 2's names, as this exporter writes them; repeatable."),
]


@contextmanager
def metrics_served(
    port: int | None, profiles: Collection[Profile] | None, snapshots: Callable[[], Snapshot]
) -> Iterator[None]:
    """Answer while the context is open; without a port do nothing. Raises `ConfigError` where it can't listen."""
    if port is None:
        yield
        return
    from sparkmirror.web.app import build_app  # FastAPI is slow to import
    from sparkmirror.web.listener import Listener, listening, serving

    app = build_app(snapshots, profiles or ())
    with listening(Listener("http", _EVERYWHERE, port), "command line", _OPTION) as bound, serving(app, bound, None):
        yield
