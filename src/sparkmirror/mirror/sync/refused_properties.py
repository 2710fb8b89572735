"""Properties for which a target refuses a topic.

Brokers name the trouble, but not always the property. So trial creations with fewer properties find the refused
properties; no trial creates a topic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from sparkmirror.kafka.cluster.new_topics import NewTopicSpec
from sparkmirror.kafka.cluster.refusal_lines import refusal
from sparkmirror.kafka.wire.error_codes import ErrorCode

_FOR_PROPERTIES = frozenset({ErrorCode.INVALID_CONFIG, ErrorCode.POLICY_VIOLATION})
"""Error codes that may be due to properties.

A `create.topic.policy.class.name` may refuse for other reasons, such as the replica count.
"""
_MOST_KINDS = 20
"""Most kinds of refusals examined at once.

Topics with the same properties and the same answer are of one kind.
"""

Answers = Mapping[str, tuple[int, str]]
Dry = Callable[[list[NewTopicSpec]], Answers]
"""Trial creation of topics: the broker's error code and words, by topic."""


def refused_properties(specs: Iterable[NewTopicSpec], answers: Answers, dry: Dry) -> dict[str, tuple[str, ...]]:
    """Map refused topics to the properties without which the topics would be created.

    Topics refused for other reasons are left out.
    """
    kinds: dict[tuple[object, ...], tuple[str, ...]] = {}
    refused: dict[str, tuple[str, ...]] = {}
    for spec in specs:
        code, words = answers.get(spec.name, (0, ""))
        if code not in _FOR_PROPERTIES or not spec.configs:
            continue
        kind = (tuple(sorted(spec.configs.items())), code, words.replace(spec.name, ""))
        if kind not in kinds:
            if len(kinds) == _MOST_KINDS:
                continue
            kinds[kind] = _culprits(spec, dry)
        if kinds[kind]:
            refused[spec.name] = kinds[kind]
    return refused


def _culprits(spec: NewTopicSpec, dry: Dry) -> tuple[str, ...]:
    """Return a smallest set of refused properties: put back each that is not needed.

    The search repeats as long as a further property can be put back.
    """

    def passes(without: Iterable[str]) -> bool:
        left_out = set(without)
        configs = {name: value for name, value in spec.configs.items() if name not in left_out}
        code, _ = dry([replace(spec, configs=configs)]).get(spec.name, (0, ""))
        return code == ErrorCode.NONE

    names = sorted(spec.configs)
    alone = next((name for name in names if passes([name])), None)
    if alone is not None:
        return (alone,)
    if not passes(names):
        return ()
    culprits = names
    while True:
        needed = list(culprits)
        for name in culprits:
            rest = [kept for kept in needed if kept != name]
            if passes(rest):
                needed = rest
        if needed == culprits:
            return tuple(culprits)
        culprits = needed


def exclusion(names: Iterable[str]) -> str:
    """Return the setting that excludes properties, next to the default exclusions."""
    return f"config.properties.exclude = {', '.join(f'+{name}' for name in names)}"


def property_refusal(code: int, words: str, names: Iterable[str]) -> str:
    """Return one line: why a topic is refused for properties, and how to create it."""
    return refusal(code, words, {code: f"the source's {', '.join(names)} is refused: write {exclusion(names)}"})
