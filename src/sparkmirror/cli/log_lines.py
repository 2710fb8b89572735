"""Log lines without control characters: names come from clusters and clients, and must not write lines of their own."""

from __future__ import annotations

import logging
import re

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def plain(text: str) -> str:
    """`text` in one line, with control characters as Python writes them: `\\n`, `\\x1b`."""
    return _CONTROL.sub(lambda found: repr(found[0])[1:-1], text)


class PlainLines(logging.Filter):
    """A filter that lets all records through, each as one line; what follows of a traceback is indented."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Take out what is no text."""
        record.msg, record.args = plain(record.getMessage()), None
        if record.exc_info:
            lines = logging.Formatter().formatException(record.exc_info).split("\n")
            record.exc_text = "\n".join(f"  {plain(line)}" for line in lines)
        return True
