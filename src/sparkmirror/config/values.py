"""The kinds of value a setting can have, each with its own rule for reading text.

Text is trimmed first, as Kafka's `ConfigDef.parseType` does; lists follow `mm2.md` section 1.5.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias
from urllib.parse import SplitResult, urlsplit

Value: TypeAlias = bool | int | str | tuple[str, ...]

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
PORT_MAX = 65_535
SHOWN = 100
"""Characters of a value that an error shows."""


class ValueKind(Protocol):
    """How one kind of value is read."""

    def parse(self, text: str) -> Value:
        """The value that `text` stands for; raises `ValueError` that says what is allowed."""


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
    """What Java's `Boolean.parseBoolean` reads: `true` in any case; all else is false, whatever it says."""

    def parse(self, text: str) -> bool:
        """Read `text`; never refused."""
        return text.strip().lower() == "true"

    def odd(self, text: str) -> str:
        """What to say about a text that is neither `true` nor `false`; nothing about these."""
        word = text.strip()
        known = word.lower() in ("true", "false")
        return "" if known else f"{word!r} is read as false, as MirrorMaker 2 reads it; write true or false"


@dataclass(frozen=True, slots=True)
class Integer:
    """A whole number from `low` to `high`; `also` is one more value with a meaning of its own."""

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
    """One of a few words, in exactly this case, or in `any_case`."""

    options: tuple[str, ...]
    any_case: bool = False

    def parse(self, text: str) -> str:
        """Read `text`; the word comes in our case."""
        word = text.strip()
        for option in self.options:
            if word == option or (self.any_case and word.lower() == option.lower()):
                return option
        raise _refused(text, " or ".join(option or "nothing" for option in self.options))


@dataclass(frozen=True, slots=True)
class Reset(Choice):
    """A consumer's `auto.offset.reset`, without what a mirror has no use for, or does otherwise."""

    def parse(self, text: str) -> str:
        """Read `text`."""
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
    """Any text, trimmed; it may be a secret or a whole PEM file, so no message can be about it."""

    def parse(self, text: str) -> str:
        """Read `text`."""
        return text.strip()


@dataclass(frozen=True, slots=True)
class TlsVersions:
    """A list of TLS versions; old ones may be named, as in old files, but no modern Java speaks them either."""

    spoken: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")
    old: tuple[str, ...] = ("SSLv3", "TLSv1", "TLSv1.1")

    def parse(self, text: str) -> tuple[str, ...]:
        """Read `text`, leaving out the old ones."""
        versions = Names().parse(text)
        spoken = tuple(version for version in versions if version not in self.old)
        if not spoken or not set(spoken) <= set(self.spoken):
            raise _refused(text, "a list of " + " and ".join(self.spoken))
        return spoken


@dataclass(frozen=True, slots=True)
class Text:
    """Any text in which all characters match `characters`, a regular expression's class."""

    characters: str = "."
    described: str = "anything but line ends"

    def parse(self, text: str) -> str:
        """Read `text`."""
        word = text.strip()
        if not re.fullmatch(f"{self.characters}*", word):
            raise _refused(text, f"made of {self.described}")
        return word


@dataclass(frozen=True, slots=True)
class ClassName:
    """One of the Java classes that are `known`, or a class of Python's: `module:Class`."""

    known: tuple[str, ...]

    def parse(self, text: str) -> str:
        """Read `text`; whether a Python class is there is seen when it is loaded."""
        word = text.strip()
        if word not in self.known and not is_python_class(word):
            raise _refused(text, " or ".join(self.known) + ", or a Python class as module:Class")
        return word


@dataclass(frozen=True, slots=True)
class Names:
    """A list, separated by commas; it may be empty, its items may not."""

    def parse(self, text: str) -> tuple[str, ...]:
        """Read `text`, keeping its order and its repetitions."""
        if not text.strip():
            return ()
        # Java splits at `\\s*,\\s*`; as a regex that takes hours for a megabyte of blanks.
        items = tuple(item.strip(" \t\n\x0b\f\r") for item in text.strip().split(","))
        if "" in items:
            raise ValueError("has an empty item: take out the comma that separates nothing")
        return items


_LISTENER = re.compile(r"(https?)://\[?([0-9A-Za-z\-%._:]*)\]?:([0-9]{1,5})", re.IGNORECASE)


def listener_parts(text: str) -> tuple[str, str, int]:
    """Scheme, host and port of an address to listen on, as Connect's `listeners` has it. Raises ValueError."""
    match = _LISTENER.fullmatch(text)
    if match is None or int(match[3]) > PORT_MAX:
        raise ValueError(f"{text!r} is not allowed, it must be http://host:port or https://host:port")
    return match[1].lower(), match[2], int(match[3])


@dataclass(frozen=True, slots=True)
class Listeners:
    """Addresses to listen on, separated by commas."""

    def parse(self, text: str) -> tuple[str, ...]:
        """Read `text`, keeping its order."""
        listeners = Names().parse(text)
        for one in listeners:
            listener_parts(one)
        return listeners


@dataclass(frozen=True, slots=True)
class HttpUrl:
    """A server's address with what its paths begin with, such as `https://host:8081/apis`; no user in it."""

    def parse(self, text: str) -> str:
        """Read `text`, without the slashes at its end; nothing is nothing."""
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
    except ValueError:  # the port is none
        return False


@dataclass(frozen=True, slots=True)
class Additions:
    """A list that counts instead of the `usual` one; or, with `+` before each item, on top of it."""

    usual: tuple[str, ...]

    def parse(self, text: str) -> tuple[str, ...]:
        """Read `text`; no item of what comes out begins with `+`, which no regular expression does."""
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
            raise ValueError("has a + with nothing behind it")
        return (*self.usual, *(item for item in added if item not in self.usual))


@dataclass(frozen=True, slots=True)
class Words:
    """A list of one or more of a few words."""

    options: tuple[str, ...]

    def parse(self, text: str) -> tuple[str, ...]:
        """Read `text`."""
        words = Names().parse(text)
        if not words or not set(words) <= set(self.options):
            raise _refused(text, "a list of " + " and ".join(self.options))
        return words


_BROKER = re.compile(r"(?:[0-9a-zA-Z\-%._]*://)?\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]+)", re.ASCII)
"""As Kafka's `Utils.HOST_PORT_PATTERN`: what stands before `://` is not looked at."""


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Brokers to start from: `host:port`, separated by commas, an IPv6 address with brackets or without.

    They come without `scheme://`, an IPv6 address in brackets.
    """

    def parse(self, text: str) -> tuple[str, ...]:
        """Read `text`, as `ClientUtils.parseAndValidateAddresses` does."""
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
    """What stands before `://` in a list of brokers, each once, as it is written."""
    return list(dict.fromkeys(re.findall(r"(?:^|,)\s*([^\s,:]*)://", text)))


def is_python_class(word: str) -> bool:
    """Whether it is written as `module:Class`."""
    return re.fullmatch(r"[\w.]+:\w+", word) is not None


NAME_CHARACTERS = Text(r"[A-Za-z0-9._-]", "letters, digits, '.', '_' and '-', as a topic's name is")
SECONDS = Integer(1, LONG_MAX // 1000)
FACTOR = Integer(1, 32_767, also=-1)
"""Of replication; -1 is the broker's default."""


def repeated(items: Sequence[str]) -> list[str]:
    """The items that come more than once, in order of first appearance."""
    return [item for item, count in Counter(items).items() if count > 1]


def _refused(text: str, allowed: str) -> ValueError:
    hint = "; a # behind a value is part of it, not a comment" if "#" in text else ""
    given = text.strip()
    given = given if len(given) <= SHOWN else given[:SHOWN] + "…"
    return ValueError(f"{given!r} is not allowed, it must be {allowed}{hint}")
