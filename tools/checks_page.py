"""Generator of `docs/migrate_checks.md` from the checks.

`python -m tools.checks_page > docs/migrate_checks.md` writes the page.
"""

from __future__ import annotations

from collections.abc import Iterator

from sparkmirror.migrate.checks import CHECKS

_HEAD = """\
# Checks before a switch

`sparkmirror migration check FILE` ([migrate.md](migrate.md)) shows a verdict for each, and what to do: `ok`; `warn`:
something may be lost or surprise; `FAIL`: the switch would be refused or undone, or a client would be left out;
`unknown`: no cluster tells.

| check | ok if |
|---|---|
"""


def page() -> str:
    return _HEAD + "".join(f"{row}\n" for row in _rows()) + _FOOT


def _rows() -> Iterator[str]:
    for check in CHECKS:
        yield f"| `{check.id}` | {check.what} |"


_FOOT = "\nThis page is made from the code: `python -m tools.checks_page > docs/migrate_checks.md`.\n"


if __name__ == "__main__":
    print(page(), end="")
