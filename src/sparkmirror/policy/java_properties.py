"""Java's named character classes, such as `\\p{Alpha}`, for the library `regex`.

Names and meanings: `java.util.regex.Pattern` and its `CharPredicates`, in Java 17. Each value is the inside of a class,
or a property; both kinds may stand between brackets.
"""

from __future__ import annotations

import re

ASCII = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "ASCII": r"\x00-\x7f",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": r"\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e",
    "Graph": r"\x21-\x7e",
    "Print": r"\x20-\x7e",
    "Blank": r"\x20\t",
    "Cntrl": r"\x00-\x1f\x7f",
    "XDigit": "0-9a-fA-F",
    "Space": r"\x20\t\n\x0b\f\r",
}
"""POSIX classes, which hold only ASCII unless the flag `U` is set."""

HORIZONTAL = r"\x20\t\xa0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000"
VERTICAL = r"\n\x0b\f\r\x85\u2028\u2029"
WORD = "a-zA-Z0-9_"
UNICODE_WORD = r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}"

_IGNORABLE = r"\x00-\x08\x0e-\x1b\x7f-\x9f\p{Cf}"

_JAVA = {
    "LowerCase": r"\p{Lowercase}",
    "UpperCase": r"\p{Uppercase}",
    "Alphabetic": r"\p{Alphabetic}",
    "Ideographic": r"\p{Ideographic}",
    "TitleCase": r"\p{Lt}",
    "Digit": r"\p{Nd}",
    "Defined": r"\P{Cn}",
    "Letter": r"\p{L}",
    "LetterOrDigit": r"\p{L}\p{Nd}",
    "JavaIdentifierStart": r"\p{L}\p{Nl}\p{Sc}\p{Pc}",
    "JavaIdentifierPart": r"\p{L}\p{Nl}\p{Sc}\p{Pc}\p{Nd}\p{Mc}\p{Mn}" + _IGNORABLE,
    "UnicodeIdentifierStart": r"\p{ID_Start}",
    "UnicodeIdentifierPart": r"\p{ID_Continue}" + _IGNORABLE,
    "IdentifierIgnorable": _IGNORABLE,
    "SpaceChar": r"\p{Z}",
    "Whitespace": r"\t-\r\x1c-\x20\u1680\u2000-\u2006\u2008-\u200a\u2028\u2029\u205f\u3000",
    "ISOControl": r"\x00-\x1f\x7f-\x9f",
    "Mirrored": r"\p{Bidi_Mirrored}",
}

_BINARY = {
    "ALPHABETIC": r"\p{Alphabetic}",
    "LETTER": r"\p{L}",
    "IDEOGRAPHIC": r"\p{Ideographic}",
    "LOWERCASE": r"\p{Lowercase}",
    "UPPERCASE": r"\p{Uppercase}",
    "TITLECASE": r"\p{Lt}",
    "WHITE_SPACE": r"\p{White_Space}",
    "WHITESPACE": r"\p{White_Space}",
    "CONTROL": r"\p{Cc}",
    "PUNCTUATION": r"\p{P}",
    "HEX_DIGIT": r"\p{Nd}0-9a-fA-F\uff10-\uff19\uff21-\uff26\uff41-\uff46",
    "HEXDIGIT": r"\p{Nd}0-9a-fA-F\uff10-\uff19\uff21-\uff26\uff41-\uff46",
    "ASSIGNED": r"\P{Cn}",
    "NONCHARACTER_CODE_POINT": r"\p{Noncharacter_Code_Point}",
    "NONCHARACTERCODEPOINT": r"\p{Noncharacter_Code_Point}",
    "DIGIT": r"\p{Nd}",
    "ALNUM": r"\p{Alphabetic}\p{Nd}",
    "BLANK": r"\p{Zs}\t",
    "GRAPH": r"[^\p{White_Space}\p{Cc}\p{Cs}\p{Cn}]",
    "PRINT": r"[[^\p{White_Space}\p{Cc}\p{Cs}\p{Cn}]\p{Zs}]",
    "WORD": UNICODE_WORD,
    "JOIN_CONTROL": r"\p{Join_Control}",
    "JOINCONTROL": r"\p{Join_Control}",
}

_UNICODE_POSIX = {
    "LOWER": "LOWERCASE",
    "UPPER": "UPPERCASE",
    "ALPHA": "ALPHABETIC",
    "PUNCT": "PUNCTUATION",
    "CNTRL": "CONTROL",
    "SPACE": "WHITE_SPACE",
    "XDIGIT": "HEX_DIGIT",
    "DIGIT": "DIGIT",
    "ALNUM": "ALNUM",
    "BLANK": "BLANK",
    "GRAPH": "GRAPH",
    "PRINT": "PRINT",
}
"""Unicode properties for POSIX names under the flag `U`."""

_CASED = {
    "Lower": "Alpha",
    "Upper": "Alpha",
    "Lu": "LC",
    "Ll": "LC",
    "Lt": "LC",
}
"""Class without case for each single-case class, for caseless matching."""

_CATEGORIES = re.compile(r"C[ncfos]?|L[ultmoC]?|M[nec]?|N[dlo]?|Z[slp]?|P[dsecoif]?|S[mcko]?")


def property_class(name: str, *, caseless: bool, unicode: bool) -> str:
    """Translate `\\p{name}`; raise `ValueError` for a name unknown to Java."""
    kind, equals, value = name.partition("=")
    if equals:
        return _of_kind(kind.lower(), value, name, caseless=caseless)
    if name.startswith("In"):
        return _known(f"\\p{{Block={name[2:]}}}", name)
    if name.startswith("Is"):
        short = name[2:]
        binary = _BINARY.get(short.upper())
        if binary is not None:
            return r"\p{LC}" if caseless and short.upper() in ("LOWERCASE", "UPPERCASE", "TITLECASE") else binary
        return _category(short, caseless=caseless) or _known(f"\\p{{Script={short}}}", name)
    if unicode and name.upper() in _UNICODE_POSIX:
        return property_class(f"Is{_UNICODE_POSIX[name.upper()]}", caseless=caseless, unicode=False)
    category = _category(name, caseless=caseless)
    if category is None:
        raise ValueError(f"there is no class {name}")
    return category


def _category(name: str, *, caseless: bool) -> str | None:
    name = _CASED.get(name, name) if caseless else name
    if name.startswith("java"):
        if caseless and name in ("javaLowerCase", "javaUpperCase", "javaTitleCase"):
            return r"\p{Lowercase}\p{Uppercase}\p{Lt}"
        return _JAVA.get(name[4:])
    special = {"L1": r"\x00-\xff", "LD": r"\p{L}\p{Nd}", "all": r"\x00-\U0010ffff"}
    return ASCII.get(name) or special.get(name) or (f"\\p{{{name}}}" if _CATEGORIES.fullmatch(name) else None)


def _of_kind(kind: str, value: str, name: str, *, caseless: bool) -> str:
    if kind in ("sc", "script"):
        return _known(f"\\p{{Script={value}}}", name)
    if kind in ("blk", "block"):
        return _known(f"\\p{{Block={value}}}", name)
    category = _category(value, caseless=caseless) if kind in ("gc", "general_category") else None
    if category is None:
        raise ValueError(f"there is no class {name}")
    return category


def _known(written: str, name: str) -> str:
    # The compilation of the whole expression tells if the script or block exists.
    if not re.fullmatch(r"\\p\{\w+=[\w .-]+\}", written, re.ASCII):
        raise ValueError(f"there is no class {name}")
    return written
