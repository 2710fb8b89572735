"""Advice about keys without effect: the right place, or the key that was meant."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches

from sparkmirror.config import known_keys
from sparkmirror.config.declared_providers import FAMILY, PARAMETERS, PROVIDERS_KEY
from sparkmirror.config.duty_settings import DUTY_SETTINGS
from sparkmirror.config.model import ClusterConfig
from sparkmirror.config.refusals import ACCEPTED
from sparkmirror.config.schema_settings import SCHEMA_SETTINGS
from sparkmirror.config.scopes import Level, ScopedKey, Scopes
from sparkmirror.config.security import HONOURED, concerns, is_exception, meant_clusters
from sparkmirror.config.setting import Setting
from sparkmirror.config.settings import (
    ADMIN_SETTINGS,
    CLUSTERS_KEY,
    ENABLED,
    FETCH_SETTINGS,
    FLOW_SETTINGS,
    LOSS_SETTINGS,
    PRODUCE_SETTINGS,
    SOURCE_SERVERS,
)

CLOSE = 0.8
"""Least likeness between a key and a known key for a suggestion; 1 is equality."""

_BARE = {
    setting.name: setting
    for setting in (
        *FLOW_SETTINGS,
        *DUTY_SETTINGS,
        *LOSS_SETTINGS,
        *SCHEMA_SETTINGS,
        ENABLED,
        SOURCE_SERVERS,
    )
}
_FETCH = {setting.name: setting for setting in FETCH_SETTINGS}
_ADMIN = {setting.name: setting for setting in ADMIN_SETTINGS}
_PRODUCE = {setting.name: setting for setting in PRODUCE_SETTINGS}

_CONNECT = known_keys.CONNECTOR | known_keys.CONNECTOR_BASE | known_keys.CONNECT
_TOP_NAMES = {*_BARE, CLUSTERS_KEY, *_CONNECT}
_CLIENT_NAMES = {*_FETCH, *_PRODUCE, *known_keys.CLIENT}
_ALL_NAMES = sorted(_TOP_NAMES | _CLIENT_NAMES, key=len, reverse=True)


OF_A_WHOLE_FILE = "it names the clusters of an mm2.properties file, and a flow's are known by its aliases"
NO_CLIENT = "reaches no client, nor in MirrorMaker 2"
TAKE_OUT = "take it out: "


def counting_prefixes(name: str) -> tuple[str, ...]:
    """Return the prefixes under which a source connector obeys a client's setting.

    Empty if the setting counts nowhere.
    """
    prefixes = {"consumer.": _FETCH, "producer.override.": _PRODUCE}
    return tuple(prefix for prefix, names in prefixes.items() if name in names)


def of_no_client(prefix: str, name: str) -> str:
    """Return the advice on a client's setting behind a cluster's prefix.

    `prefix` is `source.cluster.` or `target.cluster.`.
    """
    places = [role + name for role in counting_prefixes(name) if prefix.startswith("source") or role != "consumer."]
    if places:
        return f"{NO_CLIENT}: write {' or '.join(places)}"
    if name in known_keys.CLIENT:
        return f"{NO_CLIENT}: {TAKE_OUT}{known_keys.CLIENT[name].reason}"
    if _in_connect(name) is not None:
        return f"{NO_CLIENT}: {TAKE_OUT}it is for Connect's workers, which stand at the target"
    return f"{NO_CLIENT}: {TAKE_OUT}no client has such a setting"


class Advisor:
    """Advice writer for keys without effect, for a set of running flows."""

    def __init__(self, scopes: Scopes, spoken: Mapping[str, ClusterConfig], extended: Collection[str] = ()) -> None:
        self._scopes = scopes
        self._spoken = spoken
        self._extended = {f"{flow}." for flow in extended}
        """Prefixes `source->target.` for flows that have the user's Python classes.

        Such a class may have keys of its own.
        """

    def advise(self, key: ScopedKey) -> str | None:
        """Return a warning about a key without effect; None if no warning is due.

        No warning is due if the key asks for something that is done anyway, agrees with the whole cluster's settings,
        or may belong to a user's class.
        """
        if _asks_for_nothing(key):
            return None
        text = self._needless(key)
        if text is None and is_exception(key):
            return None  # `refused_exceptions` let the key pass: the whole cluster has the same value
        text = text or self._misplaced(key) or _known(key)
        return None if text is None and self._may_be_theirs(key) else key.entry.note(text or self._unknown(key))

    def _may_be_theirs(self, key: ScopedKey) -> bool:
        """True if the key may reach a user's Python class.

        Rule: MirrorMaker 2's `connectorBaseConfig` (`mm2.md` section 1.6).
        """
        common = key.level is Level.TOP and key.name.startswith("replication.policy.")
        return key.prefix in self._extended or (common and bool(self._extended))

    def _needless(self, key: ScopedKey) -> str | None:
        """Return the reason why a security setting can't have an effect.

        None if the setting can have an effect, or the key is no security setting.
        """
        if not key.name.startswith(("ssl.", "sasl.")):
            return None
        meant = meant_clusters(key, self._scopes.flows)
        if any(concerns(key.name, self._spoken.get(alias)) for alias in meant):
            return None
        return f"has no effect without {'TLS' if key.name.startswith('ssl.') else 'SASL'}: write security.protocol"

    def _misplaced(self, key: ScopedKey) -> str | None:
        setting = _meant(key)
        if setting is None:
            return None
        if setting is ENABLED:
            return "enables no flow here; write <source>-><target>.enabled = true for each one"
        places = self._places(setting)
        if (key.entry.written or key.entry.key) in places:
            return "has no effect in a worker's file; write it into the connector that it is for"
        return f"has no effect in this place, nor in MirrorMaker 2; write {' or '.join(places)}"

    def _places(self, setting: Setting) -> list[str]:
        """Return the keys under which the setting counts.

        An alias is filled in if all running flows have the same source or target, else `<source>` or `<target>` stands
        there.
        """
        sources = {source for source, _ in self._scopes.flows}
        targets = {target for _, target in self._scopes.flows}
        source = min(sources) if len(sources) == 1 else "<source>"
        target = min(targets) if len(targets) == 1 else "<target>"
        strongest, *general = setting.place.keys(setting.name, source, target)[:2]
        return [*general, strongest]

    def _unknown(self, key: ScopedKey) -> str:
        if key.name == CLUSTERS_KEY:
            return f"has no effect: {OF_A_WHOLE_FILE}"
        if meant := _close_name(key):
            return f"is not known; did you mean {meant}?"
        if key.role and (meant_bare := _BARE.get(key.name)):
            return f"is no client's setting; write {' or '.join(self._places(meant_bare))}"
        if key.role and _in_connect(key.name) is not None:
            return f"has no effect: it is no client's setting; {_in_connect(key.name)}"
        name = next((name for name in _ALL_NAMES if key.entry.key.endswith(f".{name}")), None)
        if name is None:
            theirs = f"; a class of your own gets it as {min(self._extended)}{key.entry.key}" if self._extended else ""
            return "is not known, and has no effect" + theirs
        prefix = key.entry.key.removesuffix(name)
        if meant := _closest(prefix, [*self._scopes.prefixes, *known_keys.ROLES]):
            return f"is not known; did you mean {meant}{name}?"
        return f"is not known: {prefix.removesuffix('.')} is no cluster, flow or client"


def _close_name(key: ScopedKey) -> str | None:
    """Return the key with its name corrected; None without a close known name."""
    if not key.role and key.name in known_keys.SLIPS:
        return f"{key.prefix}{known_keys.SLIPS[key.name]}"
    names = _CLIENT_NAMES if key.role else _TOP_NAMES | {role + name for role in known_keys.ROLES for name in _FETCH}
    name = _closest(key.name, sorted(names))
    # A name that is merely shorter is right: the prefix before it is wrong.
    return f"{key.prefix}{key.role}{name}" if name and not key.name.endswith(f".{name}") else None


def _asks_for_nothing(key: ScopedKey) -> bool:
    """True if a known key's value asks for nothing special.

    Such a value switches off an absent feature, or asks for something that is done anyway.
    """
    value = key.entry.value.strip().lower()
    if key.name in HONOURED:
        return value == "plaintext"
    if key.name in known_keys.DONE_ANYWAY:
        return value in known_keys.DONE_ANYWAY[key.name]
    return key.name in ACCEPTED or (value == "false" and key.name in _CONNECT | known_keys.CLIENT)


def _known(key: ScopedKey) -> str | None:
    """Return the reason why a key that Kafka knows has no effect.

    None if Kafka doesn't know the key there either.
    """
    name = key.name
    if name.startswith(FAMILY):
        return _of_a_provider(key)
    if name in known_keys.OURS_REMOVED:
        return f"has no effect since sparkmirror 0.2: {known_keys.OURS_REMOVED[name]}"
    if name in known_keys.REMOVED:
        return f"has no effect since Kafka {known_keys.REMOVED[name].format(key.prefix)}"
    if not key.role and (reason := _in_connect(name)) is not None:
        return f"has no effect: {reason}"
    if name.startswith("ssl."):
        return "has no effect: it is for Java's TLS, and sparkmirror's is OpenSSL's, with its own ciphers"
    of_sasl = name.startswith("sasl.") and name in known_keys.CLIENT
    if not key.role and key.level is Level.TOP and not of_sasl:
        return None
    if name in known_keys.CLIENT:
        return f"has no effect: {known_keys.CLIENT[name].reason}"
    if name.startswith("sasl."):
        return "has no effect: of SASL's settings those of docs/configuration.md count"
    return "has no effect: that client has no such setting" if name in _CLIENT_NAMES else None


def _in_connect(name: str) -> str | None:
    """Return the reason why a Kafka Connect key has no effect.

    None if Kafka Connect has no such key.
    """
    if name in _CONNECT:
        return _CONNECT[name].reason
    families = known_keys.CONNECT_FAMILIES
    return next((reason for family, reason in families.items() if name.startswith(family)), None)


def _of_a_provider(key: ScopedKey) -> str:
    if key.prefix or key.role:
        return "has no effect: config providers are declared once for the whole file; write it without a prefix"
    name = key.name.removeprefix(FAMILY).partition(".")[0]
    if key.name == f"{FAMILY}{name}.class":
        return f"has no effect: {name} is not among {PROVIDERS_KEY}"
    known = " or ".join(sorted({f"{FAMILY}{name}.param.{parameter}" for parameter in PARAMETERS.values()}))
    return f"has no effect: a provider's parameter is {known}"


def _meant(key: ScopedKey) -> Setting | None:
    """Return the setting that the key's writer had in mind; None without a guess."""
    if key.name in HONOURED:
        return HONOURED[key.name]
    if "consumer" in key.role:
        return _FETCH.get(key.name)
    if "producer" in key.role:
        return _PRODUCE.get(key.name)
    if key.role:
        return _ADMIN.get(key.name)
    if key.name in _BARE or key.name in _CONNECT:
        return _BARE.get(key.name)
    # Among a cluster's own settings the name may also be meant for Connect's workers: no guess is safe.
    shared = key.level is Level.CLUSTER and key.name in known_keys.CLIENT
    return None if shared else _FETCH.get(key.name) or _PRODUCE.get(key.name)


def _closest(word: str, known: Sequence[str]) -> str | None:
    return next(iter(get_close_matches(word, known, n=1, cutoff=CLOSE)), None)
