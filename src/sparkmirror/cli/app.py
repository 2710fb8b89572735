"""`sparkmirror`: the verbs, and the way of errors out of the program."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated

import typer

from sparkmirror import __version__
from sparkmirror.cli.acls import acls
from sparkmirror.cli.clusters import clusters
from sparkmirror.cli.config import config
from sparkmirror.cli.control import pause, resume, retry, throttle
from sparkmirror.cli.convert import convert
from sparkmirror.cli.demo import demo
from sparkmirror.cli.doctor import doctor
from sparkmirror.cli.explain import explain
from sparkmirror.cli.groups import groups
from sparkmirror.cli.legacy import legacy
from sparkmirror.cli.lint import lint
from sparkmirror.cli.log_level import log_level
from sparkmirror.cli.logs import tell_error
from sparkmirror.cli.losses import losses
from sparkmirror.cli.migration import migration
from sparkmirror.cli.offsets import offsets
from sparkmirror.cli.operator import operator
from sparkmirror.cli.output import Format, Output, print_json, print_version
from sparkmirror.cli.pack import pack
from sparkmirror.cli.rewrite_checkpoint import rewrite_checkpoint
from sparkmirror.cli.run import run
from sparkmirror.cli.schemas import schemas
from sparkmirror.cli.serve import serve
from sparkmirror.cli.size import size
from sparkmirror.cli.status import status
from sparkmirror.cli.sync_groups import sync_groups
from sparkmirror.cli.top import top
from sparkmirror.cli.topics import topics
from sparkmirror.cli.verify import verify
from sparkmirror.errors import ConfigError, SparkMirrorError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Copy and move Kafka clusters exactly once, with MirrorMaker 2's own configuration, on Spark.",
    epilog="Exit codes: 0 success, 1 records were not copied or differ, or a check found a fault, 2 a file or the"
    " command line is wrong, 3 a cluster can't be reached or this machine lacks something.",
)


@app.callback()
def _options(
    _: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=print_version, help="Print the version, and exit.")
    ] = False,
) -> None:
    """Declare the options before a verb; `app` has their help."""


def version(output: Output = Format.TEXT) -> None:
    """Print the version.

    Exit codes: 0 always.

    Example: sparkmirror version
    """
    if output is Format.JSON:
        print_json({"version": __version__})
    else:
        typer.echo(__version__)


PANELS: dict[str, tuple[Callable[..., None], ...]] = {
    "Mirror": (run, serve, legacy, operator),
    "Steer a running mirror": (pause, resume, retry, throttle, log_level),
    "Look": (status, top, doctor, explain, groups, clusters, config, lint, verify, version),
    "Set up": (demo, convert, pack, size),
    "Migrate applications": (sync_groups, acls, rewrite_checkpoint),
}
"""Verbs by task, in the order of the help.

`losses`, `schemas`, `migration`, `offsets` and `topics` have verbs of their own.
"""

for panel, verbs in PANELS.items():
    for verb in verbs:
        app.command(rich_help_panel=panel)(verb)
app.add_typer(losses, name="losses", rich_help_panel="Look")
app.add_typer(schemas, name="schemas", rich_help_panel="Look")
app.add_typer(migration, name="migration", rich_help_panel="Migrate applications")
app.add_typer(offsets, name="offsets", rich_help_panel="Migrate applications")
app.add_typer(topics, name="topics", rich_help_panel="Migrate applications")


def main() -> None:
    """Run the program; print each expected error as one line, with its exit code."""
    try:
        app()
    except SparkMirrorError as error:
        told = map(str, error.mistakes) if isinstance(error, ConfigError) else str(error).splitlines()
        for line in told:
            tell_error(line)
        sys.exit(error.exit_code)
