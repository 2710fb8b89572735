"""SPDX's ids for what packages and jars call their licences."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

CLASSPATH = "GPL-2.0-only WITH Classpath-exception-2.0"
APACHE = "Apache-2.0"

_IDS = (
    (r"classpath|gpl2 w/ cpe", CLASSPATH),
    (r"asm\.ow2|antlr\.org", "BSD-3-Clause"),
    (r"apache.*2|^asl 2", APACHE),
    (r"epl\W*2|eclipse public license.*2", "EPL-2.0"),
    (r"edl", "BSD-3-Clause"),
    (r"bsd\W*2\W*clause|simplified bsd", "BSD-2-Clause"),
    (r"0bsd", "0BSD"),
    (r"bsd\W*3|3\W*clause|(new|revised|modified) bsd", "BSD-3-Clause"),
    (r"\bmit\b|mit-license", "MIT"),
    (r"\bisc\b", "ISC"),
    (r"unicode-3", "Unicode-3.0"),
    (r"\bmpl\W*1\.1", "MPL-1.1"),
    (r"\bmpl\W*2|mozilla public license 2", "MPL-2.0"),
    (r"\blgpl\W*2\.1", "LGPL-2.1-only"),
    (r"cc0|publicdomain/zero", "CC0-1.0"),
    (r"python software foundation|\bpsf", "PSF-2.0"),
)
"""EDL is Eclipse's name for BSD's licence with three clauses."""

_SEVERAL = re.compile(r" (or|and|\+) |cddl", re.IGNORECASE)
_EXPRESSION = re.compile(r"[\w.+-]+( (OR|AND|WITH) [\w.+-]+)+")


def identified(words: str) -> str:
    """SPDX's id of a licence, or the words themselves, also if they name several."""
    plain = " ".join(words.split())
    if _SEVERAL.search(plain):
        return plain
    return next((found for pattern, found in _IDS if re.search(pattern, plain, re.IGNORECASE)), plain)


def listed(told: Iterable[str]) -> list[dict[str, Any]]:
    """CycloneDX's `licenses` of what is told, without repetition: ids, names, or the one expression."""
    names = sorted({name for name in told if name})
    if len(names) == 1 and _EXPRESSION.fullmatch(names[0]):
        return [{"expression": names[0]}]
    known = {found for _, found in _IDS} - {CLASSPATH}
    return [{"license": {"id" if name in known else "name": name}} for name in names]
