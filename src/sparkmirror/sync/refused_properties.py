"""Which properties a target refuses a topic for: brokers' words name the trouble, and not always the property.

They are asked again for the sake of the answer only, with fewer properties, until it is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from sparkmirror.cluster.admin import INVALID_CONFIG, NewTopicSpec, refusal

POLICY_VIOLATION = 44
_FOR_PROPERTIES = frozenset({INVALID_CONFIG, POLICY_VIOLATION})
"""Of a create.topic.policy it may be something else, such as the number of replicas."""
_MOST_KINDS = 20
"""Of refusals that are looked into at once; topics with the same properties and answer are of one kind."""

Answers = Mapping[str, tuple[int, str]]
Dry = Callable[[list[NewTopicSpec]], Answers]
"""What creating topics would be answered: Kafka's code and words by name."""


def refused_properties(specs: Iterable[NewTopicSpec], answers: Answers, dry: Dry) -> dict[str, tuple[str, ...]]:
    """Of topics that were refused, the properties without which they would be created; none if it isn't they."""
    kinds: dict[tuple[object, ...], tuple[str, ...]] = {}
    found: dict[str, tuple[str, ...]] = {}
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
            found[spec.name] = kinds[kind]
    return found


def _culprits(spec: NewTopicSpec, dry: Dry) -> tuple[str, ...]:
    """As few as it can be: each that is left is put back, for as long as that helps another one."""

    def passes(without: Iterable[str]) -> bool:
        left_out = set(without)
        configs = {name: value for name, value in spec.configs.items() if name not in left_out}
        code, _ = dry([replace(spec, configs=configs)]).get(spec.name, (0, ""))
        return code == 0

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
            rest = [one for one in needed if one != name]
            if passes(rest):
                needed = rest
        if needed == culprits:
            return tuple(culprits)
        culprits = needed


def exclusion(names: Iterable[str]) -> str:
    """The key that leaves properties out of what is copied, beside those that are left out by default."""
    return f"config.properties.exclude = {', '.join(f'+{name}' for name in names)}"


def property_refusal(code: int, words: str, names: Iterable[str]) -> str:
    """One line that says why a topic is refused for properties, and how to have it created without them."""
    return refusal(code, words, {code: f"the source's {', '.join(names)} is refused: write {exclusion(names)}"})
