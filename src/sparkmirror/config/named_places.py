"""Files and token servers that a client's settings name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import Enum, auto

from sparkmirror.config.jaas import parse_jaas

URLS_KEY = "sparkmirror.allowed.urls"
"""Key in a worker's file: token servers that connectors may name."""

_URL_KEY = re.compile(r"(.*\.)?sasl\.oauthbearer\.(token|jwks)\.endpoint\.url")
_JAAS_KEY = re.compile(r"(.*\.)?sasl\.jaas\.config")
_PATH_KEY = re.compile(r"(.*\.)?ssl\.(truststore|keystore)\.location")
_FILE_OPTION = re.compile(r"oauth\.(access\.token|refresh\.token|client\.assertion)\.location")
_URL_OPTION = "oauth.token.endpoint.uri"
_PATH_OPTION = re.compile(r"keyTab|ticketCache|(oauth\.)?ssl\.(truststore|keystore)\.location")
_CACHE_KIND = re.compile(r"[A-Za-z]+:")
"""Kind before a ticket cache's place, as in `FILE:/run/tickets`."""


class PlaceKind(Enum):
    """Kind of place that a setting names."""

    FILE = auto()
    TOKEN_FILE = auto()
    TOKEN_SERVER = auto()


def token_servers(settings: Mapping[str, str]) -> Iterator[str]:
    """Yield the token servers' URLs that a connector's settings name."""
    for key, value in settings.items():
        for kind, place in places(key, value):
            if kind is PlaceKind.TOKEN_SERVER:
                yield place


def places(key: str, value: str) -> Iterator[tuple[PlaceKind, str]]:
    """Yield the files and token servers that a setting names."""
    text = value.strip()
    if _URL_KEY.fullmatch(key) and text:
        yield PlaceKind.TOKEN_FILE if text.partition(":")[0].lower() == "file" else PlaceKind.TOKEN_SERVER, text
    elif _PATH_KEY.fullmatch(key) and text:
        yield PlaceKind.FILE, text
    elif _JAAS_KEY.fullmatch(key):
        try:
            options = parse_jaas(value).options
        except ValueError:
            return  # no client can sign in with an unreadable JAAS line
        for option, place in options.items():
            if _FILE_OPTION.fullmatch(option):
                yield PlaceKind.TOKEN_FILE, place
            elif option == _URL_OPTION:
                yield PlaceKind.TOKEN_SERVER, place
            elif _PATH_OPTION.fullmatch(option):
                yield PlaceKind.FILE, _CACHE_KIND.sub("", place, count=1)
