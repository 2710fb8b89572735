"""Logging to standard error, one line a message."""

from __future__ import annotations

import logging

from rich.console import Console
from rich.logging import RichHandler
from rich.markup import escape

from sparkmirror.cli.log_lines import PlainLines, plain

console = Console(stderr=True, soft_wrap=True)


def set_up_logging(verbose: bool) -> None:
    """Our own messages from INFO (or DEBUG) on; libraries' only when they warn."""
    if console.is_terminal:
        handler: logging.Handler = RichHandler(console=console, show_path=False, log_time_format="%H:%M:%S")
    else:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    handler.addFilter(PlainLines())
    logging.basicConfig(level=logging.WARNING, format="%(message)s", handlers=[handler])
    logging.getLogger("sparkmirror").setLevel(logging.DEBUG if verbose else logging.INFO)


def warn(line: str) -> None:
    """A line that the user should see, though the run goes on."""
    console.print(f"[yellow]warning:[/yellow] {escape(plain(line))}", highlight=False)
