"""Kinds of setting values, each with its own rule for reading text.

Text is trimmed first, as Kafka's `ConfigDef.parseType` does; lists follow `mm2.md` section 1.5.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias
from urllib.parse import SplitResult, urlsplit

from pydantic import SecretStr

Value: TypeAlias = bool | int | str | tuple[str, ...]

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
PORT_MAX = 65_535
SHOWN = 100
"""Most characters from a value in an error."""


class ValueKind(Protocol):
    """Kind of value, with its rule for reading text."""

    def parse(self, text: str) -> Value:
        """Return the value in `text`; raise `ValueError` with the values that are allowed."""


@dataclass(frozen=True, slots=True)
class Boolean:
    """`true` or `false`, in any case."""

    def parse(self, text: str) -> bool:
        """Read `text`; Java's own booleans take nothing else either."""
        word = text.strip().lower()
        if word not in ("true", "false"):
            raise _refused(text, "true or false")
        return word == "true"


@dataclass(frozen=True, slots=True)
class Flag:
    """Flag as Java's `Boolean.parseBoolean` reads it.

    `true` in any case is true; all other text is false.
    """

    def parse(self, text: str) -> bool:
        """Read `text`; no text is refused."""
        return text.strip().lower() == "true"

    def odd(self, text: str) -> str:
        """Return a remark on a text other than `true` and `false`; else nothing."""
        word = text.strip()
        known = word.lower() in ("true", "false")
        return "" if known else f"{word!r} is read as false, as MirrorMaker 2 reads it; write true or false"


@dataclass(frozen=True, slots=True)
class Integer:
    """Whole number from `low` to `high`, or `also`.

    `also` is a further value with its own meaning.
    """

    low: int
    high: int = INT_MAX
    also: int | None = None

    def parse(self, text: str) -> int:
        """Read `text` as Java's `Integer.parseInt` does."""
        word = text.strip()
        number = int(word) if re.fullmatch(r"[+-]?0*[0-9]{1,19}", word, re.ASCII) else None
        if number is None or not (self.low <= number <= self.high or number == self.also):
            besides = "" if self.also is None else f", or {self.also}"
            raise _refused(text, f"a whole number from {self.low} to {self.high}{besides}")
        return number


@dataclass(frozen=True, slots=True)
class Choice:
    """Word from `options`, in exactly this case, or in `any_case`."""

    options: tuple[str, ...]
    any_case: bool = False

    def parse(self, text: str) -> str:
        """Read `text`; return the word as `options` spells it."""
        word = text.strip()
        for option in self.options:
            if word == option or (self.any_case and word.lower() == option.lower()):
                return option
        raise _refused(text, " or ".join(option or "nothing" for option in self.options))


@dataclass(frozen=True, slots=True)
class Reset(Choice):
    """Consumer's `auto.offset.reset`, without the values that a mirror can't use.

    The errors say what a mirror does instead.
    """

    def parse(self, text: str) -> str:
        word = text.strip()
        if word == "none":
            raise ValueError(
                "'none' starts no partition, so that MirrorMaker 2 would copy nothing with it: write earliest or"
                " latest; to stop where records are lost, write sparkmirror.on.expired = halt"
            )
        if word.lower().startswith("by_duration:"):
            raise ValueError(
                f"{word!r} is not supported: write earliest or latest; where a partition starts can be set offset by"
                " offset, by PATCH /connectors/NAME/offsets of `sparkmirror serve`"
            )
        return Choice.parse(self, text)


@dataclass(frozen=True, slots=True)
class Hidden:
    """Text of any kind, trimmed.

    No message shows the text: it may be a secret or a whole PEM file.
    """

    def parse(self, text: str) -> str:
        return text.strip()


@dataclass(frozen=True, slots=True)
class TlsVersions:
    """TLS version list.

    A file may name old versions, as old files do, but no modern Java speaks the old versions either.
    """

    spoken: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")
    old: tuple[str, ...] = ("SSLv3", "TLSv1", "TLSv1.1")

    def parse(self, text: str) -> tuple[str, ...]:
        """Read `text`; leave old versions out."""
        versions = Names().parse(text)
        spoken = tuple(version for version in versions if version not in self.old)
        if not spoken or not set(spoken) <= set(self.spoken):
            raise _refused(text, "a list of " + " and ".join(self.spoken))
        return spoken


@dataclass(frozen=True, slots=True)
class Text:
    """Text whose characters all match `characters`, a character class in a regex."""

    characters: str = "."
    described: str = "anything but line ends"

    def parse(self, text: str) -> str:
        word = text.strip()
        if not re.fullmatch(f"{self.characters}*", word):
            raise _refused(text, f"made of {self.described}")
        return word


@dataclass(frozen=True, slots=True)
class ClassName:
    """Java class from `known`, or a Python class: `module:Class`."""

    known: tuple[str, ...]

    def parse(self, text: str) -> str:
        """Read `text`; a missing Python class is noticed when it is loaded."""
        word = text.strip()
        if word not in self.known and not is_python_class(word):
            raise _refused(text, " or ".join(self.known) + ", or a Python class as module:Class")
        return word


@dataclass(frozen=True, slots=True)
class Names:
    """List, separated by commas; the list may be empty, an item may not."""

    def parse(self, text: str) -> tuple[str, ...]:
        """Read `text`; keep the order and the repetitions."""
        if not text.strip():
            return ()
        # Java splits at the regex `\\s*,\\s*`, which would take hours for a megabyte of blanks here.
        items = tuple(item.strip(" \t\n\x0b\f\r") for item in text.strip().split(","))
        if "" in items:
            raise ValueError("has an empty item: take out the comma that separates nothing")
        return items


_LISTENER = re.compile(r"(https?)://\[?([0-9A-Za-z\-%._:]*)\]?:([0-9]{1,5})", re.IGNORECASE)


def listener_parts(text: str) -> tuple[str, str, int]:
    """Return a listening address's scheme, host and port; raise `ValueError`.

    The address is written as in Connect's `listeners`.
    """
    match = _LISTENER.fullmatch(text)
    if match is None or int(match[3]) > PORT_MAX:
        raise ValueError(f"{text!r} is not allowed, it must be http://host:port or https://host:port")
    return match[1].lower(), match[2], int(match[3])


@dataclass(frozen=True, slots=True)
class Listeners:
    """Addresses to listen on, separated by commas."""

    def parse(self, text: str) -> tuple[str, ...]:
        """Read `text`; keep the order."""
        listeners = Names().parse(text)
        for listener in listeners:
            listener_parts(listener)
        return listeners


@dataclass(frozen=True, slots=True)
class HttpUrl:
    """A server's address, such as `https://host:8081/apis`.

    A path may follow, with which requests' paths begin. The address holds no user.
    """

    def parse(self, text: str) -> str:
        """Read `text`, without slashes at its end; empty text stays empty."""
        word = text.strip().rstrip("/")
        if "@" in word:
            raise ValueError("must not hold a user or password: there are settings for them")
        parts = urlsplit(word) if re.fullmatch(r"(https?://[\x21-\x7e]*)?", word, re.IGNORECASE) else None
        if parts is None or "," in word or parts.query or parts.fragment or (word and not _has_host(parts)):
            raise _refused(text, "one http://host:port or https://host:port, a path may follow")
        return word[: len(parts.scheme)].lower() + word[len(parts.scheme) :]


def _has_host(parts: SplitResult) -> bool:
    try:
        return bool(parts.hostname) and parts.port != 0
    except ValueError:  # the port is no port's number
        return False


@dataclass(frozen=True, slots=True)
class Additions:
    """List in place of the `usual` list.

    With `+` before each item, the items are added to the `usual` list.
    """

    usual: tuple[str, ...]

    def parse(self, text: str) -> tuple[str, ...]:
        """Read `text`; no item in the result begins with `+`.

        No regular expression begins with `+`.
        """
        items = Names().parse(text)
        added = tuple(item[1:].lstrip() for item in items if item.startswith("+"))
        if not added:
            return items
        if len(added) < len(items):
            raise ValueError(
                "has items with a + and items without: write it before each one to add them to the default list, or"
                " before none to replace that"
            )
        if "" in added:
            raise ValueError("has a + with nothing after it")
        return (*self.usual, *(item for item in added if item not in self.usual))


@dataclass(frozen=True, slots=True)
class Words:
    """List with one or more words from `options`."""

    options: tuple[str, ...]

    def parse(self, text: str) -> tuple[str, ...]:
        words = Names().parse(text)
        if not words or not set(words) <= set(self.options):
            raise _refused(text, "a list of " + " and ".join(self.options))
        return words


_BROKER = re.compile(r"(?:[0-9a-zA-Z\-%._]*://)?\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]+)", re.ASCII)
"""Pattern like Kafka's `Utils.HOST_PORT_PATTERN`; text before `://` is ignored."""


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Brokers to start from: `host:port`, separated by commas.

    An IPv6 address may be written with brackets or without. The result has no `scheme://`, and each IPv6 address has
    brackets.
    """

    def parse(self, text: str) -> tuple[str, ...]:
        """Read `text` as `ClientUtils.parseAndValidateAddresses` does."""
        endpoints = Names().parse(text)
        if not endpoints:
            raise ValueError("is empty: write host:port, several separated by commas")
        return tuple(map(self._plain, endpoints))

    def _plain(self, endpoint: str) -> str:
        match = _BROKER.fullmatch(endpoint)
        if match is None or not match[1].strip(":") or not 0 < int(match[2]) <= PORT_MAX:
            hint = "; several are separated by commas" if re.search(r":[0-9]+[\s;]", endpoint) else ""
            raise ValueError(
                f"{endpoint!r} is not allowed, it must be host:port, the port from 1 to 65535; an IPv6 address may"
                f" stand in brackets, and scheme:// before it{hint}"
            )
        host = f"[{match[1]}]" if ":" in match[1] else match[1]
        return f"{host}:{int(match[2])}"


def schemes(text: str) -> list[str]:
    """Return the schemes before `://` in a broker list, each once, as written."""
    return list(dict.fromkeys(re.findall(r"(?:^|,)\s*([^\s,:]*)://", text)))


def is_python_class(word: str) -> bool:
    """True if `word` is written as `module:Class`."""
    return re.fullmatch(r"[\w.]+:\w+", word) is not None


NAME_CHARACTERS = Text(r"[A-Za-z0-9._-]", "letters, digits, '.', '_' and '-', as a topic's name is")
SECONDS = Integer(1, LONG_MAX // 1000)
FACTOR = Integer(1, 32_767, also=-1)
"""Replication factor; -1 is the broker's default."""


def repeated(items: Sequence[str]) -> list[str]:
    """Return the items that come more than once, as they first appear."""
    return [item for item, count in Counter(items).items() if count > 1]


def _refused(text: str, allowed: str) -> ValueError:
    hint = "; a # after a value is part of it, not a comment" if "#" in text else ""
    given = text.strip()
    given = given if len(given) <= SHOWN else given[:SHOWN] + "…"
    return ValueError(f"{given!r} is not allowed, it must be {allowed}{hint}")


def shown_text(value: object) -> str:
    """Return a setting's value as a file has it."""
    if isinstance(value, tuple):
        return ", ".join(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.get_secret_value() if isinstance(value, SecretStr) else str(value)
