"""`sparkmirror`: the verbs, and how errors leave the program."""

from __future__ import annotations

import sys

import typer

from sparkmirror import __version__
from sparkmirror.cli.config import config
from sparkmirror.cli.control import pause, resume, throttle
from sparkmirror.cli.demo import demo
from sparkmirror.cli.legacy import legacy
from sparkmirror.cli.losses import losses
from sparkmirror.cli.offsets import offsets
from sparkmirror.cli.pack import pack
from sparkmirror.cli.run import run
from sparkmirror.cli.verify import verify
from sparkmirror.errors import SparkMirrorError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Copy and move Kafka clusters exactly once, with MirrorMaker 2's own configuration, on Spark.",
)
for verb in (run, legacy, config, demo, verify, pause, resume, throttle, losses, pack):
    app.command()(verb)
app.add_typer(offsets, name="offsets")


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(__version__)


def main() -> None:
    """The entry point: an error that a user can meet is one line each, with its exit code."""
    try:
        app()
    except SparkMirrorError as error:
        for line in str(error).splitlines():
            print(f"sparkmirror: {line}", file=sys.stderr)
        sys.exit(error.exit_code)
