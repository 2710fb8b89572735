"""JSON as hypothesis makes it up: many small objects whose fields collide, odd numbers, odd texts."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st


def words(text: str) -> list[str]:
    """What stands between blanks."""
    return text.split()


NAMES = ("a", "b", "c", "a.b", "b.c", "", "é", "😀", "Aa", "BB", "long name", "10", "x1", "x17", "x33")
"""Two of them share a hash, and some a bucket."""

NAME = st.sampled_from(NAMES)
PLAIN_NAME = st.sampled_from([name for name in NAMES if name])
INTEGERS = st.integers(-300, 300) | st.sampled_from(
    [2**31 - 1, -(2**31), 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 2**63, 2**64 + 5, -(2**70), 16_777_217, 40_000]
)
REALS = st.sampled_from(
    words("""
0.0 -0.0 0.1 1.5 -2.50 1e5 1E+5 1e-7 123456.789 0.001 0.0001 9999999.0 1.0e7 1e22 1e23 3.4028235e38 3.5e38 1e308 1e999
-1e999 4.9e-324 2e-45 7e-46 2147483647.5 -129.5 9.3e18 1234567890123456789.5 0.30000000000000004
""")
)
TEXTS = st.sampled_from(
    ["", "x", "true", "TRUE", "12", "-7", "+5", "1.5", "1e3", "null", "é", "😀", '"', "\\", "\n", "\x7f", "\u2028", "٣"]
) | st.text(st.characters(codec="utf-8"), max_size=5)


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


SCALARS = st.one_of(
    st.sampled_from(["null", "true", "false"]), INTEGERS.map(str), REALS, TEXTS.map(_written), TEXTS.map(json.dumps)
)


def _object(pairs: list[tuple[str, str]]) -> str:
    return "{" + ", ".join(f"{_written(name)}: {value}" for name, value in pairs) + "}"


DATA = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{','.join(items)}]")
        | st.lists(st.tuples(NAME, inner), max_size=4).map(_object)
    ),
    max_leaves=8,
)
OBJECTS = st.lists(st.tuples(NAME, DATA), max_size=6).map(_object)
SCALAR_OBJECTS = st.lists(st.tuples(NAME, SCALARS), max_size=6).map(_object)

CONTENTS = st.one_of(
    *(OBJECTS.map(str.encode) for _ in range(6)),
    DATA.map(str.encode),
    st.sampled_from([None, b"", b" ", b"null", b"no json", b"\xff\x00", b'{"a":1', b'{"a":007} rest', b'{"a": 1e5}']),
)
"""Keys or values, most of them objects."""
