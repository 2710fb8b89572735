"""Java's regular expressions, in the syntax that the library `regex` reads.

Covers all of `java.util.regex` but `\\b{g}` and the flag `c`. The library `regex` has the features that Python's own
`re` lacks: look-behind with several lengths, `\\p{…}` and classes within classes. Other differences are translated
here, as Java 17 understands them: flags hold to the end of their group, `\\w` and its kin are ASCII, `.` and `$` know
six line ends.
"""

from __future__ import annotations

import unicodedata

import regex

from sparkmirror.policy.java_properties import HORIZONTAL, UNICODE_WORD, VERTICAL, WORD, property_class
from sparkmirror.policy.java_widths import LINE_END, ONE, Width, widest

TOO_LONG_S = 2.0
"""Seconds for matching a single name; an expression that takes longer is given up.

Such an expression would take for ever.
"""

LARGEST = 40_000
"""Most characters that an expression may ask for.

A group's id has 32,767 bytes at most, a topic's name 249.
"""

_LINE_END = r"\n\r\x85\u2028\u2029"
_UNICODE_WORD_PART = r"[\p{L}\p{Nd}_]"
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_FLAGS = frozenset("idmsuxU")
_SETS = {"h": HORIZONTAL, "v": VERTICAL, "d": "0-9", "s": r"\x20\t\n\x0b\f\r", "w": WORD}
_UNICODE_SETS = {"d": r"\p{Nd}", "s": r"\p{White_Space}", "w": UNICODE_WORD}
_AHEAD, _BEHIND = ("?=", "?!"), ("?<=", "?<!")
_STARTS = ("?:", "?>", *_AHEAD, *_BEHIND)


_WORDS = regex.compile(r"[A-Za-z0-9_-]++(?:\|[A-Za-z0-9_-]++)++", regex.VERSION1)


def to_python(pattern: str) -> str:
    """Translate Java's `pattern` to `regex`, version 1, with the same matches.

    Raises `ValueError` if that is impossible.
    """
    return _Translation(pattern).whole()


def compile_java(pattern: str) -> regex.Pattern[str]:
    """Compile Java's `pattern`; raise `ValueError` that names the pattern."""
    if _WORDS.fullmatch(pattern):  # a list of names, perhaps tens of thousands
        return regex.compile(r"\L<words>", regex.VERSION1, words=pattern.split("|"))
    translated = to_python(pattern)
    try:
        return regex.compile(translated, regex.VERSION1)
    except (regex.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{pattern!r} is no regular expression: {getattr(error, 'msg', error)}") from None


def groups_of(pattern: str) -> tuple[int, dict[str, int]]:
    """Return the number of groups in Java's `pattern`, and the named groups' numbers.

    In the translation group 1 is called `g1`, and so on.
    """
    translation = _Translation(pattern)
    translation.whole()
    return translation.groups


class _Translation:
    """One pass over a pattern."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._text = _without_quotes(pattern)
        self._at = 0
        self._flags: frozenset[str] = frozenset()
        self._groups = 0
        self._names: dict[str, int] = {}
        self._size = 0
        """The compiled expression's size, since `regex` writes counted repetitions out."""
        self._width = Width()

    def whole(self) -> str:
        try:
            translated = self._alternatives()
        except RecursionError:
            raise self._refused("it is nested too deeply") from None
        if self._peek():
            raise self._refused("a parenthesis is closed that was not opened")
        return translated

    @property
    def groups(self) -> tuple[int, dict[str, int]]:
        return self._groups, dict(self._names)

    # --- reading --------------------------------------------------------------------------------

    def _peek(self) -> str:
        """Return the next character; empty at the end.

        Skips blanks and comments under the flag `x`.
        """
        if "x" in self._flags:
            while self._at < len(self._text) and (self._text[self._at] in " \t\n\x0b\f\r#"):
                if self._text[self._at] == "#":
                    while self._at < len(self._text) and self._text[self._at] not in "\n\r\x85\u2028\u2029":
                        self._at += 1
                else:
                    self._at += 1
        return self._text[self._at : self._at + 1]

    def _next(self) -> str:
        """Take the next character."""
        character = self._peek()
        self._at += 1
        return character

    def _take(self, text: str) -> bool:
        """Take `text` if it comes next; tell whether it did."""
        self._peek()
        taken = self._text.startswith(text, self._at)
        self._at += len(text) if taken else 0
        return taken

    def _until(self, end: str, what: str) -> str:
        stop = self._text.find(end, self._at)
        if stop < 0:
            raise self._refused(f"{what} is not closed")
        text = self._text[self._at : stop]
        self._at = stop + len(end)
        return text

    def _digits(self, allowed: str, most: int) -> str:
        start = self._at
        while self._at < len(self._text) and self._at - start < most and self._text[self._at] in allowed:
            self._at += 1
        return self._text[start : self._at]

    def _refused(self, reason: str) -> ValueError:
        return ValueError(f"{self._pattern!r} is no regular expression: {reason}")

    # --- outside of classes ---------------------------------------------------------------------

    def _alternatives(self) -> str:
        parts, widths = list[str](), list[Width]()
        while not parts or self._take("|"):
            self._width = Width()
            parts.append(self._sequence())
            widths.append(self._width)
        self._width = widest(widths)
        return "|".join(parts)

    def _sequence(self) -> str:
        out = []
        while (character := self._peek()) and character not in "|)":
            if character in "*+?":
                raise self._refused(f"there is nothing before {character} that it could repeat")
            before, width, self._width = self._size, self._width, Width()
            atom = "" if character == "{" else self._atom()
            self._size += 1
            if atom is not None:
                out.append(self._repeated(atom, before))
            self._width = width.then(self._width)
        return "".join(out)

    def _atom(self) -> str | None:
        """Read an element that may be repeated; return None for flags."""
        character = self._next()
        if character == "(":
            return self._group()
        if character == "[":
            return self._class_item(self._class())
        if character == "\\":
            return self._escape()
        if character == ".":
            self._width = ONE
            if "s" in self._flags:
                return "(?s:.)"
            return r"[^\n]" if "d" in self._flags else f"[^{_LINE_END}]"
        if character == "^":
            return self._line_start() if "m" in self._flags else r"(?:\A)"
        if character == "$":
            return self._end(multiline="m" in self._flags)
        return self._literal(character)

    def _repeated(self, atom: str, before: int) -> str:
        """Return the atom with its quantifier.

        `before` is the size without the atom.
        """
        character = self._peek()
        if character and character in "*+?":
            count = self._next()
            if count == "?":
                self._width = widest([Width(), self._width])
            else:
                self._width = self._width.times(int(count == "+"), None)
        elif character == "{":
            least, most, count = self._count()
            self._width = self._width.times(least, most)
            self._size = before + (self._size - before) * max(least, 1)
            if self._size > LARGEST:
                raise self._refused(f"its repetitions are more than {LARGEST} characters, which no name has")
        else:
            return atom
        more = self._peek()
        kind = self._next() if more and more in "?+" else ""
        if not atom:
            return ""
        return f"(?:{atom}){count}{kind}"

    def _count(self) -> tuple[int, int | None, str]:
        """Read a counted repetition: its bounds (None: no end), and its text."""
        self._at += 1
        low = self._digits("0123456789", 10)
        high = low
        if low and self._take(","):
            high = self._digits("0123456789", 10)
        if not low:
            raise self._refused("a brace is no count of repetitions: write \\{ for the character")
        if not self._take("}"):
            raise self._refused("a count of repetitions is not closed")
        if max(int(low), int(high or 0)) > 2**31 - 1 or (high and int(high) < int(low)):
            raise self._refused("a count of repetitions is out of range")
        return int(low), int(high) if high else None, f"{{{low},{high}}}"

    def _group(self) -> str | None:
        before, opened = self._flags, self._at - 1
        start = next((start for start in sorted(_STARTS, key=len, reverse=True) if self._take(start)), None)
        if start is None and self._take("?<"):
            start = self._name_group(self._until(">", "a group's name"))
        elif start is None and self._take("?"):
            self._read_flags()
            if self._take(")"):
                return None
            if not self._take(":"):
                raise self._refused("after (? stands a construct that Java doesn't know")
            start = "?:"
        elif start is None:
            start = self._number_group()
        inside = self._alternatives()
        if not self._take(")"):
            raise self._refused("a parenthesis is not closed")
        if start in _BEHIND and not self._width.is_counted_right:
            behind = self._text[opened : self._at]
            raise self._refused(f"Java overlooks matches of its look-behind {behind}: write one for each case")
        if start in _BEHIND or start in _AHEAD:
            self._width = Width()
        self._flags = before
        return f"({start}{inside})"

    def _number_group(self) -> str:
        self._groups += 1
        return f"?P<g{self._groups}>"

    def _name_group(self, name: str) -> str:
        if not name.isascii() or not name.isalnum() or not name[0].isalpha():
            raise self._refused(f"{name!r} can't be a group's name")
        if name in self._names:
            raise self._refused(f"two groups have the name {name}")
        start = self._number_group()
        self._names[name] = self._groups
        return start

    def _read_flags(self) -> None:
        on = True
        while (character := self._text[self._at : self._at + 1]) and character not in ":)":
            self._at += 1
            if character == "-" and on:
                on = False
            elif character in _FLAGS:
                changed = {"U", "u"} if character == "U" else {character}
                self._flags = self._flags | changed if on else self._flags - changed
            else:
                raise self._refused(f"there is no flag {character}")

    def _escape(self) -> str:
        """Translate an escape outside a class; the backslash is read already."""
        character = self._text[self._at : self._at + 1]
        self._at += 1
        if character in "123456789" and character:
            return self._back_reference(character)
        simple = {
            "A": r"(?:\A)",
            "G": r"(?:\A)",
            "z": r"(?:\Z)",
            "R": rf"(?:\r\n|[{VERTICAL}])",
            "X": r"\X",
        }
        if character in simple:
            self._width = LINE_END if character == "R" else Width()
            return simple[character]
        if character == "Z":
            return self._end(multiline=False)
        if character in ("b", "B"):
            return self._boundary(inverted=character == "B")
        if character == "k":
            return self._named_reference()
        self._at -= 1
        return self._class_item(self._class_escape())

    def _back_reference(self, digits: str) -> str:
        number = int(digits)
        while (more := self._text[self._at : self._at + 1]) and more in "0123456789":
            if int(f"{number}{more}") > self._groups:
                break
            number = int(f"{number}{more}")
            self._at += 1
        # A reference to a missing or later group never matches.
        return self._same_again(number) if number <= self._groups else "(?!)"

    def _named_reference(self) -> str:
        if not self._take("<"):
            raise self._refused("after \\k stands no name")
        name = self._until(">", "a group's name")
        if name not in self._names:
            raise self._refused(f"there is no group {name} before")
        return self._same_again(self._names[name])

    def _same_again(self, number: int) -> str:
        reference = f"(?P=g{number})"
        return f"(?i-f:{reference})" if "i" in self._flags else reference

    def _boundary(self, *, inverted: bool) -> str:
        if not inverted and self._take("{g"):  # else the brace is a quantifier's
            raise self._refused("the boundary \\b{g} is not supported; write \\X for what is between two")
        word = f"[{UNICODE_WORD}]" if "U" in self._flags else _UNICODE_WORD_PART
        if inverted:
            return f"(?:(?<={word})(?={word})|(?<!{word})(?!{word}))"
        return f"(?:(?<={word})(?!{word})|(?<!{word})(?={word}))"

    def _line_start(self) -> str:
        """Translate `^` in multiline mode: at a line's begin, not at the text's end."""
        if "d" in self._flags:
            return r"(?:(?:\A|(?<=\n))(?!\Z))"
        return r"(?:(?:\A|(?<=[\n\x85\u2028\u2029])|(?<=\r)(?!\n))(?!\Z))"

    def _end(self, *, multiline: bool) -> str:
        """Translate `$`: the text's end, and before the last line end or before each."""
        stop = "" if multiline else r"\Z"
        if "d" in self._flags:
            return rf"(?:(?=\n{stop})|\Z)"
        return rf"(?:(?=\r\n{stop})|(?=[\r\x85\u2028\u2029]{stop})|(?<!\r)(?=\n{stop})|\Z)"

    def _literal(self, character: str) -> str:
        self._width = ONE
        if not self._cased(character):
            return _plain(character)
        if "u" in self._flags:
            return f"(?i-f:{_plain(character)})"
        return f"[{character.lower()}{character.upper()}]"

    def _cased(self, character: str) -> bool:
        """True if case doesn't count, and this character has a case."""
        if "i" not in self._flags:
            return False
        return "u" in self._flags or (character.isascii() and character.isalpha())

    # --- classes --------------------------------------------------------------------------------

    def _class_item(self, inside: str) -> str:
        """Return a class that stands outside other classes."""
        self._width = ONE
        whole = f"[{inside}]"
        return f"(?i-f:{whole})" if {"i", "u"} <= self._flags else whole

    def _class(self) -> str:
        """Read the rest of `[...]`; return the inside of the class."""
        inverted = self._take("^")
        unions: list[list[str]] = [[]]
        first = True
        while True:
            character = self._peek()
            if not character:
                raise self._refused("a class in brackets is not closed")
            if character == "]" and not (first or unions == [[]]):
                self._at += 1
                break
            first = False
            if self._take("&&"):
                if self._peek() == "]":
                    raise self._refused("Java loses track of a class that ends with &&: leave && out")
                if unions[-1]:
                    unions.append([])
            elif character == "&" and len(unions) > 1:
                raise self._refused("Java loses track of a class where a lone & follows &&: write \\&")
            elif self._take("["):
                unions[-1].append(f"[{self._class()}]")
            else:
                unions[-1].append(self._range())
        parts = ["".join(union) for union in unions if union]
        inside = parts[0] if len(parts) == 1 else "&&".join(f"[{part}]" for part in parts)
        return f"[^{inside}]" if inverted else inside

    def _range(self) -> str:
        """Read a class's next element: a character, a range, or a named set."""
        low = self._class_character()
        if len(low) != 1:
            return low
        self._peek()
        following = self._text[self._at + 1 : self._at + 2]
        if self._peek() != "-" or following in ("", "]", "["):
            return self._both_cases(low, low)
        self._at += 1
        high = self._class_character()
        if len(high) != 1 or high < low:
            raise self._refused("a range in a class goes backwards")
        return self._both_cases(low, high)

    def _class_character(self) -> str:
        """Read a character in a class; longer texts stand for several characters."""
        character = self._next()
        if character != "\\":
            return character
        return self._class_escape(alone=True)

    def _both_cases(self, low: str, high: str) -> str:
        ranges = [(low, high)]
        if "i" in self._flags:
            for first, last in (("a", "z"), ("A", "Z")):
                start, stop = max(low, first), min(high, last)
                if start <= stop:
                    ranges.append((start.swapcase(), stop.swapcase()))
        return "".join(f"{_plain(a)}-{_plain(b)}" if a != b else _plain(a) for a, b in ranges)

    def _class_escape(self, *, alone: bool = False) -> str:
        """Translate an escape as the inside of a class.

        With `alone` a single character comes unchanged.
        """
        character = self._text[self._at : self._at + 1]
        self._at += 1
        if character and character in "hHvVdDsSwW":
            sets = {**_SETS, **_UNICODE_SETS} if "U" in self._flags else _SETS
            inside = sets[character.lower()]
            return f"[{inside}]" if character.islower() else f"[^{inside}]"
        if character and character in "pP":
            return self._property(inverted=character == "P")
        single = self._escaped(character)
        return single if alone else self._both_cases(single, single)

    def _property(self, *, inverted: bool) -> str:
        name = self._until("}", "a class's name") if self._take("{") else self._next()
        if name.startswith("^"):
            raise self._refused(f"there is no class {name}")
        try:
            inside = property_class(name, caseless="i" in self._flags, unicode="U" in self._flags)
        except ValueError as error:
            raise self._refused(str(error)) from None
        return f"[^{inside}]" if inverted else f"[{inside}]"

    def _escaped(self, character: str) -> str:
        """Return an escape's single character."""
        if not character:
            raise self._refused("a backslash has nothing after it")
        if character in _CONTROLS:
            return _CONTROLS[character]
        if character == "0":
            return self._octal()
        if character == "x":
            return self._hexadecimal()
        if character == "u":
            return self._utf16()
        if character == "c":
            return self._control()
        if character == "N":
            return self._named_character()
        if character.isascii() and character.isalpha():
            raise self._refused(f"there is no escape \\{character}")
        return character

    def _octal(self) -> str:
        digits = self._digits("01234567", 3 if self._text[self._at : self._at + 1] in tuple("0123") else 2)
        if not digits:
            raise self._refused("after \\0 stands no octal number")
        return chr(int(digits, 8))

    def _hexadecimal(self) -> str:
        digits = self._until("}", "\\x{") if self._take("{") else self._hex(2)
        try:
            return chr(int(digits, 16))
        except (ValueError, OverflowError):
            raise self._refused("after \\x stands no character's hexadecimal number") from None

    def _utf16(self) -> str:
        """Read a UTF-16 unit; join two surrogates to one character."""
        unit = chr(int(self._hex(4), 16))
        if "\ud800" <= unit <= "\udbff" and self._text.startswith("\\u", self._at):
            before, self._at = self._at, self._at + 2
            low = chr(int(self._hex(4), 16))
            if "\udc00" <= low <= "\udfff":
                return (unit + low).encode("utf-16", "surrogatepass").decode("utf-16")
            self._at = before
        return unit

    def _hex(self, count: int) -> str:
        digits = self._digits("0123456789abcdefABCDEF", count)
        if len(digits) < count:
            raise self._refused(f"an escape lacks its {count} hexadecimal digits")
        return digits

    def _control(self) -> str:
        character = self._text[self._at : self._at + 1]
        self._at += 1
        if not character:
            raise self._refused("after \\c stands nothing")
        return chr(ord(character) ^ 64)

    def _named_character(self) -> str:
        if not self._take("{"):
            raise self._refused("after \\N stands no name")
        name = self._until("}", "a character's name")
        try:
            return unicodedata.lookup(name)
        except KeyError:
            raise self._refused(f"there is no character {name}") from None


def _plain(character: str) -> str:
    """Return the character in a form that is literal inside and outside of classes."""
    if character == "_" or (character.isascii() and character.isalnum()):
        return character
    return f"\\U{ord(character):08x}"


def _without_quotes(pattern: str) -> str:
    """Replace the text between `\\Q` and `\\E` by escapes; Java does this first."""
    out: list[str] = []
    at = 0
    while at < len(pattern):
        if pattern.startswith("\\Q", at):
            end = pattern.find("\\E", at + 2)
            quoted = pattern[at + 2 :] if end < 0 else pattern[at + 2 : end]
            out += (f"\\x{{{ord(character):x}}}" for character in quoted)
            at = len(pattern) if end < 0 else end + 2
        else:
            step = 2 if pattern[at] == "\\" else 1
            out.append(pattern[at : at + step])
            at += step
    return "".join(out)
