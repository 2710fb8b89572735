"""Tables of a notebook's cells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def table(title: str, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table as HTML: numbers to the right, with commas; nothing for None."""
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<table><caption>{escape(title)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f'<td style="text-align: right">{value:,}</td>'
    return f"<td>{escape('' if value is None else str(value))}</td>"
