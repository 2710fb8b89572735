"""What to say about keys that have no effect: where to write them instead, or what was meant."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from difflib import get_close_matches

from sparkmirror.config import known_keys
from sparkmirror.config.refusals import ACCEPTED
from sparkmirror.config.scopes import Level, ScopedKey, Scopes
from sparkmirror.config.security import HONOURED, is_exception, meant_clusters
from sparkmirror.config.settings import (
    CLUSTERS_KEY,
    CONTROL_SETTINGS,
    ENABLED,
    FETCH_SETTINGS,
    FLOW_SETTINGS,
    LOSS_SETTINGS,
    PRODUCE_SETTINGS,
    SOURCE_SERVERS,
    Setting,
)

CLOSE = 0.8
"""How alike a key and a known one must be for a suggestion; 1 is the same."""

_BARE = {
    setting.name: setting for setting in (*FLOW_SETTINGS, *CONTROL_SETTINGS, *LOSS_SETTINGS, ENABLED, SOURCE_SERVERS)
}
_FETCH = {setting.name: setting for setting in FETCH_SETTINGS}
_PRODUCE = {setting.name: setting for setting in PRODUCE_SETTINGS}

_TOP_NAMES = {*_BARE, CLUSTERS_KEY} | known_keys.CONNECTOR | known_keys.CONNECT
_CLIENT_NAMES = {*_FETCH, *_PRODUCE} | known_keys.CLIENT
_ALL_NAMES = sorted(_TOP_NAMES | _CLIENT_NAMES, key=len, reverse=True)


class Advisor:
    """Explains each key that has no effect, for one set of running flows."""

    def __init__(self, scopes: Scopes, encrypted: Collection[str]) -> None:
        self._scopes = scopes
        self._encrypted = encrypted

    def advise(self, key: ScopedKey) -> str | None:
        """A warning about a key without effect; None if it asks for what is done anyway."""
        if _asks_for_nothing(key):
            return None
        text = self._needless(key)
        if text is None and is_exception(key):
            return None  # it passed: it says what holds for the whole cluster anyway
        return key.entry.note(text or self._misplaced(key) or _known(key) or self._unknown(key))

    def _needless(self, key: ScopedKey) -> str | None:
        """Why a security setting can't have an effect; None if it can, or is none."""
        if key.name.startswith("sasl."):
            return "has no effect without SASL"
        plain = not meant_clusters(key, self._scopes.flows) & set(self._encrypted)
        return "has no effect with security.protocol PLAINTEXT" if plain and key.name.startswith("ssl.") else None

    def _misplaced(self, key: ScopedKey) -> str | None:
        setting = _meant(key)
        if setting is None:
            return None
        if setting is ENABLED:
            return "enables no flow here; write <source>-><target>.enabled = true for each one"
        where = " or ".join(self._places(setting))
        return f"has no effect in this place, nor in MirrorMaker 2; write {where}"

    def _places(self, setting: Setting) -> list[str]:
        """The keys that would count: of the one flow that runs, or with words to fill in."""
        sources = {source for source, _ in self._scopes.flows}
        targets = {target for _, target in self._scopes.flows}
        source = min(sources) if len(sources) == 1 else "<source>"
        target = min(targets) if len(targets) == 1 else "<target>"
        strongest, *general = setting.place.keys(setting.name, source, target)[:2]
        return [*general, strongest]

    def _unknown(self, key: ScopedKey) -> str:
        if meant := _close_name(key):
            return f"is not known; did you mean {meant}?"
        name = next((name for name in _ALL_NAMES if key.entry.key.endswith(f".{name}")), None)
        if name is None:
            return "is not known, and has no effect"
        prefix = key.entry.key.removesuffix(name)
        if meant := _closest(prefix, [*self._scopes.prefixes, *known_keys.ROLES]):
            return f"is not known; did you mean {meant}{name}?"
        return f"is not known: {prefix.removesuffix('.')} is no cluster, flow or client"


def _close_name(key: ScopedKey) -> str | None:
    """The key with its name corrected, if a known name is close."""
    names = _CLIENT_NAMES if key.role else _TOP_NAMES | {role + name for role in known_keys.ROLES for name in _FETCH}
    name = _closest(key.name, sorted(names))
    # What is only shorter has a good name behind a bad prefix.
    return f"{key.prefix}{key.role}{name}" if name and not key.name.endswith(f".{name}") else None


def _asks_for_nothing(key: ScopedKey) -> bool:
    """Whether a known key switches off what isn't done, or states what is the only possibility."""
    value = key.entry.value.strip().lower()
    switched_off = value == "false" and key.name in known_keys.CONNECTOR | known_keys.CONNECT | known_keys.CLIENT
    if key.name in HONOURED:
        return value == "plaintext"
    return switched_off or key.name in ACCEPTED or (key.name == "compression.type" and value == "none")


def _known(key: ScopedKey) -> str | None:
    """Why a key that Kafka knows does nothing; None if Kafka doesn't know it either."""
    name = key.name
    if name.startswith(known_keys.PROVIDER_FAMILY):
        return "has no effect: config providers are not supported in this release"
    if name in known_keys.REMOVED:
        instead = known_keys.REMOVED[name]
        return "has no effect since Kafka 4.0" + (f"; write {key.prefix}{instead}" if instead else "")
    if not key.role and (name in known_keys.CONNECT or name.startswith(known_keys.CONNECT_FAMILIES)):
        return "has no effect: it is for Kafka Connect, which isn't used here"
    client = key.role or key.level is not Level.TOP
    if name in known_keys.CONNECTOR or name.startswith("ssl.") or (client and name in _CLIENT_NAMES):
        return "has no effect in this release"
    return None


def _meant(key: ScopedKey) -> Setting | None:
    """The setting that the key's writer had in mind."""
    if key.name in HONOURED:
        return HONOURED[key.name]
    if "consumer" in key.role:
        return _FETCH.get(key.name)
    if "producer" in key.role:
        return _PRODUCE.get(key.name)
    if key.role:
        return None
    if key.name in _BARE or key.name in known_keys.CONNECT:
        return _BARE.get(key.name)
    # In a cluster's own settings a name may be the worker's, too; then nothing can be guessed.
    shared = key.level is Level.CLUSTER and key.name in known_keys.CLIENT
    return None if shared else _FETCH.get(key.name) or _PRODUCE.get(key.name)


def _closest(word: str, known: Sequence[str]) -> str | None:
    return next(iter(get_close_matches(word, known, n=1, cutoff=CLOSE)), None)
