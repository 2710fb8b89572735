"""The option for how old a published status may be."""

from __future__ import annotations

from typing import Annotated

import typer

Stale = Annotated[float, typer.Option("--stale", min=1.0, help="Seconds after which a published status is too old.")]
