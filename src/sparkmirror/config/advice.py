"""What to say about keys that have no effect: where to write them instead, or what was meant."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from sparkmirror.config import known_keys
from sparkmirror.config.scopes import Level, ScopedKey, Scopes
from sparkmirror.config.settings import (
    CLUSTERS_KEY,
    ENABLED,
    FETCH_SETTINGS,
    FLOW_SETTINGS,
    PRODUCE_SETTINGS,
    SOURCE_SERVERS,
    Place,
    Setting,
)

CLOSE = 0.8
"""How alike a key and a known one must be for a suggestion; 1 is the same."""

_BARE = {setting.name: setting for setting in (*FLOW_SETTINGS, ENABLED, SOURCE_SERVERS)}
_FETCH = {setting.name: setting for setting in FETCH_SETTINGS}
_PRODUCE = {setting.name: setting for setting in PRODUCE_SETTINGS}

_TOP_NAMES = {*_BARE, CLUSTERS_KEY} | known_keys.CONNECTOR | known_keys.CONNECT
_CLIENT_NAMES = {*_FETCH, *_PRODUCE} | known_keys.CLIENT
_ALL_NAMES = sorted(_TOP_NAMES | _CLIENT_NAMES, key=len, reverse=True)


class Advisor:
    """Explains each key that has no effect, for one set of running flows."""

    def __init__(self, scopes: Scopes) -> None:
        self._scopes = scopes

    def advise(self, key: ScopedKey) -> str | None:
        """A warning about a key without effect; None if it only switches off what isn't done anyway."""
        text = self._misplaced(key) or self._known(key)
        if text is None and self._is_known_switch_off(key):
            return None
        return key.entry.note(text or self._unknown(key))

    def _misplaced(self, key: ScopedKey) -> str | None:
        setting = _meant(key)
        if setting is None:
            return None
        where = " or ".join(self._places(setting))
        if setting is ENABLED and not key.prefix:
            return f"switches nothing on by itself; write {where}"
        return f"has no effect on the copy here, nor in MirrorMaker 2; write {where}"

    def _places(self, setting: Setting) -> list[str]:
        """The keys that would count: of the one flow that runs, or with words to fill in."""
        sources = {source for source, _ in self._scopes.flows}
        targets = {target for _, target in self._scopes.flows}
        source = min(sources) if len(sources) == 1 else "<source>"
        target = min(targets) if len(targets) == 1 else "<target>"
        keys = setting.place.keys(setting.name, source, target)
        if setting.place is Place.CONSUMER:
            # The flow's weaker form is only needed by those who know why.
            keys = [keys[1], keys[0]]
        elif setting.place is Place.PRODUCER:
            keys = keys[::-1]
        return keys

    def _known(self, key: ScopedKey) -> str | None:
        """Why a key that Kafka knows does nothing; None for one it doesn't know, or that asks for nothing."""
        name = key.name
        if name.startswith(known_keys.SECURITY_FAMILIES):
            return "has no effect with security.protocol PLAINTEXT"
        if name.startswith(known_keys.PROVIDER_FAMILY):
            return "has no effect: config providers are not supported in this release"
        if name in known_keys.REMOVED:
            instead = known_keys.REMOVED[name]
            return "has no effect since Kafka 4.0" + (f"; write {key.prefix}{instead}" if instead else "")
        if self._is_known_switch_off(key):
            return None
        if not key.role and (name in known_keys.CONNECT or name.startswith(known_keys.CONNECT_FAMILIES)):
            return "has no effect: it is for Kafka Connect, which isn't used here"
        client = key.role or key.level is not Level.TOP
        if name in known_keys.CONNECTOR or (client and name in _CLIENT_NAMES):
            return "has no effect in this release"
        return None

    def _is_known_switch_off(self, key: ScopedKey) -> bool:
        known = key.name in known_keys.CONNECTOR
        return known and key.name.endswith(".enabled") and key.entry.value.strip().lower() == "false"

    def _unknown(self, key: ScopedKey) -> str:
        meant = self._close_name(key) or self._close_prefix(key.entry.key)
        if meant:
            return f"is not known; did you mean {meant}?"
        return "is not known, and has no effect"

    def _close_name(self, key: ScopedKey) -> str | None:
        """The key with its name corrected, if a known name is close."""
        names = _CLIENT_NAMES if key.role else _TOP_NAMES | {r + n for r in known_keys.ROLES for n in _FETCH}
        name = _closest(key.name, sorted(names))
        return f"{key.prefix}{key.role}{name}" if name else None

    def _close_prefix(self, key: str) -> str | None:
        """The key with its alias, flow or role corrected, if what follows is a known name."""
        name = next((name for name in _ALL_NAMES if key.endswith(f".{name}")), None)
        if name is None:
            return None
        prefix = _closest(key.removesuffix(name), [*self._scopes.prefixes, *known_keys.ROLES])
        return prefix + name if prefix else None


def _meant(key: ScopedKey) -> Setting | None:
    """The setting that the key's writer had in mind."""
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
