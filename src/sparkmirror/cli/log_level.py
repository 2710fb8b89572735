"""`sparkmirror log-level`: log levels of a running mirror.

The orders go through the control topics.
"""

from __future__ import annotations

from typing import Annotated

import typer

from sparkmirror.cli.loading import Clusters, File, Flow, Secrets, load
from sparkmirror.cli.output import Format, Output
from sparkmirror.cli.telling import tell
from sparkmirror.errors import ConfigError
from sparkmirror.log_levels import LEVELS, PACKAGES, is_settable

_DEFAULT = "DEFAULT"


def log_level(
    file: File,
    package: Annotated[
        str,
        typer.Argument(metavar="PACKAGE", help="A logger: sparkmirror, kafka, or one below, as sparkmirror.pump."),
    ],
    level: Annotated[
        str, typer.Argument(metavar="LEVEL", help=f"{', '.join(LEVELS)}; or default, as when the process was started.")
    ],
    flow: Flow = None,
    clusters: Clusters = None,
    secrets: Secrets = None,
    output: Output = Format.TEXT,
) -> None:
    """Set the level from which on running processes log a package.

    Takes effect within seconds, and lasts until the level is set again.

    Exit codes: 0 the mirror has the command, 2 the file or the command line is wrong, 3 the target can't be reached.

    Example: sparkmirror log-level mm2.properties sparkmirror.pump DEBUG
    """
    if not is_settable(package):
        raise ConfigError(
            f"write {' or '.join(PACKAGES)}, or a logger below one of them", origin="PACKAGE", key=package
        )
    wanted = level.upper()
    if wanted not in (*LEVELS, _DEFAULT):
        raise ConfigError(f"write {', '.join(LEVELS)} or default", origin="LEVEL", key=level)
    said = f"{package} is logged " + ("as when it was started" if wanted == _DEFAULT else f"from {wanted} on")
    asked = None if wanted == _DEFAULT else wanted
    tell(load(file, clusters, secrets=secrets), flow, lambda control: control.log_level(package, asked), said, output)
