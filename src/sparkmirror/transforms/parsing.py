"""Chains out of a configuration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import TypeVar

from sparkmirror.errors import ConfigError
from sparkmirror.mistakes import Mistakes
from sparkmirror.transforms.catalogue import (
    PACKAGE,
    PREDICATES,
    PREDICATES_PACKAGE,
    SIDED,
    TRANSFORMS,
    WITHOUT_SCHEMA,
    PredicateClass,
    TransformClass,
)
from sparkmirror.transforms.chain import Chain, ChainLink
from sparkmirror.transforms.options import BLANKS, BadOption, Items, Option
from sparkmirror.transforms.shape import Predicate, Transform
from sparkmirror.values import Boolean, repeated

CHAIN_KEY = "transforms"
PREDICATES_KEY = "predicates"

_CONDITION = ("type", "predicate", "negate")
"""Keys of each transform, besides its options."""

_CLOSE = 0.6

_Class = TypeVar("_Class", TransformClass, PredicateClass)


def parse_chain(properties: Mapping[str, str], *, origin: str = "configuration") -> Chain:
    """Return the chain that `transforms` names, with predicates.

    Keys have no prefix before `transforms` and `predicates`; further keys are passed over. `origin` is the file's name.
    Raises `ConfigError`, or `ConfigErrors` for several mistakes.
    """
    return _ChainReader(properties, origin).chain()


class _ChainReader:
    """One pass over the properties."""

    def __init__(self, properties: Mapping[str, str], origin: str) -> None:
        self._properties = properties
        self._origin = origin
        self._mistakes = Mistakes()
        self._predicates: dict[str, Predicate | None] = {}
        """Declared predicates; None after a mistake."""

    def chain(self) -> Chain:
        declared, aliases = self._aliases(PREDICATES_KEY), self._aliases(CHAIN_KEY)
        self._predicates = {alias: self._predicate(alias, declared) for alias in declared}
        links = [link for alias in aliases if (link := self._link(alias, aliases)) is not None]
        self._mistakes.stop(self._properties)
        return Chain(tuple(links), tuple(self._unread({CHAIN_KEY: aliases, PREDICATES_KEY: declared})))

    def _aliases(self, key: str) -> tuple[str, ...]:
        try:
            aliases = Items(filled=False).parse(self._properties.get(key, ""))
        except ValueError as error:
            self._mistake(key, str(error))
            return ()
        for alias in repeated(aliases):
            self._mistake(key, f"it has {alias} twice: give each its own name")
        return tuple(dict.fromkeys(aliases))

    def _link(self, alias: str, aliases: Sequence[str]) -> ChainLink | None:
        prefix = f"{CHAIN_KEY}.{alias}."
        known = self._known(prefix, PACKAGE, TRANSFORMS)
        if known is None:
            return None
        self._see_names(prefix, (*_CONDITION, *_names(known.options)), _longer(prefix, CHAIN_KEY, aliases))
        condition = self._condition(prefix)
        transform = self._transform(prefix, known)
        if transform is None or condition is None:
            return None
        predicate, negate = condition
        return ChainLink(name=alias, transform=transform, predicate=predicate, negate=negate)

    def _transform(self, prefix: str, known: TransformClass) -> Transform | None:
        options = self._options(prefix, known.options)
        try:
            return None if options is None else known.make(options)
        except BadOption as error:
            self._mistake(f"{prefix}{error.name}", error.reason)
            return None

    def _predicate(self, alias: str, aliases: Sequence[str]) -> Predicate | None:
        prefix = f"{PREDICATES_KEY}.{alias}."
        known = self._known(prefix, PREDICATES_PACKAGE, PREDICATES)
        if known is None:
            return None
        self._see_names(prefix, ("type", *_names(known.options)), _longer(prefix, PREDICATES_KEY, aliases))
        options = self._options(prefix, known.options)
        try:
            return None if options is None else known.make(options)
        except BadOption as error:
            self._mistake(f"{prefix}{error.name}", error.reason)
            return None

    def _known(self, prefix: str, package: str, classes: Mapping[str, _Class]) -> _Class | None:
        """Return the class that `type` names; None after a mistake."""
        key = f"{prefix}type"
        given = self._properties.get(key, "").strip(BLANKS)
        name = given.removeprefix(package)
        if name in classes:
            return classes[name]
        if not given:
            example = package + sorted(classes)[0]
            self._mistake(key, f"it is missing: write a class, such as {example}")
        elif name in SIDED:
            self._mistake(key, f"{given} is for keys or for values: write {given}$Key or {given}$Value")
        elif name.partition("$")[0] == WITHOUT_SCHEMA:
            self._mistake(key, f"{given} needs records with schemas, which Kafka's brokers don't keep: take it out")
        else:
            near = _nearest(name.rpartition(".")[2], classes)
            meant = f"; did you mean {package}{near}?" if near else ""
            self._mistake(
                key, f"{given} can't be loaded: Java doesn't run here, only Kafka's own classes by name{meant}"
            )
        return None

    def _condition(self, prefix: str) -> tuple[Predicate | None, bool] | None:
        """Return a transform's predicate, and whether it is negated; None after a mistake."""
        key, negate_key = f"{prefix}predicate", f"{prefix}negate"
        alias, negate = self._properties.get(key), False
        if negate_key in self._properties:
            try:
                negate = Boolean().parse(self._properties[negate_key])
            except ValueError as error:
                self._mistake(negate_key, str(error))
            if alias is None:
                self._mistake(negate_key, f"there is nothing to be negated: write {key}, or take this key out")
        if alias is None:
            return None, False
        alias = alias.strip(BLANKS)
        if alias not in self._predicates:
            near = _nearest(alias, self._predicates)
            meant = f"did you mean {near}?" if near else f"name it in {PREDICATES_KEY}"
            self._mistake(key, f"there is no predicate {alias!r}: {meant}")
            return None
        predicate = self._predicates[alias]
        return None if predicate is None else (predicate, negate)

    def _options(self, prefix: str, options: Sequence[Option]) -> dict[str, object] | None:
        """Return the values of a class's options; None after a mistake."""
        values: dict[str, object] = {}
        for option in options:
            key = f"{prefix}{option.name}"
            text = self._properties.get(key)
            if text is None:
                values[option.name] = option.default
                if option.required:
                    self._mistake(key, "it is missing, and has no default: write it")
                    values.pop(option.name)
                continue
            try:
                values[option.name] = option.kind.parse(text)
            except ValueError as error:
                self._mistake(key, str(error))
        return values if len(values) == len(options) else None

    def _see_names(self, prefix: str, known: Sequence[str], longer: Sequence[str]) -> None:
        """Find options that the class lacks; `longer` has other aliases' prefixes."""
        for key in self._properties:
            name = key.removeprefix(prefix)
            if name == key or name in known or key.startswith(tuple(longer)):
                continue
            if name == "plugin.version":
                self._mistake(key, "each class is here in one version: take this key out")
                continue
            near = _nearest(name, known)
            self._mistake(key, f"there is no such option; did you mean {prefix}{near}?" if near else _lists(known))

    def _unread(self, named: Mapping[str, Sequence[str]]) -> Iterator[str]:
        for key in self._properties:
            for kind, aliases in named.items():
                if key.startswith(f"{kind}.") and not key.startswith(tuple(f"{kind}.{alias}." for alias in aliases)):
                    yield key

    def _mistake(self, key: str, reason: str) -> None:
        self._mistakes.add(ConfigError(reason, origin=self._origin, key=key))


def _nearest(word: str, known: Iterable[str]) -> str | None:
    return next(iter(get_close_matches(word, list(known), n=1, cutoff=_CLOSE)), None)


def _lists(known: Sequence[str]) -> str:
    return f"there is no such option; there are {', '.join(known)}"


def _names(options: Sequence[Option]) -> tuple[str, ...]:
    return tuple(option.name for option in options)


def _longer(prefix: str, key: str, aliases: Sequence[str]) -> tuple[str, ...]:
    """Return longer prefixes for other aliases, such as `a.b` for `a`."""
    prefixes = (f"{key}.{alias}." for alias in aliases)
    return tuple(other for other in prefixes if other.startswith(prefix) and other != prefix)
