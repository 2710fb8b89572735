"""The end of `docs/strimzi.md`: the table of fields.

`python -m tools.strimzi_page` prints it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from sparkmirror.config.formats.strimzi_fields import FIELDS, OPERATED, StrimziField
from sparkmirror.config.formats.strimzi_security import OAUTH_IDLE, OF_TYPES

_FIELDS_HEAD = """\
## Fields

Fields of `spec`, of both layouts unless one is named. A warning names each field without effect in a file, and each
that Strimzi doesn't have; fields below one without effect are ignored.

"""

_OPERATED_HEAD = """\
[The operator](deploy/operator.md) uses more of these fields:

| field | under the operator |
|---|---|
"""

_AUTHENTICATION_HEAD = """
Below `tls` there is `trustedCertificates`, each with `secretName` and `certificate` or `pattern`. Below
`authentication` there are, besides `type`:

| `type` | fields | effect |
|---|---|---|
"""
_A_ROW = 8
"""Most fields of authentication in a row."""


def page() -> str:
    return "".join(
        head + "\n".join(rows) + "\n"
        for head, rows in (
            (_FIELDS_HEAD, _rows()),
            (_OPERATED_HEAD, _operated()),
            (_AUTHENTICATION_HEAD, _authentication()),
        )
    )


def _rows() -> Iterator[str]:
    """A table for each effect."""
    for effect in dict.fromkeys(field.effect for field in FIELDS):
        yield f"| {effect} | |\n|---|---|"
        alike = (field for field in FIELDS if field.effect == effect)
        for words, fields in groupby(alike, lambda field: field.words):
            yield f"| {'; '.join(_by_version(fields))} | {words} |"
        yield ""


def _by_version(fields: Iterator[StrimziField]) -> Iterator[str]:
    for versions, alike in groupby(fields, lambda field: field.versions):
        yield _names(field.path for field in alike) + (f" ({versions})" if versions else "")


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _operated() -> Iterator[str]:
    for words, paths in groupby(OPERATED, OPERATED.__getitem__):
        yield f"| {_names(paths)} | {words} |"


def _authentication() -> Iterator[str]:
    for fields, kinds in groupby(OF_TYPES, OF_TYPES.__getitem__):
        named = _names(kinds)
        for first in range(0, len(fields), _A_ROW):
            yield f"| {named} | {_names(fields[first : first + _A_ROW])} | honoured |"
    for words, idle in groupby(OAUTH_IDLE, OAUTH_IDLE.__getitem__):
        yield f"| `oauth` | {_names(idle)} | no effect: {words} |"


if __name__ == "__main__":
    print(page(), end="")
