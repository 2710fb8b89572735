"""Numbers as Java reads, narrows and writes them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from fractions import Fraction

import numpy as np

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1

_INTEGER = re.compile(r"[+-]?\d+")
_FLOATING = re.compile(
    r"(?P<sign>[+-]?)(?:(?P<word>NaN|Infinity)"
    r"|0[xX](?P<hex>[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP](?P<power>[+-]?[0-9]+)[fFdD]?"
    r"|(?P<decimal>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?)"
)
_BLANKS = "".join(map(chr, range(0x21)))
"""Characters that Java's `String.trim` takes off."""

_BIG = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE](?P<exponent>[+-]?\d+))?")


class Single(float):
    """32-bit float among Java's numbers."""

    __slots__ = ()


def wrapped(number: int, bits: int) -> int:
    """Return a whole number's lowest bits, signed, as Java's casts do."""
    half = 1 << (bits - 1)
    return ((number + half) & ((1 << bits) - 1)) - half


def narrowed(number: float, bits: int) -> int:
    """Return a double as a whole number with `bits`, as `Number.intValue` does.

    NaN becomes 0, a large number the nearest with 32 or 64 bits; 8 and 16 bits are cut out of 32.
    """
    if math.isnan(number):
        return 0
    bound = LONG_MAX if bits == 64 else INT_MAX
    whole = (bound if number > 0 else -bound - 1) if math.isinf(number) else int(number)
    return wrapped(max(-bound - 1, min(bound, whole)), bits)


def single(number: float) -> Single:
    """Return the nearest 32-bit float; infinity beyond the largest."""
    with np.errstate(over="ignore"):
        return Single(np.float32(np.int64(number) if isinstance(number, int) else number))


def parse_integer(text: str, bits: int) -> int:
    """Read a whole number as `Integer.parseInt` does; raise `ValueError`."""
    if not _INTEGER.fullmatch(text) or max(text) > "\uffff":
        raise ValueError("it is no whole number")
    number = int(text)
    if wrapped(number, bits) != number:
        raise ValueError(f"it is out of range for {bits} bits")
    return number


def parse_double(text: str) -> float:
    """Read a number as `Double.parseDouble` does; raise `ValueError`."""
    matched = _floating(text)
    if matched["hex"]:
        try:
            return float.fromhex(f"{matched['sign']}0x{matched['hex']}p{matched['power']}")
        except OverflowError:
            return math.copysign(math.inf, -1.0 if matched["sign"] == "-" else 1.0)
    return float(matched["sign"] + (matched["decimal"] or matched["word"]))


def _floating(text: str) -> re.Match[str]:
    matched = _FLOATING.fullmatch(text.strip(_BLANKS))
    if matched is None:
        raise ValueError("it is no number")
    return matched


def parse_single(text: str) -> Single:
    """Read a number as `Float.parseFloat` does: rounded once, not twice."""
    rough = parse_double(text)
    made = single(rough)
    exact = _exact(text, rough)
    if exact is None or rough == made or exact == Fraction(rough):
        return made
    # The double may lie in the middle between two floats where the text does not: then the text decides.
    with np.errstate(over="ignore"):
        neighbour = float(np.nextafter(np.float32(made), np.float32(math.copysign(math.inf, rough - made))))
    if Fraction(rough) * 2 != _bounded(made) + _bounded(neighbour):
        return made
    low, high = sorted((float(made), neighbour))
    return Single(high if exact > Fraction(rough) else low)


def _bounded(number: float) -> Fraction:
    """Return a 32-bit float; for infinity the power of 2 after the largest."""
    return Fraction(math.copysign(2.0**128, number) if math.isinf(number) else number)


def _exact(text: str, rough: float) -> Fraction | None:
    if math.isnan(rough) or math.isinf(rough) or rough == 0:
        return None
    matched = _floating(text)
    if matched["hex"]:
        whole, _, part = matched["hex"].partition(".")
        mantissa = Fraction(int(whole + part or "0", 16), 16 ** len(part))
        sign = -1 if matched["sign"] == "-" else 1
        return sign * mantissa * Fraction(2) ** int(matched["power"])
    return Fraction(matched["sign"] + matched["decimal"])


def big_decimal(text: str) -> Decimal:
    """Read a number as Java's `BigDecimal` does; raise `ValueError`."""
    matched = _BIG.fullmatch(text)
    exponent = matched["exponent"] if matched else None
    if matched is None or (exponent and not -INT_MAX <= int(exponent) <= INT_MAX):
        raise ValueError("it is no decimal number")
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ValueError("it is no decimal number") from None


def long_of(number: Decimal) -> int:
    """Return a decimal number's lowest 64 bits, as `BigDecimal.longValue` does."""
    if int(number.as_tuple().exponent) > 64:
        return 0  # 10 to the 64th is a multiple of 2 to the 64th
    return wrapped(int(number), 64)


def double_text(number: float) -> str:
    """Return a double as `Double.toString` does from Java 19 on.

    The text is the shortest with two digits or more.
    """
    if isinstance(number, Single):
        return single_text(number)
    return _java_text(number, repr(number), f"{number:.1e}", lambda text: float(text) == number)


def single_text(number: Single) -> str:
    """Return a 32-bit float as `Float.toString` does from Java 19 on."""
    short = np.format_float_scientific(np.float32(number), unique=True, trim="-")
    return _java_text(number, short, f"{float(number):.1e}", lambda text: single(float(text)) == number)


def _java_text(number: float, short: str, of_two: str, same: Callable[[str], bool]) -> str:
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    sign = "-" if math.copysign(1.0, number) < 0 else ""
    if number == 0:
        return sign + "0.0"
    _, digits, exponent = Decimal(short).normalize().as_tuple()
    if len(digits) == 1 and same(of_two):
        _, digits, exponent = Decimal(of_two).normalize().as_tuple()
    text = "".join(map(str, digits))
    point = len(text) + int(exponent)
    if 10**-3 <= abs(number) < 10**7:
        if point <= 0:
            return f"{sign}0.{'0' * -point}{text}"
        return f"{sign}{text[:point].ljust(point, '0')}.{text[point:] or '0'}"
    return f"{sign}{text[0]}.{text[1:] or '0'}E{point - 1}"
