"""Logging to standard error, one line a message, as text or JSON."""

from __future__ import annotations

import logging
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.logging import RichHandler
from rich.markup import escape

from sparkmirror.cli.log_lines import JsonLines, NoSettings, PlainLines, TextLines, plain
from sparkmirror.cli.output import Format
from sparkmirror.events import Event

console = Console(stderr=True, soft_wrap=True)
log = logging.getLogger("sparkmirror.cli")

LogFormat = Annotated[
    Format | None,
    typer.Option("--log-format", help="Format of the log; wins over sparkmirror.log.format in the file."),
]
LogFormatAlone = Annotated[Format | None, typer.Option("--log-format", help="Format of the log; text by default.")]
"""Option of the verbs that read no `sparkmirror.log.format`."""


def set_up_logging(verbose: bool, log_format: Format | None = None) -> None:
    """Log sparkmirror's messages from INFO (or DEBUG) on, libraries' from WARNING on.

    The default format is text.
    """
    handler = _json_handler() if log_format is Format.JSON else _text_handler()
    handler.addFilter(NoSettings())
    logging.basicConfig(level=logging.WARNING, format="%(message)s", handlers=[handler])
    logging.getLogger("sparkmirror").setLevel(logging.DEBUG if verbose else logging.INFO)


def _json_handler() -> logging.Handler:
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    return handler


def _text_handler() -> logging.Handler:
    if console.is_terminal:
        handler: logging.Handler = RichHandler(console=console, show_path=False, log_time_format="%H:%M:%S")
    else:
        handler = logging.StreamHandler()
        handler.setFormatter(TextLines())
    handler.addFilter(PlainLines())
    return handler


def use_format(log_format: str) -> None:
    """Continue in the log format that a file asks for.

    Without effect if another program set up the logging.
    """
    ours = [each for each in logging.root.handlers if any(isinstance(kept, NoSettings) for kept in each.filters)]
    if log_format == Format.JSON and ours and not as_json():
        for handler in ours:
            logging.root.removeHandler(handler)
        handler = _json_handler()
        handler.addFilter(NoSettings())
        logging.root.addHandler(handler)


def as_json() -> bool:
    return any(isinstance(handler.formatter, JsonLines) for handler in logging.root.handlers)


def warn(line: str) -> None:
    """Print a line that the operator should see, though the run continues."""
    if as_json():
        log.warning("%s", line, extra=Event.CONFIG_WARNING.extra)
    else:
        console.print(f"[yellow]warning:[/yellow] {escape(plain(line))}", highlight=False)


def tell_progress(line: str) -> None:
    """Print a line about the flows' progress."""
    if as_json():
        log.info("%s", line, extra=Event.PROGRESS.extra)
    else:
        console.print(line, highlight=False, markup=False)


def tell_error(line: str) -> None:
    """Print a line about the reason why the program ends."""
    if as_json():
        log.error("%s", line, extra=Event.FATAL.extra)
    else:
        print(f"sparkmirror: {plain(line)}", file=sys.stderr)
